"""What the tables show of a report: which rows, and sums over steps and ranks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeVar

from msgspec import structs

from perfdiag.cli.reporters.units import plural
from perfdiag.trace_schemas.counted_steps import counted_steps, steps_counted
from perfdiag.trace_schemas.report import (
    Collective,
    Fix,
    Hotspot,
    Label,
    Rank,
    Region,
    Report,
    SizeClass,
    Step,
)

__all__ = [
    "CollectiveRow",
    "RankRow",
    "RegionRow",
    "StepRow",
    "collective_rows",
    "fix_groups",
    "hotspots",
    "mean_of",
    "mean_window_ns",
    "pick_ranks",
    "pick_steps",
    "rank_rows",
    "region_rows",
    "step_count",
    "step_rows",
]

Row = TypeVar("Row")

MAX_ROWS = 12
"""Steps and ranks that a table shows; the JSON report has them all."""

_PHASES = ("data", "forward", "backward", "optimizer", "other")


@dataclass(frozen=True)
class StepRow:
    """A step and the rank that it belongs to."""

    rank: int | None
    step: Step


@dataclass(frozen=True)
class RankRow:
    """Times of one rank in a mean step.

    Attributes:
        rank: its number.
        step_ns: its window.
        waits_ns: of that, waiting for other ranks.
        late_ns: how long the other ranks wait for it, on average.
        is_culprit: whether it is the one that the job waits for.
    """

    rank: int | None
    step_ns: float
    waits_ns: float
    late_ns: float
    is_culprit: bool


@dataclass(frozen=True)
class RegionRow:
    """Regions of one kind and name over all steps.

    Attributes:
        label: the label that holds most of their time.
        agreeing: number of regions with that label, of the `n` that take any time.
        dur_ns: their windows together.
        budget_ns: their budgets together.
        top: the work that takes longest in them, as far as each region names it.
    """

    kind: Literal["phase", "annotation", "module"]
    name: str
    label: Label
    agreeing: int
    n: int
    dur_ns: int
    budget_ns: dict[str, int]
    top: list[Hotspot]


@dataclass(frozen=True)
class CollectiveRow:
    """Collectives of one operation, group and size class, over all ranks."""

    op: str
    group: str
    size_class: SizeClass
    count: int
    bytes: int
    total_ns: int
    exposed_ns: int
    wait_ns: int
    bus_bandwidth: float | None
    link_share: float | None


def step_count(report: Report) -> int:
    """Steps of all ranks together, those without a verdict too.

    Totals and budgets are of those that `counted_steps` gives.
    """
    return sum(len(rank.steps) for rank in report.ranks)


def mean_of(report: Report) -> str:
    """Over which steps totals and budgets are averaged."""
    counted, total = steps_counted(report), step_count(report)
    over = f" on {plural(len(report.ranks), 'rank')}" if len(report.ranks) > 1 else ""
    if counted == total:
        return f"mean of {plural(total, 'step')}{over}"
    return f"mean of the {counted:,} of {plural(total, 'step')}{over} that have a verdict"


def mean_window_ns(rank: Rank) -> float:
    """The window of a mean step of a rank."""
    return rank.totals_ns.window / max(1, len(counted_steps(rank)))


def step_rows(report: Report) -> list[StepRow]:
    """All steps of all ranks."""
    return [StepRow(rank.rank, step) for rank in report.ranks for step in rank.steps]


def pick_steps(rows: Sequence[StepRow], most: int = MAX_ROWS) -> list[StepRow]:
    """At most `most` rows, in their order: the slowest, one of each label, the most usual."""
    slowest = sorted(rows, key=lambda row: -row.step.dur_ns)
    usual = slowest[len(slowest) // 2 :] + slowest[: len(slowest) // 2]
    of_each_label = {row.step.label: row for row in reversed(slowest)}.values()
    return _first(rows, (*slowest[: most // 2], *of_each_label, *usual), most)


def pick_ranks(report: Report, most: int = MAX_ROWS) -> list[Rank]:
    """At most `most` ranks, in their order: the culprit, then those with most work of their own."""

    def own_work_ns(rank: Rank) -> int:
        return rank.totals_ns.window - rank.budget_ns.get("collective_wait", 0)

    culprit = [rank for rank in report.ranks if rank.rank == report.job.culprit_rank]
    busiest = sorted(report.ranks, key=own_work_ns, reverse=True)
    return _first(report.ranks, (*culprit, *busiest), most)


def rank_rows(report: Report) -> list[RankRow]:
    """All ranks, in their order."""
    steps = step_count(report)
    late: Counter[int | None] = Counter()
    for rank in report.ranks:
        late.update({wait.late_rank: wait.time_ns for wait in rank.waits})
    return [
        RankRow(
            rank=rank.rank,
            step_ns=rank.totals_ns.window / max(1, len(counted_steps(rank))),
            waits_ns=rank.budget_ns.get("collective_wait", 0) / max(1, len(counted_steps(rank))),
            late_ns=0 if rank.rank is None else late[rank.rank] / max(1, steps - len(rank.steps)),
            is_culprit=rank.rank is not None and rank.rank == report.job.culprit_rank,
        )
        for rank in report.ranks
    ]


def _first(rows: Sequence[Row], wanted: Iterable[Row], most: int) -> list[Row]:
    chosen = list(dict.fromkeys(id(row) for row in wanted))[:most]
    return [row for row in rows if id(row) in chosen]


def region_rows(report: Report) -> list[RegionRow]:
    """Regions summed over steps and ranks; phases in the order of a step, others by time.

    What lies between annotations or modules is no row of its own.
    """
    groups: dict[tuple[str, str], list[Region]] = {}
    for row in step_rows(report):
        for region in row.step.regions:
            if region.kind != "phase" and region.name == "other":
                continue
            groups.setdefault((region.kind, region.name), []).append(region)
    return sorted((_sum_regions(group) for group in groups.values()), key=_region_order)


def _region_order(row: RegionRow) -> tuple[int, int]:
    known = row.kind == "phase" and row.name in _PHASES
    return (_PHASES.index(row.name) if known else len(_PHASES), -row.dur_ns)


def _sum_regions(regions: Sequence[Region]) -> RegionRow:
    by_label: Counter[Label] = Counter()
    budget: Counter[str] = Counter()
    for region in regions:
        by_label[region.label] += region.dur_ns
        budget.update(region.budget_ns)
    label = max(by_label, key=by_label.__getitem__)
    return RegionRow(
        kind=regions[0].kind,
        name=regions[0].name,
        label=label,
        agreeing=sum(region.label == label for region in regions if region.dur_ns),
        n=sum(region.dur_ns > 0 for region in regions),
        dur_ns=sum(region.dur_ns for region in regions),
        budget_ns=dict(budget),
        top=hotspots(spot for region in regions for spot in region.top),
    )


def hotspots(spots: Iterable[Hotspot]) -> list[Hotspot]:
    """Work of the same name and operator added up, the longest first."""
    groups: dict[tuple[str, str], list[Hotspot]] = {}
    for spot in spots:
        groups.setdefault((spot.name, spot.op), []).append(spot)
    added = [
        structs.replace(
            same[0], count=sum(s.count for s in same), dur_ns=sum(s.dur_ns for s in same)
        )
        for same in groups.values()
    ]
    return sorted(added, key=lambda spot: -spot.dur_ns)


def collective_rows(collectives: Iterable[Collective]) -> list[CollectiveRow]:
    """Collectives summed over ranks, those that cost most first."""
    groups: dict[tuple[str, str, SizeClass], list[Collective]] = {}
    for row in collectives:
        groups.setdefault((row.op, row.group, row.size_class), []).append(row)
    rows = [
        CollectiveRow(
            op=op,
            group=group,
            size_class=size_class,
            count=sum(row.count for row in same),
            bytes=sum(row.bytes for row in same),
            total_ns=sum(row.total_ns for row in same),
            exposed_ns=sum(row.exposed_ns for row in same),
            wait_ns=sum(row.wait_ns for row in same),
            bus_bandwidth=_median([r.bus_bandwidth for r in same if r.bus_bandwidth is not None]),
            link_share=_median([r.link_share for r in same if r.link_share is not None]),
        )
        for (op, group, size_class), same in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.exposed_ns, -row.total_ns))


def _median(values: list[float]) -> float | None:
    return median(values) if values else None


def fix_groups(fixes: Iterable[Fix]) -> dict[str, list[Fix]]:
    """Fixes by layer, as they are ranked: the layer of the best one comes first."""
    groups: dict[str, list[Fix]] = {}
    for fix in fixes:
        groups.setdefault(fix.layer, []).append(fix)
    return groups
