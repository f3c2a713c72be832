"""The roofline for people: what bounds the kernels that matter, how near their roofs they are."""

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.bars import LABEL_STYLE
from perfdiag.cli.reporters.units import (
    clean,
    count,
    kernel_name,
    percent,
    plural,
    shorten,
)
from perfdiag.trace_schemas.counted_steps import counted_steps
from perfdiag.trace_schemas.report import Kernel, Rank, Report, Roofline, Step

__all__ = ["block"]

_MOST_ROWS = 12
_MATTER = 0.9
"""Of the time of the kernels with a cost, from which on the others are left out."""
_MOST_UNCOVERED = 4
_WIDE = 110
"""Characters a line from which on every column is shown."""
_NAMED = 90
"""Characters a line from which on kernels are named beside their operators."""
_GAP = 2
_DIFFER = 0.1
"""Of the mean, by which the utilisation of steps must differ to be worth a remark; a choice."""
_SHOWN = 0.0005
"""The least share that one decimal of a percentage shows."""

_BASIS = {
    "achievable": "the most that was measured, else by data sheet",
    "datasheet": "by data sheet",
}
_STYLE = {
    "compute": LABEL_STYLE["compute-bound"],
    "memory": LABEL_STYLE["memory-bound"],
    "above peak": "bold red",
}
_ABOVE = "above peak: more than the data sheet allows; not believed, no figures"
_HANGS = "* the data sheet's roofs would say otherwise"


def block(report: Report, width: int) -> tuple[str, str, RenderableType] | None:
    """The rank whose kernels run longest under its roofs: title, remark and what is below.

    Args:
        report: what to show.
        width: characters a line.

    Returns:
        None where no rank has a roofline.
    """
    ranks = [rank for rank in report.ranks if rank.roofline is not None]
    if not ranks:
        return None
    rank = max(ranks, key=lambda rank: rank.totals_ns.compute)
    roofline = rank.roofline
    if roofline is None:
        return None
    shown = _that_matter(roofline.kernels)
    lines = [_roofs(roofline), _utilisation(roofline, rank.steps), _covered(roofline)]
    table: list[RenderableType] = [_table(rank, shown, width - _GAP)] if shown else []
    below = [*_remarks(roofline, shown), *_uncovered(roofline, width)]
    parts: list[RenderableType] = [*(line for line in lines if line.plain), *table, *below]
    return "Roofline", _whose(report, rank), Group(*parts)


def _whose(report: Report, rank: Rank) -> str:
    if len(report.ranks) == 1:
        return ""
    name = "?" if rank.rank is None else str(rank.rank)
    return f"of rank {name}, whose kernels run longest"


def _that_matter(kernels: list[Kernel]) -> list[Kernel]:
    """The longest that together take most of the time."""
    found: list[Kernel] = []
    wanted = _MATTER * sum(kernel.dur_ns for kernel in kernels)
    for kernel in kernels[:_MOST_ROWS]:
        if sum(one.dur_ns for one in found) >= wanted:
            break
        found.append(kernel)
    return found


def _roofs(roofline: Roofline) -> Text:
    """The device and its roofs."""
    peaks = [f"{shorten(d, 8)} {_figure(p / 1e12)}" for d, p in roofline.peak_flops_per_s.items()]
    memory = roofline.peak_bytes_per_s
    roofs = [f"TFLOP/s {', '.join(peaks)}"] * bool(peaks)
    roofs += [] if memory is None else [f"memory {_figure(memory / 1e12)} TB/s"]
    basis = _BASIS.get(roofline.basis) or shorten(roofline.basis, 20)
    text = Text.assemble((shorten(roofline.device, 40), "bold"), f": {'; '.join(roofs)} ")
    return text.append(f"({basis})", "dim")


def _utilisation(roofline: Roofline, steps: list[Step]) -> Text:
    """MFU and HFU, and what they are a share of."""
    shares = {
        "MFU": (roofline.mfu, [step.mfu for step in steps]),
        "HFU": (roofline.hfu, [step.hfu for step in steps]),
    }
    told = ", ".join(
        f"{name} {share:.1%}{_range(share, each)}"
        for name, (share, each) in shares.items()
        if share is not None
    )
    if not told:
        return Text()
    dtype = shorten(roofline.mfu_dtype, 8)
    return Text(told).append(f" of the data sheet's {dtype} peak over the steps", "dim")


def _range(mean: float, steps: list[float | None]) -> str:
    """The least and the most of the steps; nothing where these are much alike."""
    known = [share for share in steps if share is not None]
    if len(known) < 2 or max(known) - min(known) <= _DIFFER * mean:
        return ""
    return f" ({100 * min(known):.1f}-{max(known):.1%} by step)"


