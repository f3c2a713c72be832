"""`perfdiag analyze --fail-on`: exit codes, lines, and the file for CI systems."""

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from cli_fakes import FakeAnalysis, Runner, poisoned
from hand_report import straggler_report
from msgspec import structs

from perfdiag.trace_schemas.report import Report


@pytest.mark.parametrize(
    ("expressions", "code"),
    [
        (["input>90%"], 0),
        (["input>10%"], 1),
        (["fix:late_rank"], 2),
        (["input>90%", "label=memory-bound"], 0),
        (["input>90%", "fix:late_rank"], 2),
        (["fix:late_rank", "input>10%"], 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst(
    perfdiag: Runner, analysis: FakeAnalysis, expressions: list[str], code: int
) -> None:
    """0 all pass, 1 one fails, 2 none fails but one cannot be told."""
    options = [part for one in expressions for part in ("--fail-on", one)]
    assert perfdiag("analyze", "job", *options).code == code


def test_the_report_is_still_the_result(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report
) -> None:
    """Standard output is the same as without a gate; what gates say goes to standard error."""
    result = perfdiag("analyze", "job", "--format", "json", "--fail-on", "input>10%")
    assert msgspec.json.decode(result.out, type=Report) == report
    assert "gate fail: input>10%: it takes 17 ms of a step of 81.05 ms, 21.0%" in result.err


def test_each_gate_has_its_line(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """In the order in which they were given."""
    result = perfdiag("analyze", "job", "--fail-on", "culprit=1", "--fail-on", "culprit")
    lines = [line for line in result.err.splitlines() if line.startswith("gate ")]
    assert lines == [
        "gate pass: culprit=1: the others wait for rank 2",
        "gate fail: culprit: the others wait for rank 2",
    ]


def test_quiet_names_only_what_does_not_pass(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """A build that fails says why even then."""
    result = perfdiag("analyze", "job", "-q", "--fail-on", "culprit=1", "--fail-on", "culprit")
    assert result.err == "gate fail: culprit: the others wait for rank 2\n"


def test_a_wrong_expression_costs_no_analysis(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """It is wrong usage; that the line begins with `error:` tells it from inconclusive."""
    result = perfdiag("analyze", "job", "--fail-on", "gpu_idle>5%")
    assert result.code == 2
    assert result.err.startswith("error: 'gpu_idle>5%' is no gate")
    assert analysis.paths == ()


def test_inconclusive_is_no_error(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """Its line begins with `gate inconclusive:`, and the report is there."""
    result = perfdiag("analyze", "job", "-q", "--fail-on", "fix:late_rank")
    assert result.code == 2
    assert result.err.startswith("gate inconclusive: fix:late_rank: ")
    assert "HOST-BOUND" in result.out


def test_junit_holds_every_gate(perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path) -> None:
    """The file is written whether the build fails or not."""
    path = tmp_path / "gates.xml"
    options = ("--fail-on", "culprit", "--fail-on", "input>90%", "--junit", str(path))
    assert perfdiag("analyze", "job", *options).code == 1
    cases = ET.parse(path).getroot().iter("testcase")
    assert {case.get("name"): len(case.findall("failure")) for case in cases} == {
        "culprit": 1,
        "input>90%": 0,
    }


def test_junit_without_gates_is_wrong_usage(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """An empty suite would look like a pass."""
    result = perfdiag("analyze", "job", "--junit", str(tmp_path / "gates.xml"))
    assert result.code == 2
    assert "--fail-on" in result.err
    assert analysis.paths == ()


def test_junit_does_not_overwrite_a_trace(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """It is a result like the report."""
    trace = tmp_path / "a.json"
    trace.write_text("{}")
    result = perfdiag("analyze", str(trace), "--fail-on", "culprit", "--junit", str(trace))
    assert result.code == 2
    assert trace.read_text() == "{}"


def test_hostile_names_reach_neither_terminal_nor_file(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """Reasons quote names: they are cleaned on the way out."""
    report = poisoned(straggler_report())
    job = structs.replace(report.job, label="unknown", by_rules="unknown")
    analysis.answer = structs.replace(report, job=job)
    path = tmp_path / "gates.xml"
    options = ("--fail-on", "input>1%", "--fail-on", "notice:error", "--junit", str(path))
    result = perfdiag("analyze", "job", "-q", *options)
    assert result.code == 1
    assert "\x1b" not in result.err
    assert len(result.err.splitlines()) == 2
    assert len([*ET.parse(path).getroot().iter("testcase")]) == 2


def test_the_report_and_the_file_are_two(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """One would be lost; that is said before the work."""
    both = str(tmp_path / "same.x")
    result = perfdiag("analyze", "job", "-o", both, "--junit", both, "--fail-on", "culprit")
    assert (result.code, "both results" in result.err) == (2, True)
    assert analysis.paths == ()
