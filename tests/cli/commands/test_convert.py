"""`perfdiag convert`: a trace in, a Perfetto trace out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import Runner
from counter_tables import counter_table

from perfdiag.profiler.opening import Adjust
from perfdiag.trace_schemas.errors import InputError


@dataclass(frozen=True)
class Summary:
    """What a conversion did."""

    events: int = 109_000
    bytes_in: int = 34_800_000
    bytes_out: int = 3_100_000


@pytest.fixture
def conversion(install_module: Callable[..., None]) -> list[tuple[Any, ...]]:
    """What `perfdiag convert` calls; it remembers the question."""
    asked: list[tuple[Any, ...]] = []

    def convert(path: str, output: Path, *, adjust: Adjust | None) -> Summary:
        asked.append((path, output) if adjust is None else (path, output, adjust))
        if path == "bad.json":
            raise InputError(path, "it is empty")
        output.write_bytes(b"trace")
        return Summary()

    install_module("perfdiag.profiler", "convert", convert=convert)
    return asked


def test_the_summary_is_a_remark(
    perfdiag: Runner, conversion: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """The result is the file; what was done is said on standard error."""
    out = tmp_path / "a.pftrace"
    result = perfdiag("convert", "a.json", "-o", str(out))
    assert (result.code, result.out) == (0, "")
    assert conversion == [("a.json", out)]
    assert "109,000 events, 34.8 MB read, 3.10 MB written" in result.err


def test_quiet(perfdiag: Runner, conversion: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """With -q nothing is said."""
    assert perfdiag("convert", "a.json", "-q", "-o", str(tmp_path / "a.pftrace")).err == ""


def test_a_broken_input(
    perfdiag: Runner, conversion: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """An unreadable trace is exit code 3."""
    assert perfdiag("convert", "bad.json", "-o", str(tmp_path / "a.pftrace")).code == 3


def test_the_input_is_never_overwritten(
    perfdiag: Runner, conversion: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """A trace cannot be converted onto itself."""
    trace = tmp_path / "a.json"
    trace.write_text("{}")
    assert perfdiag("convert", str(trace), "-o", str(trace)).code == 2
    assert conversion == []


def test_counters_are_read_before_the_trace(
    perfdiag: Runner, conversion: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """The conversion is told how to add them; a file that is not there stops it."""
    table = tmp_path / "gpu.csv"
    table.write_text(counter_table(1000, [{"power.draw [W]": 300}]))
    out = str(tmp_path / "a.pftrace")
    assert perfdiag("convert", "a.json", "-o", out, "--counters", str(table)).code == 0
    assert len(conversion[0]) == 3
    result = perfdiag("convert", "a.json", "-o", out, "--counters", str(tmp_path / "none.csv"))
    assert (result.code, len(conversion)) == (3, 1)
    assert "none.csv" in result.err


def test_counters_are_never_overwritten(
    perfdiag: Runner, conversion: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """A file of counters is an input like the trace."""
    table = tmp_path / "gpu.csv"
    table.write_text(counter_table(1000, [{"power.draw [W]": 300}]))
    assert perfdiag("convert", "a.json", "-o", str(table), "--counters", str(table)).code == 2