def _covered(roofline: Roofline) -> Text:
    """How much of the kernels' time has a cost, and by what that is bound."""
    by_time = sorted(roofline.bound.items(), key=lambda item: -item[1])
    known = [f"{clean(name)} {percent(share, 1)}" for name, share in by_time if name != "unknown"]
    priced, of_all = percent(roofline.covered, 1), ", ".join(known)
    if roofline.unlinked < _SHOWN:
        return Text(f"{priced} of the kernels' time is covered" + f": {of_all}" * bool(known))
    text = (
        f"{priced} of the kernels' time whose operator is in the trace is covered; "
        f"{percent(roofline.unlinked, 1)} of all has none there"
    )
    return Text(text + f". Of all: {of_all}" * bool(known))


def _table(rank: Rank, kernels: list[Kernel], width: int) -> Table:
    """One row a kernel; names take what the figures leave."""
    wide = width >= _WIDE
    titles = [*["calls"] * wide, "time", "type", "FLOP/B", "TFLOP/s", "GB/s", "roof", "bound"]
    rows = [[*_calls(kernel, rank) * wide, *_figures(kernel, rank)] for kernel in kernels]
    columns = zip(titles, *rows, strict=True)
    taken = sum(_GAP + max(cell_len(str(cell)) for cell in column) for column in columns)
    named = [*_names(kernels, width - taken, kernel_too=width >= _NAMED)]
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for title in [*["operator", "kernel"][: len(named[0])], *titles]:
        is_text = title in ("operator", "kernel", "type", "bound")
        table.add_column(title, justify="left" if is_text else "right", no_wrap=True)
    for names, row in zip(named, rows, strict=True):
        table.add_row(*names, *row)
    return table


def _names(kernels: list[Kernel], room: int, *, kernel_too: bool) -> Iterator[list[Text]]:
    """Operators, and kernels where there is room, of at most so many characters together."""
    room = max(room, 8)
    longest = max(len(kernel.op) for kernel in kernels)
    op_width = min(longest, room // 2) if kernel_too else room
    for kernel in kernels:
        op = [Text(shorten(kernel.op, max(1, op_width)))]
        rest = room - op_width - _GAP
        yield [*op, Text(kernel_name(kernel.name, rest), "dim")] if kernel_too else op


def _calls(kernel: Kernel, rank: Rank) -> list[Text | str]:
    return [count(kernel.count / max(1, len(counted_steps(rank))))]


def _figures(kernel: Kernel, rank: Rank) -> Iterator[Text | str]:
    """Share of the compute time, what it is computed in, and how near the nearer roof it comes."""
    yield percent(kernel.dur_ns, rank.totals_ns.compute)
    yield Text(shorten(kernel.dtype, 6))
    yield "" if kernel.intensity is None else _figure(kernel.intensity)
    believed = kernel.bound not in ("above peak", "unknown")
    yield _figure(kernel.flops_per_s / 1e12) if believed else "?"
    yield _figure(kernel.bytes_per_s / 1e9) if believed else "?"
    yield f"{max(kernel.compute_share, kernel.memory_share):.0%}" if believed else "?"
    mark = "*" * (kernel.at_datasheet != kernel.bound)
    yield Text(kernel.bound + mark, _STYLE.get(kernel.bound, "dim"))


def _figure(value: float) -> str:
    """Three significant digits; less than two decimals show is said to be less."""
    if 0 < value < 0.01:
        return "<0.01"
    digits = 0 if value >= 99.95 or not value else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}"


def _remarks(roofline: Roofline, kernels: list[Kernel]) -> Iterator[Text]:
    """What the marks in the table mean."""
    if "above peak" in roofline.bound:
        yield Text(_ABOVE, "dim")
    if any(kernel.at_datasheet != kernel.bound for kernel in kernels):
        yield Text(_HANGS, "dim")


def _uncovered(roofline: Roofline, width: int) -> Iterator[Text]:
    """What takes most of the time that has no cost."""
    if not roofline.uncovered:
        return
    short = (kernel_name(name, max(10, width // 3)) for name in roofline.uncovered)
    names = [*dict.fromkeys(short)]
    more = len(names) - _MOST_UNCOVERED
    rest = f"; {plural(more, 'more name')} in the JSON report" if more > 0 else ""
    yield Text.assemble(("not covered: ", "dim"), ", ".join(names[:_MOST_UNCOVERED]) + rest)
