"""What holds for every diagnosis."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kineto_builder import KinetoBuilder

from perfdiag.classifiers import diagnoses
from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnosis import HEADINGS, Diagnose, Diagnosis, Limits
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.fixes import rank_fixes
from perfdiag.classifiers.thresholds import tuned_diagnoses
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.trace_schemas.report import LAYERS

GPU_LIKE = Path(__file__).parents[3] / "fixtures" / "gpu_like"

every_diagnosis = pytest.mark.parametrize(
    ("diagnosis", "diagnose"), all_diagnoses(), ids=[d.id for d, _ in all_diagnoses()]
)


def test_each_file_of_the_folder_is_a_diagnosis() -> None:
    """The ids are the names of the modules, sorted; helpers begin with an underscore."""
    folder = Path(diagnoses.__file__).parent
    names = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))
    assert [diagnosis.id for diagnosis, _ in all_diagnoses()] == names
    assert len(names) >= 30


@every_diagnosis
def test_the_docstring_has_all_headings_in_order(diagnosis: Diagnosis, diagnose: Diagnose) -> None:
    """The documentation of a diagnosis is made from these parts, none of which is empty."""
    doc = sys.modules[diagnose.__module__].__doc__ or ""
    parts = re.split(r"^([A-Z][a-z ]+):$", doc, flags=re.MULTILINE)
    assert tuple(parts[1::2]) == HEADINGS
    assert all(body.strip() for body in parts[2::2])
    assert "https://" in parts[-1]


@every_diagnosis
def test_every_threshold_has_a_source(diagnosis: Diagnosis, diagnose: Diagnose) -> None:
    """A number that decides says where it comes from."""
    assert diagnosis.thresholds
    assert [n for n, t in diagnosis.thresholds.items() if len(t.source) < 20 or not t.unit] == []


@every_diagnosis
def test_the_fix_is_concrete(diagnosis: Diagnosis, diagnose: Diagnose) -> None:
    """It names an owner, something to type with the version that has it, and a check."""
    assert diagnosis.layer in LAYERS
    assert re.search(r"\w+\(|--\w|_\w+=", diagnosis.how)
    assert re.search(r"\d\.\d", diagnosis.how) or "PyTorch" not in diagnosis.how
    assert diagnosis.verify
    assert diagnosis.refuted_by
    assert diagnosis.title != diagnosis.title_ok
    assert 0 < diagnosis.confidence < 1


def example(diagnosis: Diagnosis) -> ModuleType:
    """`fixtures/examples` holds for each diagnosis a job that has the fault, and one without."""
    return import_module(f"examples.{diagnosis.id}")


_EXAMINED: dict[tuple[str, str], Any] = {}


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    """What was looked at is closed before the interpreter ends."""
    yield
    for found in _EXAMINED.values():
        if "session" in vars(found):
            found.session.close()
    _EXAMINED.clear()


def examined(diagnosis: Diagnosis, kind: str, examine: Callable[[KinetoBuilder], Any]) -> Any:
    """An example, read once for all tests that look at it: `fires` or `quiet`."""
    key = diagnosis.id, kind
    if key not in _EXAMINED:
        _EXAMINED[key] = examine(getattr(example(diagnosis), kind)())
    return _EXAMINED[key]


@every_diagnosis
def test_it_fires_on_its_example(
    diagnosis: Diagnosis, diagnose: Diagnose, examine: Callable[[KinetoBuilder], Any]
) -> None:
    """A job with the fault has the fix, worth what was put there; SQL returns its figures."""
    job = example(diagnosis)
    found = examined(diagnosis, "fires", examine)
    assert found.status(diagnosis.id) == "fires", found.why(diagnosis.id)
    assert found.savings_us(diagnosis.id) == pytest.approx(job.SAVING_US, abs=0.0011)
    answers = found.answers(diagnosis.id)
    assert answers
    assert [stated for stated, _ in answers] == pytest.approx([asked for _, asked in answers])


@every_diagnosis
def test_it_is_quiet_on_its_look_alike(
    diagnosis: Diagnosis, diagnose: Diagnose, examine: Callable[[KinetoBuilder], Any]
) -> None:
    """A job that only looks like the fault has no such fix."""
    found = examined(diagnosis, "quiet", examine)
    assert found.status(diagnosis.id) in ("quiet", "minor"), found.why(diagnosis.id)


@every_diagnosis
def test_examples_are_short(diagnosis: Diagnosis, diagnose: Diagnose) -> None:
    """Each job is built in at most 15 lines, so that one sees at once what the fault is."""
    job = example(diagnosis)
    for build in (job.fires, job.quiet):
        assert len(inspect.getsource(build).splitlines()) <= 15 + 2  # signature and docstring


class Read(dict[str, float]):
    """Limits that remember which of them were asked for."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.names.add(name)
        return super().__getitem__(name)


