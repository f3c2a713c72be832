"""Device work: the roofline of a rank, and a table of kernels to sort and filter."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from perfdiag.cli.reporters.page import figures
from perfdiag.cli.reporters.page.figures import Figure
from perfdiag.cli.reporters.page.markup import Child, Html, kernel, named, tag
from perfdiag.cli.reporters.page.parts import Cell, cap, cell, chart, facts, section, table
from perfdiag.cli.reporters.page.times import rank_name
from perfdiag.cli.reporters.summary import hotspots
from perfdiag.cli.reporters.units import count, duration, percent, plural, shorten
from perfdiag.trace_schemas.counted_steps import steps_counted
from perfdiag.trace_schemas.report import Hotspot, Kernel, Rank, Report, Roofline

__all__ = ["kernels", "roofline"]

MOST_KERNELS = 500
_MOST_UNCOVERED = 8
_CHART = 420
"""Pixels."""
_BASIS = {
    "achievable": "the most that was measured, else by data sheet",
    "datasheet": "by data sheet",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """Kernels of one name and operator over all ranks; `priced`: where their cost is known."""

    name: str
    op: str
    family: str
    count: int
    dur_ns: int
    priced: Kernel | None


def kernels(report: Report) -> Html | None:
    """The table; None where there is no device work."""
    rows = _rows(report)
    if not rows:
        return None
    shown = rows[:MOST_KERNELS]
    steps = max(1, steps_counted(report))
    busy = report.job.totals_ns.busy
    columns = (
        *("kernel", "operator", "kind", ">calls", ">time", ">busy", "bound by"),
        *("type", ">FLOP/B", ">TFLOP/s", ">GB/s", ">of roof"),
    )
    body = table(
        "Kernels, copies and collectives, per step and rank",
        columns,
        ([*_cells(row, steps, busy)] for row in shown),
        name="kernel-table",
    )
    note = "Those that take longest; what overlaps counts each time. "
    return section(
        "kernels",
        "Kernels",
        note + cap(len(shown), len(rows), "kernels"),
        _filter(len(shown)),
        body,
    )


def _filter(number: int) -> Html:
    field = tag(
        "input",
        id="kernel-filter",
        type="search",
        data_filters="kernel-table",
        aria_describedby="kernel-count",
        autocomplete="off",
    )
    label = tag("label", "Filter by name, operator, type or bound", for_="kernel-filter")
    told = tag("output", f"{number} of {number} rows", id="kernel-count", for_="kernel-filter")
    return tag("div", label, field, told, class_="filter")


def _rows(report: Report) -> list[_Row]:
    """Priced kernels, and the longest work besides."""
    spots = hotspots(spot for rank in report.ranks for spot in rank.top)
    families = {(spot.name, spot.op): spot.family for spot in spots}
    lines = [rank.roofline.kernels for rank in report.ranks if rank.roofline is not None]
    priced = _added(one for kernels in lines for one in kernels)
    known = {(one.name, one.op) for one in priced}
    rows = [
        *(_priced(one, families.get((one.name, one.op), "")) for one in priced),
        *(_plain(spot) for spot in spots if (spot.name, spot.op) not in known),
    ]
    return sorted(rows, key=lambda row: -row.dur_ns)


def _priced(one: Kernel, family: str) -> _Row:
    return _Row(one.name, one.op, family, one.count, one.dur_ns, one)


def _plain(spot: Hotspot) -> _Row:
    return _Row(spot.name, spot.op, spot.family, spot.count, spot.dur_ns, None)


def _added(found: Iterable[Kernel]) -> list[Kernel]:
    """Kernels of the same name, operator and type over all ranks; figures of the longest."""
    groups: dict[tuple[str, str, str], list[Kernel]] = {}
    for one in found:
        groups.setdefault((one.name, one.op, one.dtype), []).append(one)
    return [_sum(same) for same in groups.values()]


def _sum(same: Sequence[Kernel]) -> Kernel:
    longest = max(same, key=lambda one: one.dur_ns)
    return structs.replace(
        longest, count=sum(one.count for one in same), dur_ns=sum(one.dur_ns for one in same)
    )


def _cells(row: _Row, steps: int, busy_ns: int) -> Iterator[Cell | Child]:
    yield kernel(row.name, 36)
    yield named(row.op, 24) if row.op else ""
    yield shorten(row.family, 14)
    yield cell(count(row.count / steps), row.count)
    yield cell(duration(row.dur_ns / steps), row.dur_ns)
    yield cell(percent(row.dur_ns, busy_ns), row.dur_ns)
    yield from _cost(row.priced) if row.priced else ("", "", "", "", "", "")


def _cost(one: Kernel) -> Iterator[Cell | Child]:
    """Figures that are not believed are not shown."""
    believed = one.bound not in ("above peak", "unknown")
    reached = max(one.compute_share, one.memory_share)
    yield one.bound + "*" * (one.at_datasheet != one.bound)
    yield shorten(one.dtype, 10)
    yield "" if one.intensity is None else cell(f"{one.intensity:,.3g}", one.intensity)
    yield cell(f"{one.flops_per_s / 1e12:,.3g}", one.flops_per_s) if believed else "?"
    yield cell(f"{one.bytes_per_s / 1e9:,.4g}", one.bytes_per_s) if believed else "?"
    yield cell(f"{reached:.0%}", reached) if believed else "?"


def roofline(report: Report, drawn: dict[str, Figure]) -> Html | None:
    """The rank whose kernels run longest, under its roofs. Puts a chart into `drawn`."""
    ranks = [rank for rank in report.ranks if rank.roofline is not None]
    if not ranks:
        return None
    rank = max(ranks, key=lambda rank: rank.totals_ns.compute)
    found = rank.roofline
    if found is None:
        return None
    parts: list[Child] = []
    if figures.drawable(found.kernels):
        drawn["roofline"] = figures.roofline(found)
        parts.append(chart("roofline", "Kernels under their roofs", _said(found), height=_CHART))
    note = ""
    if len(report.ranks) > 1:
        note = f"Of rank {rank_name(rank.rank)}, whose kernels run longest."
    return section("roofline", "Roofline", note, *parts, facts(_facts(found, rank)))


def _said(found: Roofline) -> str:
    placed = len(figures.drawable(found.kernels))
    rest = len(found.kernels) - placed
    left = f" {rest} without arithmetic or above a peak are not drawn." if rest else ""
    return f"{plural(placed, 'kernel')}; the larger a sign, the longer they run.{left}"


def _facts(found: Roofline, rank: Rank) -> Iterator[tuple[str, Child]]:
    yield "Device", f"{shorten(found.device, 60)}, {_basis(found)}"
    peaks = [f"{shorten(d, 8)} {p / 1e12:,.4g} TFLOP/s" for d, p in found.peak_flops_per_s.items()]
    memory = found.peak_bytes_per_s
    peaks += [] if memory is None else [f"memory {memory / 1e12:,.3g} TB/s"]
    yield "Roofs", ", ".join(peaks[:_MOST_UNCOVERED]) or "not known"
    for name, share in (("MFU", found.mfu), ("HFU", found.hfu)):
        if share is not None:
            yield name, f"{share:.1%} of the data sheet's {shorten(found.mfu_dtype, 8)} peak"
    by_time = sorted(found.bound.items(), key=lambda item: -item[1])
    yield "Kernel time", ", ".join(f"{shorten(n, 20)} {percent(s, 1)}" for n, s in by_time)
    covered = f"{percent(found.covered, 1)} of the kernels' time whose operator is in the trace"
    yield "Covered", covered + f"; {percent(found.unlinked, 1)} of all has none there"
    if found.uncovered:
        names = [named(name, 50) for name in found.uncovered[:_MOST_UNCOVERED]]
        more = cap(len(names), len(found.uncovered), "names")
        yield "Not covered", [tag("div", name) for name in (*names, more) if name]
    if "above peak" in found.bound:
        yield "Above peak", "More than the data sheet allows: not believed, no figures."
    if any(one.at_datasheet != one.bound for one in found.kernels):
        yield "* after a bound", "The data sheet's roofs would say otherwise."


def _basis(found: Roofline) -> str:
    return _BASIS.get(found.basis) or shorten(found.basis, 20)
