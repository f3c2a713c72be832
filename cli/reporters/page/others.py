"""Collectives, counters, and what the replay says."""

from collections.abc import Iterator, Sequence

from perfdiag.cli.reporters import replay as replay_text
from perfdiag.cli.reporters.counters import value
from perfdiag.cli.reporters.page.markup import Child, Html, named, tag
from perfdiag.cli.reporters.page.parts import (
    Cell,
    cap,
    cell,
    facts,
    folded,
    label_mark,
    section,
    table,
)
from perfdiag.cli.reporters.page.times import rank_name
from perfdiag.cli.reporters.summary import CollectiveRow, collective_rows, step_count
from perfdiag.cli.reporters.units import count, duration, percent, sentence, shorten, size
from perfdiag.trace_schemas.report import (
    LABELS,
    SIZE_CLASSES,
    CounterTimeline,
    Label,
    Rank,
    Report,
)

__all__ = ["collectives", "counters", "replay"]

MOST_COLLECTIVES = 200
MOST_COUNTERS = 40
MOST_RANKS = 8


def collectives(report: Report) -> Html | None:
    """By operation, group and size."""
    rows = collective_rows(report.collectives)
    if not rows:
        return None
    shown, steps = rows[:MOST_COLLECTIVES], max(1, step_count(report))
    columns = (
        *("operation", "group", ">calls", ">bytes each", ">time", ">exposed", ">waits"),
        *(">hidden", ">bus", ">of link"),
    )
    cells = ([*_collective(row, steps)] for row in shown)
    body = table("Collectives, per step and rank", columns, cells, name="collective-table")
    note = (
        "Exposed is what no compute hides; of that, waits are for ranks that come late, where the "
        "traces of all ranks are there. "
    )
    more = cap(len(shown), len(rows), "rows")
    return section("collectives", "Collectives", note + more, body)


def _collective(row: CollectiveRow, steps: int) -> Iterator[Cell | Child]:
    yield named(row.op, 30)
    yield named(row.group, 30)
    yield cell(count(row.count / steps), row.count)
    yield cell(row.size_class, SIZE_CLASSES.index(row.size_class))
    yield cell(duration(row.total_ns / steps), row.total_ns)
    yield cell(duration(row.exposed_ns / steps), row.exposed_ns)
    yield cell(duration(row.wait_ns / steps), row.wait_ns) if row.wait_ns else ""
    hidden = row.total_ns - row.exposed_ns
    yield cell(percent(hidden, row.total_ns), hidden / max(1, row.total_ns))
    bus, link = row.bus_bandwidth, row.link_share
    yield "" if bus is None else cell(f"{size(bus)}/s", bus)
    yield "" if link is None else cell(f"{link:.0%}", link)


def counters(report: Report) -> Html | None:
    """What hardware counters say of each rank's steps, and of files without a place in them."""
    ranks = [rank for rank in report.ranks if rank.counters]
    if not ranks:
        return _unplaced(report)
    culprit = report.job.culprit_rank
    ranks.sort(key=lambda rank: rank.rank != culprit)
    shown = ranks[:MOST_RANKS]
    parts = [
        folded(f"Rank {rank_name(rank.rank)}", *_of_rank(rank), opened=rank is shown[0])
        for rank in shown
    ]
    note = "Means over the steps of each rank. " + cap(len(shown), len(ranks), "ranks")
    return section("counters", "Hardware counters", note, *parts)


def _of_rank(rank: Rank) -> Iterator[Child]:
    rows = rank.counters[0].figures
    cells = [
        [
            named(one.metric.replace("_", " "), 40),
            *(value(number, one.unit) for number in (one.mean, one.p10, one.p90)),
            percent(one.coverage, 1),
        ]
        for one in rows[:MOST_COUNTERS]
    ]
    columns = ("counter", ">mean", ">p10", ">p90", ">coverage")
    yield table(f"Counters of rank {rank_name(rank.rank)}", columns, cells)
    yield tag("p", cap(len(cells), len(rows), "counters"), class_="note")
    for region in rank.counters:
        if region.kind in ("steps", "phase") and region.roof != "unknown":
            yield tag("p", tag("strong", shorten(region.name or "steps", 40)), ": ", region.why)


def _unplaced(report: Report) -> Html | None:
    lines = [line for file in report.counters for line in file.timelines]
    if not lines:
        return None
    cells = [[*_timeline(line)] for line in lines[:MOST_COUNTERS]]
    columns = ("counter", ">mean", ">p10", ">p90", ">samples")
    note = "Of whole files: they have no place in the trace, see the notices. "
    body = table("Counters of whole files", columns, cells)
    more = cap(len(cells), len(lines), "counters")
    return section("counters", "Hardware counters", note + more, body)


def _timeline(line: CounterTimeline) -> Iterator[Cell | Child]:
    yield named(f"{line.metric}, {line.entity}" if line.entity else line.metric, 40)
    for number in (line.mean, line.p10, line.p90):
        yield value(number, line.unit)
    yield cell(f"{line.samples:,}", line.samples)


def replay(report: Report) -> Html | None:
    """What would make the steps shorter, and how far that is to be trusted."""
    if not replay_text.is_told(report):
        return None
    found = report.replay
    if not found.believed:
        return section("replay", "Replay", "", tag("p", sentence(found.why)))
    rows = [_twice(label, found.twice_as_fast.get(label, 0.0)) for label in _ranked(report)]
    body = table(
        "What of a step is saved if what a label stands for is twice as fast",
        ("twice as fast", ">saves", "of a step"),
        rows,
    )
    return section("replay", "Replay", sentence(found.why), body, facts(_facts(report)))


def _ranked(report: Report) -> Sequence[Label]:
    saved = report.replay.twice_as_fast
    return sorted(LABELS[:-1], key=lambda label: -saved.get(label, 0.0))


def _twice(label: Label, share: float) -> list[Child]:
    width = f"width:{100 * min(1.0, max(0.0, share)):.1f}%"
    bar = tag("i", class_=f"dot {label}", style=width + ";height:12px;margin:0")
    return [
        label_mark(label),
        percent(share, 1),
        tag("span", bar, class_="meter", aria_hidden="true"),
    ]


def _facts(report: Report) -> Iterator[tuple[str, Child]]:
    found = report.replay
    if found.critical_path:
        parts = sorted(found.critical_path.items(), key=lambda part: -part[1])
        named_ = ", ".join(f"{shorten(name, 24)} {share:.0%}" for name, share in parts)
        yield "Critical path", f"{named_}; for display, not for ranking"
    if found.contention is not None:
        told = f"kernels take {found.contention:.2f} times as long beside collectives"
        yield "Contention", told
    told = f"{found.nodes:,} nodes, {found.edges:,} dependencies, {found.inferred:,} inferred"
    yield "Graph", told
