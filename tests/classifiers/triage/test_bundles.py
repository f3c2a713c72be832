"""Bundles of real and simulated jobs: every number is had again from the slice."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import msgspec
import pytest
from triage_traces import HOSTILE_NAMES, SECRET_WORDS, hostile_job, late_job, secret_job, unpacked

from perfdiag.classifiers.analysis import Options, analyze_whole
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.owners import default_owners
from perfdiag.classifiers.triage import Bundle, Triage, TriageOptions, triage
from perfdiag.cli.reporters.fix_text import saving
from perfdiag.cli.reporters.markdown import render
from perfdiag.cli.reporters.triage import bundle_files
from perfdiag.cli.reporters.triage.numbers import value_text
from perfdiag.profiler.engine import Session, open_session
from perfdiag.trace_schemas.report import Report

ROOT = Path(__file__).parents[3]
KINETO = ROOT / "../shared/traces/kineto"
REAL = {
    "a100_8rank_control": "training/a100_8rank_control.json.gz",
    "mi300_8rank_resnet": "training/mi300_8rank_resnet_act_checkpoint.json.gz",
    "dlrm_8rank": "multirank/dlrm_8rank_a100_kineto.tar.gz",
}
TODAY = date(2026, 1, 1)
QUERY = re.compile(r"-- \[(Q\d+)\] .*\n-- expected: (.*) \((analysis|window)\)\n(.*);\n")


def judged(*paths: str) -> Judged:
    """A job with what its verdict rests on."""
    return analyze_whole(list(paths), Options(keep_whole=True))


def made(job: Judged, **changes: object) -> Triage:
    """The bundles of a job, by the default owners."""
    options = replace(TriageOptions(TODAY), **changes)  # type: ignore[arg-type]
    return triage(job, default_owners(), options)


@cache
def real(name: str) -> Triage:
    """The bundles of a real job, made once."""
    path = KINETO / REAL[name]
    if not path.is_file():
        pytest.skip("needs the collection of real traces")
    return made(judged(str(path)))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Triage:
    """The bundles of a job in which one of four ranks loads too long."""
    return made(judged(*late_job(tmp_path_factory.mktemp("late"))))


def sessions(all_of: Triage) -> Iterator[tuple[Bundle, Session]]:
    """Every bundle, with a session that holds its slice and nothing else."""
    for bundle in all_of.bundles:
        session = open_session("wasm")
        session.load([bundle.slice])
        yield bundle, session
        session.close()


def check_numbers(all_of: Triage) -> None:
    """Run `queries.sql` on `slice.pftrace`, and compare with what it and README.md state."""
    files = bundle_files(all_of)
    assert all_of.bundles
    for bundle, session in sessions(all_of):
        assert bundle.left_out == 0
        found = QUERY.findall(files[f"{bundle.team.folder}/queries.sql"].decode())
        assert [one[0] for one in found] == [figure.id for figure in bundle.figures]
        readme = files[f"{bundle.team.folder}/README.md"].decode()
        for figure, (_, expected, _, sql) in zip(bundle.figures, found, strict=True):
            ((value,),) = session.query(sql).rows()
            if isinstance(figure.value, str):
                assert value == figure.value
                continue
            assert isinstance(value, int | float)
            assert value == pytest.approx(figure.value, rel=1e-9)
            assert float(expected.split()[0]) == pytest.approx(value, rel=1e-9)
            shown = value_text(replace(figure, value=value))
            where = rf"{re.escape(shown)}`? \[{figure.id}\]"
            assert f"[{figure.id}]" not in readme or re.search(where, readme)


@pytest.mark.parametrize("name", REAL)
def test_every_number_of_real_jobs_is_had_again(name: str) -> None:
    """From the slice alone, by the query beside it."""
    check_numbers(real(name))


def test_every_number_of_a_simulated_job_is_had_again(simulated: Triage) -> None:
    """Also where a slice holds two ranks."""
    check_numbers(simulated)


def test_every_line_with_a_number_names_its_query(simulated: Triage) -> None:
    """Names, advice, and what identifies the inputs aside."""
    for name, data in bundle_files(simulated).items():
        if not name.endswith("README.md"):
            continue
        text = re.sub(r"(`+).*?\1", "", data.decode())
        text = text.partition("## Files")[0]
        for line in text.splitlines():
            is_advice = line.startswith(("**How to", "**What would"))
            assert is_advice or not re.search(r"\d", re.sub(r"\[Q\d+\]", "", line)) or "[Q" in line


def test_a_wait_is_shown_with_the_rank_that_comes_late(simulated: Triage) -> None:
    """The slice of the waiting rank holds that of the late one, on one clock."""
    bundle = next(one for one in simulated.bundles if one.team.id == "parallelism")
    assert bundle.ranks[1] == "rank 3"
    numbers = {one.rank for one in bundle.inputs}
    assert numbers == {int(name.split()[1]) for name in bundle.ranks}


def test_the_loader_of_the_late_rank_is_the_first_bundle(simulated: Triage) -> None:
    """What the late rank does wrong goes to its own team, not to that of those who wait."""
    first = simulated.bundles[0]
    assert (first.team.id, first.ranks) == ("data", ("rank 3",))


@pytest.mark.parametrize("name", REAL)
def test_slices_are_small_and_reports_valid(name: str) -> None:
    """Below ten megabytes; `report.json` reads as a report of those fixes."""
    files = bundle_files(real(name))
    for bundle in real(name).bundles:
        assert len(bundle.slice) < 10_000_000
        report = msgspec.json.decode(files[f"{bundle.team.folder}/report.json"], type=Report)
        assert [fix.id for fix in report.fixes] == [told.fix.id for told in bundle.fixes]


def check_shares(all_of: Triage) -> None:
    """What a page shows of a bundle's report is what it shows of the whole one."""
    whole = all_of.report
    for bundle in all_of.bundles:
        part = bundle.report
        assert budget_of(part) == budget_of(whole)
        assert len([line for line in budget_of(part) if line.startswith("|")]) > 3
        for fix in part.fixes:
            assert saving(fix, part) == saving(fix, whole)


