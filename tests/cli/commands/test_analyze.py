"""`perfdiag analyze`: options in, report out."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cli_fakes import FakeAnalysis, Runner

from perfdiag.cli.main import run
from perfdiag.trace_schemas.report import Report


def test_json_is_the_report_and_nothing_else(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report
) -> None:
    """Standard output is one JSON object that decodes to the report."""
    result = perfdiag("analyze", "job", "--format", "json")
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert msgspec.json.decode(result.out, type=Report) == report


def test_notices_go_to_standard_error(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """Errors and warnings are said there in either format; infos are not."""
    result = perfdiag("analyze", "job", "--format", "json")
    assert "error: Device records end" in result.err
    assert "slice.overlap" in result.err
    assert "Clocks differ" not in result.err


def test_verbose_says_infos_too(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """With -v infos are listed."""
    assert "Clocks differ" in perfdiag("analyze", "job", "-v").err


def test_quiet_says_nothing_on_standard_error(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """With -q only the result is left."""
    result = perfdiag("analyze", "job", "-q")
    assert result.err == ""
    assert "HOST-BOUND" in result.out


def test_a_table_is_the_default_in_a_pipe_too(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """The format does not depend on where the result goes, and a pipe gets no colours."""
    result = perfdiag("analyze", "job")
    assert result.out.startswith("perfdiag 4 files")
    assert "\x1b" not in result.out


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


OnTerminal = Callable[[], tuple[str, str]]


@pytest.fixture
def on_terminal(analysis: FakeAnalysis, monkeypatch: pytest.MonkeyPatch) -> OnTerminal:
    """Analyse with standard output and standard error on a terminal; gives what each got."""

    def run_it() -> tuple[str, str]:
        out, err = Terminal(), Terminal()
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        with pytest.raises(SystemExit):
            run(["analyze", "job"])
        return out.text(), err.text()

    return run_it


def test_a_terminal_gets_colours(on_terminal: OnTerminal) -> None:
    """Labels are coloured on a terminal."""
    assert "\x1b[38;" in on_terminal()[0]


def test_no_color_is_honoured(on_terminal: OnTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR classes are told apart by glyphs."""
    monkeypatch.setenv("NO_COLOR", "1")
    out, _ = on_terminal()
    assert "\x1b[38;" not in out
    assert "░" in out


def test_notices_are_not_said_twice_on_one_terminal(on_terminal: OnTerminal) -> None:
    """Where the table ends with the notices, standard error does not repeat them."""
    out, err = on_terminal()
    assert "Device records end" in out
    assert "Device records end" not in err


