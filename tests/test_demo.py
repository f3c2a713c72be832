"""The trace of the README is what its script makes, and shows what the README says."""

from pathlib import Path

import pytest
from demo import TRACE, job

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.fixes import HELD_UP
from perfdiag.profiler.querying import query_trace
from perfdiag.trace_schemas.report import Report


@pytest.fixture(scope="module")
def report() -> Report:
    return analyze([str(TRACE)], Options())


def test_the_demo_is_small() -> None:
    """It is under 1 MB, like every fixture."""
    assert TRACE.stat().st_size < 1_000_000


def test_the_demo_says_what_its_job_says(report: Report, tmp_path: Path) -> None:
    """Converted and not, the job gives the same verdicts, budgets, steps and fixes."""
    original = analyze([str(job().write(tmp_path / "demo.json.gz"))], Options())
    assert report.ranks == original.ranks
    assert report.job == original.job
    assert report.fixes == original.fixes
    assert report.collectives == original.collectives


def test_the_demo_waits_for_its_loader(report: Report) -> None:
    """The job is bound by its host, most of all by the input, in each of its six steps."""
    assert [step.label for step in report.ranks[0].steps] == ["host-bound"] * 6
    budget = report.job.budget_ns
    assert max(budget, key=lambda leaf: budget[leaf]) == "input"


def test_the_demo_has_fixes_of_two_owners(report: Report) -> None:
    """Loader, all-reduce and copy of the input are found, the dearest first."""
    found = [(fix.id, fix.layer) for fix in report.fixes]
    assert found == [
        ("loader_stall", "input-pipeline"),
        ("exposed_all_reduce", "collectives"),
        ("exposed_input_copy", "input-pipeline"),
    ]


def test_a_read_that_costs_the_demo_nothing_is_no_fix(report: Report) -> None:
    """The device drains at it, but a host that did not wait would be no earlier with the rest."""
    (found,) = [one for one in report.findings if one.id == "draining_sync"]
    assert found.status == "minor"
    assert found.why.endswith(HELD_UP)


def test_every_figure_of_the_demo_can_be_asked_again(report: Report) -> None:
    """`perfdiag query` returns the value of each piece of evidence."""
    for evidence in (one for fix in report.fixes for one in fix.evidence):
        ((value,),) = query_trace(str(TRACE), evidence.sql).rows()
        assert value == evidence.value
