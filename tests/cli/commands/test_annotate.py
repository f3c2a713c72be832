"""`perfdiag annotate`: traces in, a trace with the verdict drawn over it out."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from cli_fakes import Runner
from kineto_builder import GEMM, KinetoBuilder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A step of one kernel."""
    b = KinetoBuilder()
    with b.step():
        b.launch(GEMM, 400)
        b.sync()
    return b.write(tmp_path / "in.json")


def test_the_size_is_a_remark(perfdiag: Runner, trace: Path, tmp_path: Path) -> None:
    """The result is the file; how to open it is said on standard error."""
    out = tmp_path / "out.pftrace"
    result = perfdiag("annotate", str(trace), "-o", str(out))
    assert (result.code, result.out) == (0, "")
    assert "1 rank, " in result.err
    assert "ui.perfetto.dev" in result.err
    shown = perfdiag("query", str(out), "SELECT label FROM perfdiag_verdict", "--format", "csv")
    assert shown.out.split() == ["label", *["compute-bound"] * (len(shown.out.split()) - 1)]


def test_quiet(perfdiag: Runner, trace: Path, tmp_path: Path) -> None:
    """With -q nothing is said."""
    assert perfdiag("annotate", str(trace), "-q", "-o", str(tmp_path / "a.pftrace")).err == ""


def test_a_broken_input(perfdiag: Runner, tmp_path: Path) -> None:
    """An unreadable trace is exit code 3, and leaves no file."""
    (tmp_path / "bad.json").write_text("{}")
    out = tmp_path / "a.pftrace"
    assert perfdiag("annotate", str(tmp_path / "bad.json"), "-o", str(out)).code == 3
    assert not out.exists()


@pytest.mark.parametrize("name", ["in.json", "missing/out.pftrace"])
def test_a_result_that_cannot_be_written(
    perfdiag: Runner, trace: Path, tmp_path: Path, name: str
) -> None:
    """The input is never overwritten, and no folder is made: exit code 2."""
    before = trace.read_bytes()
    assert perfdiag("annotate", str(trace), "-o", str(tmp_path / name)).code == 2
    assert trace.read_bytes() == before


def test_json_of_what_is_no_json(perfdiag: Runner, trace: Path, tmp_path: Path) -> None:
    """Wrong usage, and the message says what to do."""
    made = tmp_path / "a.pftrace"
    perfdiag("annotate", str(trace), "-o", str(made))
    result = perfdiag("annotate", str(made), "-o", str(tmp_path / "out.json"))
    assert result.code == 2
    assert ".pftrace" in result.err


@pytest.mark.parametrize("name", ["out.JSON", "out.Json.GZ"])
def test_json_in_capital_letters(perfdiag: Runner, trace: Path, tmp_path: Path, name: str) -> None:
    """Endings count whatever their case."""
    out = tmp_path / name
    assert perfdiag("annotate", str(trace), "-o", str(out)).code == 0
    data = out.read_bytes()
    assert json.loads(gzip.decompress(data) if name.endswith("GZ") else data)["traceEvents"]


def test_a_name_with_an_exclamation_mark(perfdiag: Runner, trace: Path, tmp_path: Path) -> None:
    """It is no member of an archive, also when the result is there already."""
    odd = tmp_path / "tr!x.json"
    shutil.copy(trace, odd)
    for _ in range(2):
        assert perfdiag("annotate", str(odd), "-o", str(tmp_path / "out.json")).code == 0
    before = odd.read_bytes()
    assert perfdiag("annotate", str(odd), "-o", str(odd)).code == 2
    assert odd.read_bytes() == before


def test_a_trace_of_the_folder_is_not_overwritten(
    perfdiag: Runner, trace: Path, tmp_path: Path
) -> None:
    """The folder is the input, and so is all that is read in it."""
    before = trace.read_bytes()
    result = perfdiag("annotate", str(tmp_path), "-o", str(trace))
    assert (result.code, "is one of the inputs" in result.err) == (2, True)
    assert trace.read_bytes() == before
