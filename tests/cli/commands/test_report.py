"""`perfdiag report`: pages and markdown, of traces and of saved reports."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from cli_fakes import FakeAnalysis, Runner
from msgspec import structs

from perfdiag.cli.main import run
from perfdiag.cli.reporters import json
from perfdiag.trace_schemas.report import Report


def test_a_page_goes_to_its_file(perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path) -> None:
    """With -o standard output stays empty, and standard error says how large it is."""
    path = tmp_path / "report.html"
    result = perfdiag("report", "job", "-o", str(path))
    assert (result.code, result.out) == (0, "")
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert f"MB written to {path}" in result.err


def test_notices_go_to_standard_error(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """As analyze says them."""
    result = perfdiag("report", "job", "-o", str(tmp_path / "report.html"))
    assert "error: Device records end" in result.err


def test_quiet(perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path) -> None:
    """With -q nothing is said."""
    assert perfdiag("report", "job", "-q", "-o", str(tmp_path / "a.html")).err == ""


def test_a_page_in_a_pipe(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """Without -o it goes to standard output."""
    assert perfdiag("report", "job", "-q").out.startswith("<!doctype html>")


def test_no_page_on_a_terminal(analysis: FakeAnalysis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two megabytes of source are of no use there; nothing is analysed."""

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal(io.BytesIO()))
    with pytest.raises(SystemExit) as exited:
        run(["report", "job"])
    assert exited.value.code == 2
    assert analysis.paths == ()


@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        (["-o", "a.md"], "### perfdiag"),
        (["-o", "a.MD"], "### perfdiag"),
        (["-o", "a.html"], "<!doctype"),
        (["-o", "a.md", "--format", "html"], "<!doctype"),
        (["-o", "a.txt", "--format", "markdown"], "### perfdiag"),
    ],
)
def test_the_format(
    perfdiag: Runner,
    analysis: FakeAnalysis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    begin: str,
) -> None:
    """By the option, else by the name of the file."""
    monkeypatch.chdir(tmp_path)
    assert perfdiag("report", "job", *arguments).code == 0
    assert Path(arguments[1]).read_text("utf-8").startswith(begin)


def test_options_reach_the_analysis(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """Those that decide what the report says."""
    perfdiag(
        *("report", "a", "b", "--format", "markdown", "--engine", "native", "--jobs", "3"),
        *("--step-marker", "iter", "--time-range", "1:2", "--counters", "gpu.csv"),
        *("--device-track", "^nd", "--time-unit", "ns"),
        *("--counters-offset", "5", "--counters-utc-offset", "Z", "--device", "NVIDIA L4"),
        *("--ceilings", "c.json"),
    )
    assert analysis.paths == ["a", "b"]
    assert {k: v for k, v in analysis.options.items() if k not in ("thresholds", "config")} == {
        "engine": "native",
        "step_marker": "iter",
        "device_track": "^nd",
        "time_unit": "ns",
        "time_range_ns": (1_000_000_000, 2_000_000_000),
        "jobs": 3,
        "counters": ("gpu.csv",),
        "counters_offset_ns": 5,
        "counters_utc_offset_s": 0,
        "device": "NVIDIA L4",
        "ceilings": "c.json",
    }


def test_a_saved_report_needs_no_analysis(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """What analyze wrote as JSON gives the page that the trace gives."""
    saved = tmp_path / "report.json"
    saved.write_bytes(json.encode(report))
    analysed = perfdiag("report", "job", "-q").out
    analysis.paths = ()
    assert perfdiag("report", str(saved), "-q").out == analysed
    assert analysis.paths == ()


@pytest.mark.parametrize(
    "given",
    [
        ("--device", "NVIDIA L4"),
        ("--counters", "gpu.csv"),
        ("--counters-offset", "5"),
        ("--step-marker", "iter"),
        ("--time-unit", "ns"),
        ("--time-range", "1:2"),
        ("--config", "perfdiag.toml"),
        ("--engine", "native"),
    ],
)
def test_a_saved_report_is_not_analysed_otherwise(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path, given: tuple[str, str]
) -> None:
    """Options that would have no effect are refused by name."""
    saved = tmp_path / "report.json"
    saved.write_bytes(json.encode(report))
    result = perfdiag("report", str(saved), *given)
    assert (result.code, result.out) == (2, "")
    assert f"error: {given[0]}: a saved report is shown as it is" in result.err


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Have this in standard input."""
    pipe = io.BufferedReader(io.BytesIO(data))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=pipe))


def test_a_saved_report_may_come_through_a_pipe(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Straight from analyze, larger than what a pipe holds at once."""
    long = structs.replace(report, model={"padding": "x" * 100_000})
    piped(monkeypatch, json.encode(long))
    assert perfdiag("report", "-", "-q", "--format", "markdown").out.startswith("### perfdiag")
    assert analysis.paths == ()


def test_a_trace_in_a_pipe_is_left_for_the_analysis(
    perfdiag: Runner, analysis: FakeAnalysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its first bytes."""
    piped(monkeypatch, b'{"traceEvents": []}')
    perfdiag("report", "-", "--format", "markdown")
    assert analysis.paths == ["-"]
    assert sys.stdin.buffer.read() == b'{"traceEvents": []}'


def test_a_saved_report_may_be_laid_out(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """Somebody may have made it readable."""
    saved = tmp_path / "report.json"
    saved.write_bytes(msgspec.json.format(json.encode(report)))
    assert perfdiag("report", str(saved), "-q", "--format", "markdown").code == 0
    assert analysis.paths == ()


def test_a_damaged_saved_report_is_an_input_that_cannot_be_read(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """The message names the file and says what to do."""
    saved = tmp_path / "report.json"
    saved.write_bytes(json.encode(report)[:-100])
    result = perfdiag("report", str(saved))
    assert result.code == 3
    assert str(saved) in result.err
    assert "analyse the trace anew" in result.err


def test_a_report_of_another_schema_is_refused(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """A later version may mean something else by the same names."""
    saved = tmp_path / "report.json"
    saved.write_bytes(json.encode(structs.replace(report, schema="perfdiag.report/9")))
    result = perfdiag("report", str(saved))
    assert result.code == 3
    assert "perfdiag.report/9" in result.err


def test_a_trace_that_speaks_of_reports_is_a_trace(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """Only the first key tells."""
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": [{"name": "perfdiag.report/1"}], "a": "perfdiag.report/1"}')
    perfdiag("report", str(trace), "--format", "markdown")
    assert analysis.paths == [str(trace)]


def test_the_input_is_not_overwritten(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """A page is not written over the report that it is of."""
    saved = tmp_path / "report.json"
    saved.write_bytes(json.encode(report))
    result = perfdiag("report", str(saved), "-o", str(saved))
    assert result.code == 2
    assert "is one of the inputs" in result.err
