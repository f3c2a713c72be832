"""The tables of the report for people: steps, parts of a step, ranks, collectives."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters import counters, rooflines, strip
from perfdiag.cli.reporters.bars import Bar, label_text
from perfdiag.cli.reporters.summary import (
    CollectiveRow,
    RegionRow,
    StepRow,
    collective_rows,
    hotspots,
    mean_window_ns,
    pick_ranks,
    pick_steps,
    region_rows,
    step_count,
    step_rows,
)
from perfdiag.cli.reporters.units import (
    count,
    duration,
    kernel_name,
    percent,
    plural,
    shorten,
    size,
)
from perfdiag.trace_schemas.counted_steps import steps_counted
from perfdiag.trace_schemas.report import Hotspot, Label, Rank, Report

__all__ = ["tables"]

_MOST_PARTS = 8
"""Annotations and modules shown: beyond those none explains much of a step."""
_MOST_SPOTS = 6
_FIGURES = 60
"""Characters that all but the names of collectives take of a line, at most."""
_WIDE = 110
"""Characters a line from which on a part of the step also shows its longest work."""

Block = tuple[str, str, RenderableType]
"""A title, a remark, and the table."""


def tables(report: Report, console: Console) -> Iterator[Block]:
    """The tables that this report has something for, in reading order."""
    name_width = max(10, console.width // 4)
    mostly = console.width // 4 if console.width >= _WIDE else 0
    regions = region_rows(report)
    phases = [row for row in regions if row.kind == "phase"]
    parts = sorted((r for r in regions if r.kind != "phase"), key=lambda row: -row.dur_ns)
    if len(report.ranks) > 1:
        title, note, table = _ranks(report)
        yield title, note, strip.above(table, report, console)
    steps = step_rows(report)
    if len(steps) > 1 or any(row.step.coverage < 1 for row in steps):
        yield _steps(report, name_width)
    if phases:
        yield (
            "Phases",
            "mean of a step; 1/3: parts that have the label",
            _regions(phases, report, name_width, mostly),
        )
    if parts:
        left_out = len(parts) - _MOST_PARTS
        note = f"the longest; {left_out:,} more in the JSON report" if left_out > 0 else ""
        shown = _regions(parts[:_MOST_PARTS], report, name_width, mostly)
        yield "Annotations and modules", note, shown
    spots = hotspots(spot for rank in report.ranks for spot in rank.top)
    if spots:
        yield _longest(spots, report, console.width)
    if (roofline := rooflines.block(report, console.width)) is not None:
        yield roofline
    if (sampled := counters.block(report)) is not None:
        yield sampled
    if report.collectives:
        yield _collectives(report, console.width)


def _table(*columns: str, bar: bool = True) -> Table:
    """A table without lines; a column is right-aligned when its title starts with `>`."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", expand=bar)
    for column in columns:
        justify = "right" if column.startswith(">") else "left"
        table.add_column(column.lstrip(">"), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    if bar:
        table.add_column("", ratio=1, no_wrap=True)
    return table


def _steps(report: Report, name_width: int) -> Block:
    rows = step_rows(report)
    shown = pick_steps(rows)
    several = len(report.ranks) > 1
    covered = all(row.step.coverage >= 1 for row in shown)
    columns = [">rank"] * several + ["step", ">time", "bound by", ">sure"]
    table = _table(*columns, *[">coverage"] * (not covered))
    longest = max(row.step.dur_ns for row in rows)
    for row in shown:
        cells = [_rank_name(row.rank)] * several + _step_cells(row, name_width, not covered)
        table.add_row(*cells, Bar(row.step.budget_ns, row.step.dur_ns / max(1, longest)))
    left_out = len(rows) - len(shown)
    note = f"{len(shown)} of {len(rows):,}: the slowest, one of each label, the most usual"
    return "Steps", note if left_out else "", table


def _step_cells(row: StepRow, name_width: int, with_coverage: bool) -> list[str | Text]:
    step = row.step
    name = shorten(step.name or str(step.ordinal), name_width)
    cells: list[str | Text] = [
        Text(name),
        duration(step.dur_ns),
        label_text(step.label),
        _sure(step.label, step.confidence),
    ]
    coverage = Text("" if step.coverage >= 1 else percent(step.coverage, 1), "bold red")
    return [*cells, coverage] if with_coverage else cells


def _regions(rows: Sequence[RegionRow], report: Report, name_width: int, mostly: int) -> Table:
    """The parts of a step; `mostly`: room for the work that takes longest in each, 0 for none."""
    steps = max(1, step_count(report))
    whole = sum(row.step.dur_ns for row in step_rows(report))
    table = _table("name", ">time", ">share", "bound by", *["mostly"] * (mostly > 0))
    longest = max(1, *(row.dur_ns for row in rows))
    for row in rows:
        label = label_text(row.label)
        if row.agreeing < row.n:
            label.append(f" {row.agreeing}/{row.n}", "dim")
        table.add_row(
            Text(shorten(row.name, name_width)),
            duration(row.dur_ns / steps),
            percent(row.dur_ns, whole),
            label,
            *[Text(_mostly(row, mostly), "dim")] * (mostly > 0),
            Bar(row.budget_ns, row.dur_ns / longest),
        )
    return table


def _mostly(row: RegionRow, width: int) -> str:
    """The work that takes longest in a part of the step, and its share of the part's time."""
    if not row.top or not row.dur_ns:
        return ""
    spot = row.top[0]
    share = f" {min(1.0, spot.dur_ns / row.dur_ns):.0%}"
    return shorten(spot.op or spot.family, max(4, width - len(share))) + share


def _longest(spots: Sequence[Hotspot], report: Report, width: int) -> Block:
    """The device work that takes longest, by operator and name."""
    steps, busy = max(1, steps_counted(report)), report.job.totals_ns.busy
    table = _table("operator", "kernel", ">calls", ">time", ">busy", bar=False)
    for spot in spots[:_MOST_SPOTS]:
        table.add_row(
            Text(shorten(spot.op or "-", width // 4)),
            Text(kernel_name(spot.name, width // 3), "dim"),
            count(spot.count / steps),
            duration(spot.dur_ns / steps),
            percent(spot.dur_ns, busy),
        )
    return "Longest work", "a step and rank; what overlaps counts each time", table


def _ranks(report: Report) -> Block:
    shown = pick_ranks(report)
    waiting = any(rank.waits for rank in report.ranks)
    table = _table(">rank", ">step", ">busy", *[">waits", ">for"] * waiting, "bound by", ">sure")
    longest = max(1, *(mean_window_ns(rank) for rank in report.ranks))
    for rank in shown:
        totals, is_culprit = rank.totals_ns, rank.rank == report.job.culprit_rank
        table.add_row(
            Text(_rank_name(rank.rank), "bold red" if is_culprit else ""),
            duration(mean_window_ns(rank)),
            percent(totals.busy, totals.window),
            *_waits(rank) * waiting,
            label_text(rank.label),
            _sure(rank.label, rank.confidence),
            Bar(rank.budget_ns, mean_window_ns(rank) / longest),
        )
    left_out = len(report.ranks) - len(shown)
    note = "each by its own time: a wait counts as collective"
    some = f"{len(shown)} of {len(report.ranks):,}, those that wait least; " if left_out else ""
    return "Ranks", some + note, table


def _waits(rank: Rank) -> list[str]:
    """The share of its time that a rank waits, and for whom most of it."""
    waits = rank.budget_ns.get("collective_wait", 0)
    late = _rank_name(rank.waits[0].late_rank) if rank.waits else "-"
    return [percent(waits, rank.totals_ns.window), late]


def _sure(label: Label, confidence: float) -> str:
    """How sure a label is; that nothing is known needs no probability."""
    return "" if label == "unknown" else f"{confidence:.0%}"


def _rank_name(rank: int | None) -> str:
    return "?" if rank is None else str(rank)


def _collectives(report: Report, width: int) -> Block:
    rows = collective_rows(report.collectives)
    shown = rows[:_MOST_PARTS]
    steps = max(1, step_count(report))
    split = any(row.wait_ns or row.bus_bandwidth for row in rows)
    linked = any(row.link_share is not None for row in rows)
    timed = not split or width >= _WIDE
    last = [">waits", ">bus", *[">link"] * linked] if split else [">hidden"]
    columns = ("operation", "group", ">calls", ">size", *[">time"] * timed, ">exposed", *last)
    table = _table(*columns, bar=False)
    op_width = min(width // 4, max(len(row.op) for row in shown))
    group_width = max(6, min(width // 4, width - _FIGURES - op_width))
    for row in shown:
        table.add_row(
            Text(shorten(row.op, op_width)),
            Text(shorten(row.group, group_width)),
            count(row.count / steps),
            Text(row.size_class),
            *[duration(row.total_ns / steps)] * timed,
            duration(row.exposed_ns / steps),
            *(_split_cells(row, steps)[: 2 + linked] if split else [_hidden(row)]),
        )
    more = f"; {plural(len(rows) - len(shown), 'more row')} in the JSON report"
    return "Collectives", "per step and rank" + (more if len(rows) > len(shown) else ""), table


def _split_cells(row: CollectiveRow, steps: int) -> list[str]:
    """How long it waits for late ranks, how fast it moves data then, and how near that is to best.

    The last is the share of the peak of the device's links.
    """
    bus = "" if row.bus_bandwidth is None else f"{size(row.bus_bandwidth)}/s"
    link = "" if row.link_share is None else f"{row.link_share:.0%}"
    return [duration(row.wait_ns / steps), bus, link]


def _hidden(row: CollectiveRow) -> str:
    return percent(row.total_ns - row.exposed_ns, row.total_ns)
