"""Where the time goes: the budget of the job, of its ranks and of its steps."""

from collections.abc import Iterable, Iterator, Mapping

from perfdiag.cli.reporters.bars import LEAF_TEXT, leaves_of
from perfdiag.cli.reporters.page import figures
from perfdiag.cli.reporters.page.figures import Figure
from perfdiag.cli.reporters.page.markup import Child, Html, named, tag
from perfdiag.cli.reporters.page.parts import (
    Cell,
    bar,
    cap,
    cell,
    chart,
    folded,
    label_mark,
    section,
    swatch,
    table,
)
from perfdiag.cli.reporters.summary import (
    StepRow,
    mean_of,
    mean_window_ns,
    pick_ranks,
    pick_steps,
    step_rows,
)
from perfdiag.cli.reporters.units import duration, percent, plural, shorten
from perfdiag.trace_schemas.counted_steps import counted_steps, steps_counted
from perfdiag.trace_schemas.report import LEAF_LABEL, Rank, Report

__all__ = ["budget", "rank_name", "ranks", "steps"]

MOST_RANKS = 128
MOST_STEPS = 200
_CHART, _TALL = 300, 420
"""Pixels."""


def budget(report: Report) -> Html | None:
    """The job's time, split."""
    job, count = report.job, max(1, steps_counted(report))
    whole = sum(job.budget_ns.values())
    if not whole:
        return None
    drawn = _sum(rank.budget_ns for rank in report.ranks)  # waits are charged in the job's alone
    leaves = leaves_of(_sum((drawn, job.budget_ns)))
    times = {leaf: job.budget_ns.get(leaf, 0) for leaf in leaves}
    rows = [
        (
            tag("span", swatch(leaf), LEAF_TEXT[leaf][0], class_="label"),
            cell(duration(ns / count), ns),
            cell(percent(ns, whole), ns),
            LEAF_TEXT[leaf][1],
            LEAF_LABEL[leaf] or "no label",
        )
        for leaf, ns in times.items()
    ]
    columns = ("part", ">a step", ">share", "what it is", "speaks for")
    body = table("The time of a mean step, split without remainder", columns, rows)
    wide = tag("div", bar(job.budget_ns), class_="wide")
    return section("budget", "Where the time goes", _mean(report), wide, body)


def _mean(report: Report) -> str:
    count, window = steps_counted(report), report.job.totals_ns.window
    if all(row.step.source == "whole" for row in step_rows(report)):
        return f"{duration(window / max(1, len(report.ranks)))}, the whole trace: no steps found."
    return f"{duration(window / max(1, count))} a step, {mean_of(report)}."


def steps(report: Report, drawn: dict[str, Figure]) -> Html | None:
    """Each step: time, label, budget. Puts a chart into `drawn`."""
    rows = step_rows(report)
    if not rows:
        return None
    shown = pick_steps(rows, MOST_STEPS)
    several = len(report.ranks) > 1
    parts: list[Child] = []
    charted = _charted(report)
    if len(charted.steps) > 1:
        parts.append(_step_chart(charted, several, drawn))
    longest = max(1, *(row.step.dur_ns for row in rows))
    columns = [*["rank"] * several, "step", ">time", "bound by", ">sure", ">coverage", "budget"]
    cells = ([*_step_rank(row) * several, *_step_cells(row, longest)] for row in shown)
    body = table("Steps", columns, cells, name="step-table")
    if len(shown) > _FEW:
        body = folded("Every step as a table", body)
    note = cap(len(shown), len(rows), "steps: the slowest, one of each label and the most usual")
    return section("steps", "Steps", note, *parts, body)


_FEW = 12


def _charted(report: Report) -> Rank:
    """The rank whose steps are drawn: the culprit, or the one with most work of its own."""
    culprit = [rank for rank in report.ranks if rank.rank == report.job.culprit_rank]
    return (culprit or pick_ranks(report, 1))[0]


def _step_chart(rank: Rank, several: bool, drawn: dict[str, Figure]) -> Html:
    shown = pick_steps([StepRow(rank.rank, step) for step in rank.steps], MOST_STEPS)
    names = [row.step.name or str(row.step.ordinal) for row in shown]
    drawn["steps"] = figures.stacked(names, [row.step.budget_ns for row in shown], "step")
    times = [row.step.dur_ns for row in shown]
    of = f" of rank {rank_name(rank.rank)}" if several else ""
    some = cap(len(shown), len(rank.steps), "steps")
    said = f"{plural(len(times), 'step')}, {duration(min(times))} to {duration(max(times))}. {some}"
    return chart("steps", f"Time of each step{of}, by what it goes into", said, height=_CHART)


def _step_rank(row: StepRow) -> list[Cell]:
    return [_rank_cell(row.rank)]