def test_progress_only_on_a_terminal(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """Nobody watches a pipe."""
    perfdiag("analyze", "job")
    assert analysis.progress is None


def test_progress_on_a_terminal(on_terminal: OnTerminal) -> None:
    """On a terminal the analysis says how far it is; the stage is no markup."""
    _, err = on_terminal()
    assert "read [red]a.json" in err
    assert "50%" in err


def test_options_reach_the_analysis(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """Each option arrives in the unit that the analysis wants."""
    config = tmp_path / "mine.toml"
    config.write_text("[thresholds.loader_stall]\nshare = 0.5\n")
    perfdiag(
        *("analyze", "a.json", "b.json", "--engine", "native", "--step-marker", r"iter \d+"),
        *("--device-track", "^nd", "--time-unit", "ns", "--time-range", "1.5:3"),
        *("--max-memory", "2GiB", "--deadline", "30", "--config", str(config), "--jobs", "3"),
        *("--counters", "gpu.csv", "--counters", "cpu.csv", "--counters-offset", "-1_000"),
        *("--counters-utc-offset", "-05:30", "--device", "NVIDIA L4", "--ceilings", "c.json"),
    )
    assert analysis.paths == ["a.json", "b.json"]
    assert analysis.options == {
        "engine": "native",
        "step_marker": r"iter \d+",
        "device_track": "^nd",
        "time_unit": "ns",
        "max_memory_bytes": 2 * 1024**3,
        "deadline_s": 30.0,
        "time_range_ns": (1_500_000_000, 3_000_000_000),
        "thresholds": {"loader_stall": {"share": 0.5}},
        "config": str(config),
        "jobs": 3,
        "counters": ("gpu.csv", "cpu.csv"),
        "counters_offset_ns": -1000,
        "counters_utc_offset_s": -19_800,
        "device": "NVIDIA L4",
        "ceilings": "c.json",
    }


def test_defaults_of_options(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """Without options the analysis decides for itself."""
    perfdiag("analyze", "-")
    assert analysis.paths == ["-"]
    assert analysis.options == {
        "engine": "wasm",
        "step_marker": None,
        "device_track": None,
        "time_unit": None,
        "max_memory_bytes": None,
        "deadline_s": 600.0,
        "time_range_ns": None,
        "thresholds": {},
        "config": None,
        "jobs": os.cpu_count(),
        "counters": (),
        "counters_offset_ns": None,
        "counters_utc_offset_s": None,
        "device": None,
        "ceilings": None,
    }


@pytest.mark.parametrize(
    ("text", "seconds"), [("+02:00", 7200), ("-0530", -19_800), ("3600", 3600), ("Z", 0)]
)
def test_offsets_from_utc(
    perfdiag: Runner, analysis: FakeAnalysis, text: str, seconds: int
) -> None:
    """As dates have them, or in seconds."""
    perfdiag("analyze", "-", "--counters-utc-offset", text)
    assert analysis.options["counters_utc_offset_s"] == seconds


def test_the_result_does_not_overwrite_counters(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """A file of counters is an input like a trace."""
    path = tmp_path / "gpu.csv"
    path.write_text("a")
    result = perfdiag("analyze", "-", "--counters", str(path), "-o", str(path))
    assert result.code == 2
    assert "is one of the inputs" in result.err


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--step-marker", "(", "is not a regular expression"),
        ("--device-track", "*", "is not a regular expression"),
        ("--time-range", "1.5", "is not START:END"),
        ("--time-range", "a:b", "is not START:END"),
        ("--time-range", "nan:2", "is not START:END"),
        ("--time-range", "3:1", "is an empty range"),
        ("--time-range", "-1:1", "is an empty range"),
        ("--max-memory", "lots", "is not a size"),
        ("--max-memory", "0", "is no memory at all"),
        ("--deadline", "0", "is not a time in seconds"),
        ("--counters-offset", "1.5", "is not a number of nanoseconds"),
        ("--counters-offset", "9" * 20, "is not a number of nanoseconds"),
        ("--counters-utc-offset", "CET", "is not an offset from UTC"),
        ("--counters-utc-offset", "7200000", "is not an offset from UTC"),
        ("--deadline", "nan", "is not a time in seconds"),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence(
    perfdiag: Runner, analysis: FakeAnalysis, option: str, value: str, sentence: str
) -> None:
    """Wrong values are exit code 2 and no analysis."""
    result = perfdiag("analyze", "job", f"{option}={value}")
    assert result.code == 2
    assert sentence in result.err
    assert analysis.paths == ()


def test_output_file_has_the_whole_result(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """With -o standard output stays empty, and notices are in the file and on standard error."""
    path = tmp_path / "report.txt"
    result = perfdiag("analyze", "job", "-o", str(path))
    assert result.out == ""
    assert "Device records end" in result.err
    assert "Device records end" in path.read_text("utf-8")


def test_output_file_as_json(
    perfdiag: Runner, analysis: FakeAnalysis, report: Report, tmp_path: Path
) -> None:
    """With -o the JSON report goes to the file."""
    path = tmp_path / "report.json"
    perfdiag("analyze", "job", "--format", "json", "--output", str(path))
    assert msgspec.json.decode(path.read_bytes(), type=Report) == report


@pytest.mark.parametrize("name", ["missing/report.json", "."])
def test_an_output_that_cannot_be_is_refused_first(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path, name: str
) -> None:
    """The analysis does not run for a result that has no place to go."""
    result = perfdiag("analyze", "job", "-o", str(tmp_path / name))
    assert result.code == 2
    assert "cannot write" in result.err
    assert analysis.paths == ()


def test_an_input_is_never_overwritten(
    perfdiag: Runner, analysis: FakeAnalysis, tmp_path: Path
) -> None:
    """The result file cannot be one of the inputs."""
    trace = tmp_path / "a.json"
    trace.write_text("{}")
    result = perfdiag("analyze", str(trace), "-o", str(trace))
    assert result.code == 2
    assert trace.read_text() == "{}"


def test_a_reader_that_has_seen_enough_is_no_error(
    analysis: FakeAnalysis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`perfdiag analyze job | head -1` ends quietly."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        with pytest.raises(SystemExit) as exited:
            run(["analyze", "job", "-q"])
    assert exited.value.code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_said(perfdiag: Runner, analysis: FakeAnalysis) -> None:
    """A result that cannot be written whole is an error with the reason."""
    result = perfdiag("analyze", "job", "-o", "/dev/full")
    assert result.code == 2
    assert "No space left" in result.err


def test_hostile_names_stay_valid_json(
    perfdiag: Runner, analysis: FakeAnalysis, hostile_report: Report
) -> None:
    """Names that are not valid text do not break the JSON."""
    analysis.answer = hostile_report
    result = perfdiag("analyze", "job", "--format", "json", "-q")
    assert json.loads(result.out)["job"]["label"] == "host-bound"
