"""What people see of hardware counters."""

import io
from typing import Literal

import pytest
from cli_fakes import poisoned
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters import terminal
from perfdiag.cli.reporters.counters import value
from perfdiag.trace_schemas import report as r
from perfdiag.trace_schemas.report import Report


def figure(metric: str, unit: str, mean: float) -> r.CounterFigure:
    return r.CounterFigure(
        metric=metric,
        unit=unit,
        mean=mean,
        p10=mean * 0.9,
        p90=mean * 1.05,
        coverage=0.987,
        samples=120,
        file="gpu.csv",
    )


FIGURES = [
    figure("temperature", "C", 71.0),
    figure("power", "W", 612.4),
    figure("sm_clock", "Hz", 1.755e9),
    figure("memory_used", "bytes", 73.4e9),
    figure("tensor_active", "ratio", 0.412),
]


def sampled(report: Report, count: int = 5) -> Report:
    """Rank 2 with counters of all steps and of a phase."""
    why = "While kernels run arithmetic units are active for 80% of the cycles."
    parts: tuple[tuple[Literal["steps", "phase"], str], ...]
    parts = (("steps", ""), ("phase", "backward"))
    rows = [
        r.CounterRegion(
            kind=kind,
            name=name,
            ordinal=None,
            dur_ns=10**9,
            figures=FIGURES[:count],
            roof="compute",
            why=why,
        )
        for kind, name in parts
    ]
    ranks = [replace(rank, counters=rows if rank.rank == 2 else []) for rank in report.ranks]
    return replace(report, ranks=ranks)


def unplaced(report: Report) -> Report:
    """A file of counters without a place in the traces."""
    line = r.CounterTimeline(
        metric="power",
        unit="W",
        device=0,
        entity="GPU 0",
        samples=1200,
        period_ns=10**8,
        mean=600.0,
        p10=590.0,
        p90=610.0,
    )
    file = r.CounterFile(
        path="gpu.csv",
        format="nvidia-smi",
        bytes=1,
        sha256="0" * 64,
        clock="local",
        ranks=[],
        timelines=[line],
        kernels=0,
        facts={},
    )
    return replace(report, counters=[file])


def block(report: Report, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    parts = terminal.render(report, console).split("\n\n")
    return next((part.splitlines() for part in parts if part.startswith("Counters")), [])


def test_without_counters_there_is_no_block(report: Report) -> None:
    """Most traces come alone."""
    plain = replace(report, ranks=[replace(rank, counters=[]) for rank in report.ranks])
    assert block(replace(plain, counters=[])) == []


def test_counters_in_the_units_that_people_use(report: Report) -> None:
    """Those that decide most come first; coverage stands beside each."""
    lines = block(sampled(report))
    assert lines[0] == "Counters  mean over the steps, rank 2"
    assert [line.split()[:2] for line in lines[2:7]] == [
        ["tensor", "active"],
        ["sm", "clock"],
        ["power", "612.4"],
        ["temperature", "71"],
        ["memory", "used"],
    ]
    assert lines[3].split()[2:] == ["1,755", "MHz", "1,580", "MHz", "1,843", "MHz", "98.7%"]


def test_the_verdict_of_counters_follows(report: Report) -> None:
    """Of all steps and of the phases."""
    text = " ".join(" ".join(block(sampled(report))).split())
    assert text.count("arithmetic units are active for 80%") == 2
    assert "backward: While kernels run" in text


def test_counters_without_a_place_are_shown_as_they_are(report: Report) -> None:
    """With the number of samples in place of a coverage."""
    lines = block(unplaced(report))
    assert "they have no place in the trace" in lines[0]
    assert lines[2].split() == ["power,", "GPU", "0", "600", "W", "590", "W", "610", "W", "1,200"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit(report: Report, width: int) -> None:
    """Also with names that attack the terminal."""
    for one in (sampled(report), unplaced(report), poisoned(sampled(report))):
        console = Console(file=io.StringIO(), width=width, color_system=None)
        assert all(cell_len(line) <= width for line in terminal.render(one, console).splitlines())


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.123, "ratio", "12.3%"),
        (1.41e9, "Hz", "1,410 MHz"),
        (25e9, "bytes/s", "25.0 GB/s"),
        (65.4, "C", "65 °C"),
        (1234.5, "1/s", "1,234 1/s"),
    ],
)
def test_units(number: float, unit: str, text: str) -> None:
    """A figure with the unit in which tools show it."""
    assert value(number, unit) == text