def _step_cells(row: StepRow, longest_ns: int) -> Iterator[Cell | Child]:
    step = row.step
    yield named(step.name or str(step.ordinal), 40)
    yield cell(duration(step.dur_ns), step.dur_ns)
    yield label_mark(step.label)
    yield cell("" if step.label == "unknown" else f"{step.confidence:.0%}", step.confidence)
    yield cell(percent(step.coverage, 1), step.coverage)
    yield bar(step.budget_ns, step.dur_ns / longest_ns)


def ranks(report: Report, drawn: dict[str, Figure]) -> Html | None:
    """Ranks beside each other: a chart, a heat map, and the same as a table."""
    if len(report.ranks) < 2:
        return None
    shown = pick_ranks(report, MOST_RANKS)
    names = [rank_name(rank.rank) for rank in shown]
    budgets = [_mean_budget(rank) for rank in shown]
    drawn["ranks"] = figures.stacked(names, budgets, "rank")
    drawn["heat"] = figures.heat_map(names, budgets)
    times = {name: sum(budget.values()) for name, budget in zip(names, budgets, strict=True)}
    slowest = max(times, key=times.__getitem__)
    said = f"The longest is that of rank {slowest}: {duration(times[slowest])}."
    note = "Each rank by its own time: here a wait for another rank counts as collective. "
    return section(
        "ranks",
        "Ranks",
        note + cap(len(shown), len(report.ranks), "ranks, those that wait least"),
        chart("ranks", "Mean step of each rank", said, height=_CHART),
        chart("heat", "What each rank spends its time in", _heat_said(shown), height=_TALL),
        _rank_table(shown, report),
        folded("The heat map as a table", _heat_table(shown)),
    )


def _mean_budget(rank: Rank) -> dict[str, int]:
    count = max(1, len(counted_steps(rank)))
    return {leaf: ns // count for leaf, ns in rank.budget_ns.items()}


def _heat_said(shown: list[Rank]) -> str:
    """Where ranks differ most."""
    spreads = {
        leaf: [rank.budget_ns.get(leaf, 0) / max(1, rank.totals_ns.window) for rank in shown]
        for leaf in LEAF_TEXT
    }
    leaf = max(spreads, key=lambda name: max(spreads[name]) - min(spreads[name]))
    shares = spreads[leaf]
    low, high = shown[shares.index(min(shares))], shown[shares.index(max(shares))]
    return (
        f"They differ most in {LEAF_TEXT[leaf][0]}: {min(shares):.1%} of its time on rank "
        f"{rank_name(low.rank)}, {max(shares):.1%} on rank {rank_name(high.rank)}."
    )


def _rank_table(shown: list[Rank], report: Report) -> Html:
    columns = ("rank", ">step", ">busy", ">waits", "for rank", "bound by", ">sure", "budget")
    longest = max(1.0, *(mean_window_ns(rank) for rank in shown))
    rows = [[*_rank_cells(rank, report, longest)] for rank in shown]
    return table("Ranks", columns, rows, name="rank-table")


def _rank_cells(rank: Rank, report: Report, longest_ns: float) -> Iterator[Cell | Child]:
    totals, waits = rank.totals_ns, rank.budget_ns.get("collective_wait", 0)
    yield _rank_cell(rank.rank, culprit=rank.rank is not None and _is_culprit(rank, report))
    yield cell(duration(mean_window_ns(rank)), mean_window_ns(rank))
    yield cell(percent(totals.busy, totals.window), totals.busy / max(1, totals.window))
    yield cell(percent(waits, totals.window), waits)
    yield rank_name(rank.waits[0].late_rank) if rank.waits else ""
    yield label_mark(rank.label)
    yield cell("" if rank.label == "unknown" else f"{rank.confidence:.0%}", rank.confidence)
    yield bar(rank.budget_ns, mean_window_ns(rank) / longest_ns)


def _is_culprit(rank: Rank, report: Report) -> bool:
    return rank.rank == report.job.culprit_rank


def _rank_cell(rank: int | None, *, culprit: bool = False) -> Cell:
    name: Child = rank_name(rank)
    shown = (tag("strong", name), " (late)") if culprit else name
    return cell(shown, -1 if rank is None else rank)


def _heat_table(shown: list[Rank]) -> Html:
    leaves = leaves_of(_sum(rank.budget_ns for rank in shown))
    columns = ("rank", *(f">{LEAF_TEXT[leaf][0]}" for leaf in leaves))
    rows = [[_rank_cell(rank.rank), *(_share(rank, leaf) for leaf in leaves)] for rank in shown]
    return table("Share of each rank's time", columns, rows, name="heat-table")


def _share(rank: Rank, leaf: str) -> Cell:
    ns = rank.budget_ns.get(leaf, 0)
    return cell(percent(ns, rank.totals_ns.window), ns / max(1, rank.totals_ns.window))


def _sum(budgets: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in budgets:
        for leaf, ns in one.items():
            total[leaf] = total.get(leaf, 0) + ns
    return total


def rank_name(rank: int | None) -> str:
    """Its number."""
    return "?" if rank is None else shorten(str(rank), 12)
