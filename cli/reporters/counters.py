"""Hardware counters for people: what the device was doing in the steps."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.units import clean, percent, plural, sentence, shorten, size
from perfdiag.trace_schemas.report import CounterFigure, CounterTimeline, Rank, Report

__all__ = ["block", "value"]

_MOST_ROWS = 16
_NAME_WIDTH = 24
_FIRST = (
    "tensor_active",
    "fp64_active",
    "fp32_active",
    "fp16_active",
    "dram_active",
    "sm_active",
    "sm_occupancy",
    "gpu_busy",
    "sm_clock",
    "sm_clock_limit",
    "throttled",
    "power",
    "power_limit",
    "temperature",
    "memory_used",
    "nvlink_tx",
    "nvlink_rx",
    "pcie_tx",
    "pcie_rx",
)
"""The counters that decide most, in the order in which they are read; others follow by name."""


class _Row(NamedTuple):
    metric: str
    unit: str
    mean: float
    p10: float
    p90: float
    cover: str


def block(report: Report) -> tuple[str, str, RenderableType] | None:
    """One rank's counters over all its steps, or those of files that have no place in the trace.

    Returns:
        Title, remark and table; None where no counters were given.
    """
    ranks = [rank for rank in report.ranks if rank.counters]
    if ranks:
        rank = _chosen(report, ranks)
        rows = [_placed(figure) for figure in rank.counters[0].figures]
        body = Group(_table(rows, "coverage"), *_verdicts(rank))
        return "Counters", _note(report, rank, len(rows)), body
    lines = [line for file in report.counters for line in file.timelines]
    if not lines:
        return None
    note = "of whole files: they have no place in the trace, see the notices"
    return "Counters", note, _table([_whole(line) for line in lines], "samples")


def _chosen(report: Report, ranks: Sequence[Rank]) -> Rank:
    """The rank that the others wait for, or the first."""
    culprit = (rank for rank in ranks if rank.rank == report.job.culprit_rank)
    return next(culprit, ranks[0])


def _note(report: Report, rank: Rank, count: int) -> str:
    others = sum(bool(other.counters) for other in report.ranks) - 1
    parts = ["mean over the steps"]
    if len(report.ranks) > 1:
        name = "?" if rank.rank is None else str(rank.rank)
        more = f"; {plural(others, 'more rank')} in the JSON report" if others else ""
        parts.append(f"rank {name}{more}")
    if count > _MOST_ROWS:
        parts.append(f"{count - _MOST_ROWS} more in the JSON report")
    return ", ".join(parts)


def _placed(figure: CounterFigure) -> _Row:
    cover = percent(figure.coverage, 1)
    return _Row(figure.metric, figure.unit, figure.mean, figure.p10, figure.p90, cover)


def _whole(line: CounterTimeline) -> _Row:
    name = f"{line.metric}, {line.entity}" if line.entity else line.metric
    return _Row(name, line.unit, line.mean, line.p10, line.p90, f"{line.samples:,}")


def _table(rows: Iterable[_Row], cover: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("counter", no_wrap=True)
    for name in ("mean", "p10", "p90", cover):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(rows, key=_order)[:_MOST_ROWS]:
        name = shorten(clean(row.metric).replace("_", " "), _NAME_WIDTH)
        figures = (value(figure, row.unit) for figure in (row.mean, row.p10, row.p90))
        table.add_row(Text(name), *(Text(figure) for figure in figures), row.cover)
    return table


def _order(row: _Row) -> tuple[int, str]:
    metric = row.metric.partition(",")[0]
    return _FIRST.index(metric) if metric in _FIRST else len(_FIRST), row.metric


def _verdicts(rank: Rank) -> list[Text]:
    """What the counters say holds kernels up: in all steps, then in each phase."""
    told = [r for r in rank.counters if r.kind in ("steps", "phase") and r.roof != "unknown"]
    return [
        Text.assemble((f"{clean(region.name)}: " if region.name else "", "bold")).append(
            sentence(region.why), "dim"
        )
        for region in told
    ]


def value(number: float, unit: str) -> str:
    """A figure of a counter in the unit that people use."""
    if unit in ("ratio", "flag"):
        return f"{number:.1%}"
    if unit in ("bytes", "bytes/s"):
        return size(number) + unit.removeprefix("bytes")
    if unit == "Hz":
        return f"{number / 1e6:,.0f} MHz"
    if unit == "C":
        return f"{number:.0f} °C"
    return f"{number:,.4g} {shorten(unit, 12)}".rstrip()