@every_diagnosis
def test_every_threshold_decides(
    diagnosis: Diagnosis, diagnose: Diagnose, examine: Callable[[KinetoBuilder], Any]
) -> None:
    """What a user sets is read on the way to a finding: no number stands beside the limits."""
    limits = Read(diagnosis.limits)
    for kind in ("fires", "quiet"):
        diagnose(examined(diagnosis, kind, examine).facts, limits)
    assert limits.names == set(diagnosis.thresholds)


STAYING = ("remains", "stays", "some_stay", "lighter", "needed", "one_layout")
"""Thresholds that say which part of the time a fix does not save at worst."""


@pytest.mark.parametrize(
    ("diagnosis", "name"),
    [(d, name) for d, _ in all_diagnoses() for name in STAYING if name in d.thresholds],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
def test_what_stays_is_not_saved_for_sure(
    diagnosis: Diagnosis, name: str, examine: Callable[[KinetoBuilder], Any]
) -> None:
    """Where all of it may stay, nothing is sure, and something where nothing does."""
    facts = examined(diagnosis, "fires", examine).facts
    sure = []
    for value in (0.0, 1.0):
        tuned = tuned_diagnoses({diagnosis.id: {name: value}})
        chosen = [pair for pair in tuned if pair[0].id == diagnosis.id]
        (fix,) = rank_fixes([diagnose_rank(facts, chosen, judge_rank(facts).unknown)])
        sure.append(fix.saving_low_ns)
    assert sure[0] > sure[1] == 0


@pytest.mark.parametrize("job", ["compute_bound", "cuda_graph", "healthy_overlap"])
def test_a_healthy_job_has_no_finding(examine_fixture: Callable[[str], Any], job: str) -> None:
    """Jobs that are bound by arithmetic have nothing to fix."""
    findings = examine_fixture(job).diagnosed.findings
    assert {finding.status for finding in findings} <= {"quiet", "not applicable"}


@pytest.mark.parametrize(
    ("job", "first"),
    [
        ("loader_stall", "loader_stall"),
        ("pageable_copy", "pageable_copy"),
        ("tiny_kernels", "launch_bound_small_kernels"),
        ("exposed_all_reduce", "exposed_all_reduce"),
        ("collective_on_compute_stream", "collective_on_compute_stream"),
        ("memory_bound", "unfused_elementwise_chain"),
        ("profiler_overhead", "profiler_overhead"),
        ("straggler_rank1", "loader_stall"),
    ],
)
def test_what_a_job_was_made_to_suffer_from_comes_first(
    examine_fixture: Callable[[str], Any], job: str, first: str
) -> None:
    """The cause that a generated job has is the first fix."""
    assert examine_fixture(job).fixes[0].id == first


def test_reads_come_first_where_they_are_replayed() -> None:
    """The host waits little for what it reads; only a replay knows what reading itself takes."""
    (first, *_) = analyze([str(GPU_LIKE / "draining_sync.json.gz")], Options()).fixes
    assert (first.id, first.basis) == ("draining_sync", "replay")