def budget_of(report: Report) -> list[str]:
    """Verdict, length of a step and budget, as markdown."""
    return render(report).partition("**What to do**")[0].splitlines()


@pytest.mark.parametrize("name", ["a100_8rank_control", "mi300_8rank_resnet"])
def test_the_report_of_a_bundle_of_a_real_job_has_the_numbers_of_the_whole(name: str) -> None:
    """Means are over the same steps and ranks, whatever the slice shows."""
    check_shares(real(name))


def test_the_report_of_a_bundle_has_the_numbers_of_the_whole(simulated: Triage) -> None:
    """Also where ranks wait for one."""
    check_shares(simulated)


def test_every_fix_is_in_one_bundle() -> None:
    """None is lost, none is given twice."""
    job = real("dlrm_8rank")
    given = [told.fix.id for bundle in job.bundles for told in bundle.fixes]
    assert sorted(given) == sorted(fix.id for fix in job.report.fixes)


def test_a_slice_that_is_too_large_shrinks_to_the_finding(tmp_path: Path) -> None:
    """Its numbers are those of what is left of it."""
    job = judged(secret_job(tmp_path))
    whole = made(job)
    most = max(len(bundle.slice) for bundle in whole.bundles)
    small = made(job, largest_bytes=most - 500)
    assert any(bundle.shrunk for bundle in small.bundles)
    assert all(len(bundle.slice) < most - 500 for bundle in small.bundles)
    assert all(bundle.left_out == 0 for bundle in small.bundles)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """So that hashes can be compared."""
    path = secret_job(tmp_path)
    assert bundle_files(made(judged(path))) == bundle_files(made(judged(path)))


def test_nothing_secret_is_left_after_redaction(tmp_path: Path) -> None:
    """In no file, nor deflated in a slice; without redaction all of it is there."""
    job = judged(secret_job(tmp_path))
    plain = made(job)
    shown = b"".join(data for _, data in unpacked(bundle_files(plain))).lower()
    assert all(word.encode() in shown for word in SECRET_WORDS)
    hidden = made(job, redact=True)
    assert {one.team.id for one in hidden.bundles} == {one.team.id for one in plain.bundles}
    for name, data in unpacked(bundle_files(hidden)):
        found = [word for word in SECRET_WORDS if word.encode() in data.lower()]
        assert not found, name
    assert all(bundle.left_out == 0 for bundle in hidden.bundles)


def test_names_without_a_word_are_hidden_too(tmp_path: Path) -> None:
    """Initials, numbers and other alphabets, as text or as JSON has them."""
    names = ["张三", "ex::q7", "秘密_kernel", "k_20240501_5551234", "10.12.13.14"]
    hidden = made(judged(hostile_job(tmp_path, *names)), redact=True)
    assert hidden.bundles
    for path, data in unpacked(bundle_files(hidden)):
        for name in names:
            assert name.encode() not in data, path
            assert json.dumps(name)[1:-1].encode() not in data, path


def test_pseudonyms_are_the_same_in_all_files(tmp_path: Path) -> None:
    """What the issue calls an operator is called so in the slice and the queries."""
    hidden = made(judged(secret_job(tmp_path)), redact=True)
    files = bundle_files(hidden)
    bundle = next(one for one in hidden.bundles if one.team.id == "framework")
    (name,) = {one.op for one in bundle.signatures if not one.op.startswith("aten::")}
    session = next(session for one, session in sessions(hidden) if one is bundle)
    assert session.query(f"SELECT count(*) AS n FROM slice WHERE name = '{name}'").ints("n")[0]
    assert f"`{name}`".encode() in files[f"{bundle.team.folder}/README.md"]


@pytest.mark.parametrize("first", range(3))
def test_hostile_names_stay_names(tmp_path: Path, first: int) -> None:
    """They lead out of no folder, end no comment or code span, and blow nothing up."""
    all_of = made(judged(hostile_job(tmp_path, *HOSTILE_NAMES[first::3])))
    files = bundle_files(all_of)
    assert all(bundle.left_out == 0 for bundle in all_of.bundles)
    assert sum(map(len, files.values())) < 3_000_000
    for path, data in files.items():
        assert re.fullmatch(r"([a-z0-9-]+/)?\.?[A-Za-z0-9]+(\.[a-z]+)?", path)
        if path.endswith((".md", ".sql", ".sh")):
            check_inert(path, data.decode())


def check_inert(path: str, text: str) -> None:
    """No control or bidirectional character; outside of code no tag, link or mention."""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    if path.endswith(".md"):
        bare = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
        assert not re.search(r"<[a-z/!]|(?<!\\)!\[|(?<!\\)\]\((?![a-z0-9-]+/README)|@\w", bare)
        assert len([line for line in text.splitlines() if line.startswith("# ")]) == 1
    if path.endswith(".sql"):
        lines = text.splitlines()
        assert all(line.startswith(("--", "SELECT ")) or not line for line in lines)
    if path.endswith(".sh"):
        assert "pwned" not in text
