"""What the tests of classifiers share: a built trace, looked at the whole way."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
from kineto_builder import KinetoBuilder

from perfdiag.classifiers.counter_owners import Owner
from perfdiag.classifiers.counter_places import place_counters
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnosis import Finding
from perfdiag.classifiers.facts import RankFacts, derive_facts
from perfdiag.classifiers.findings import Diagnosed, diagnose_rank
from perfdiag.classifiers.fixes import rank_fixes
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.priced_traces import PricedTrace, open_priced_trace
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.profiler.counters import read_counters
from perfdiag.profiler.inputs import recorded_inputs
from perfdiag.profiler.model import read_model
from perfdiag.profiler.opening import ReadOptions, open_model, read_blob
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.trace_schemas.report import Evidence, Fix


@dataclass(frozen=True)
class Examined:
    """A trace, its facts, and what the diagnoses make of them."""

    path: Path
    facts: RankFacts

    @cached_property
    def diagnosed(self) -> Diagnosed:
        return diagnose_rank(self.facts, all_diagnoses(), judge_rank(self.facts).unknown)

    def finding(self, name: str) -> Finding:
        return next(f for f in self.diagnosed.findings if f.diagnosis.id == name)

    def status(self, name: str) -> str:
        return self.finding(name).status

    def why(self, name: str) -> str:
        return self.finding(name).why

    @property
    def fixes(self) -> list[Fix]:
        return rank_fixes([self.diagnosed])

    def savings_us(self, name: str) -> tuple[float, float, float]:
        fix = next(fix for fix in self.fixes if fix.id == name)
        bounds = (fix.saving_low_ns, fix.saving_ns_per_step, fix.saving_high_ns)
        low, mid, high = (bound / 1000 for bound in bounds)
        return low, mid, high

    def answers(self, name: str) -> list[tuple[float, float]]:
        """For each piece of evidence the figure that it states and the one that SQL returns."""
        fix = next(fix for fix in self.fixes if fix.id == name)
        return [(one.value, self._answer(one)) for one in fix.evidence]

    def _answer(self, evidence: Evidence) -> float:
        (value,) = self.session.query(evidence.sql).floats("value").tolist()
        return float(value)

    @cached_property
    def session(self) -> PricedTrace:
        """What `perfdiag query` sees; it closes with the process."""
        return open_priced_trace(str(self.path))

    def distrusted(self) -> "Examined":
        """The same without a verdict on any step."""
        return replace(self, facts=replace(self.facts, trusted=self.facts.trusted & False))


def examine_file(path: Path) -> Examined:
    blob = next(iter(expand([str(path)])))
    recording = read_blob(blob, ReadOptions(), keep_args="inputs")
    with open_model(recording, ReadOptions()) as opened:
        model = read_model(opened.session)
        inputs = recorded_inputs(opened.recording, model.hosts)
        return Examined(path, derive_facts(opened.recording, model, inputs))


def examine_job(paths: list[Path]) -> Examined:
    """The first rank of a job, looked at together with the others."""
    ranks = [examine_file(path) for path in paths]
    job = gather([rank.facts for rank in ranks])
    return Examined(paths[0], job.ranks[0])


def beside_counters(found: Examined, text: str) -> Examined:
    """The same with counters that were sampled beside it."""
    if not text:
        return found
    file = read_counters(Blob("counters", text.encode(), "unknown", len(text), ""))
    (counters,) = place_counters([file], [Owner.of(found.facts, "")]).counters
    return replace(found, facts=replace(found.facts, counters=counters))


Examine = Callable[[KinetoBuilder | list[KinetoBuilder]], Examined]


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Write a built trace, read it back and derive its facts; of a job those of its first rank."""

    def look(built: KinetoBuilder | list[KinetoBuilder]) -> Examined:
        builders = built if isinstance(built, list) else [built]
        paths = [b.write(tmp_path / f"rank{b.rank}.json") for b in builders]
        return beside_counters(examine_job(paths), builders[0].counters)

    return look


@pytest.fixture
def examine_path() -> Callable[[Path], Examined]:
    """Look at a trace on disk."""
    return examine_file


@pytest.fixture
def examine_fixture() -> Callable[[str], Examined]:
    """Look at a trace of `fixtures/gpu_like`."""
    folder = Path(__file__).parents[2] / "fixtures" / "gpu_like"
    return lambda name: examine_file(folder / f"{name}.json.gz")
