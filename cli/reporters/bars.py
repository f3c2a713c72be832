"""Colours of the labels and leaves, and the stacked bar that shows a time budget."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

from perfdiag.trace_schemas.report import LEAF_LABEL, LEAVES, Label

__all__ = [
    "LABEL_STYLE",
    "LEAF_STYLE",
    "LEAF_TEXT",
    "Bar",
    "label_bar",
    "label_text",
    "leaves_of",
    "split_cells",
    "swatch",
]

LABEL_STYLE: dict[Label, str] = {
    "compute-bound": "#3fa34d",
    "memory-bound": "#3b82d6",
    "collective-bound": "#b65fcf",
    "host-bound": "#d98e04",
    "unknown": "#8a8f98",
}
"""One hue a class, of a lightness that reads on dark and on light backgrounds."""

LEAF_STYLE: dict[str, str] = {
    "compute_kernel": "#3fa34d",
    "memory_kernel": "#3b82d6",
    "copy": "#7db4f0",
    "collective_transfer": "#b65fcf",
    "collective_wait": "#dba3ea",
    "collective_unsplit": "#8f43a6",
    "input": "#e3b008",
    "launch": "#e8751a",
    "sync": "#d13b2a",
    "host_other": "#b07d2b",
    "dependency": "#9aa0a9",
    "profiler": "#6d727a",
    "kernel_unclassified": "#7d8b99",
    "unclassified": "#565b63",
}

LEAF_TEXT: dict[str, tuple[str, str]] = {
    "compute_kernel": ("compute kernels", "kernels bound by arithmetic"),
    "memory_kernel": ("memory kernels", "kernels bound by memory traffic"),
    "copy": ("copies", "copies and fills, not overlapped"),
    "collective_transfer": ("collective transfer", "data moves, nothing else runs"),
    "collective_wait": ("collective wait", "waits for the last rank"),
    "collective_unsplit": ("collectives", "wait and transfer, not told apart"),
    "input": ("input", "idle: the input is not ready"),
    "launch": ("launch", "idle: work is launched too late"),
    "sync": ("sync", "idle: drained by a blocking call"),
    "host_other": ("other host work", "idle: the host is busy elsewhere"),
    "dependency": ("dependency", "idle: launched, not started"),
    "profiler": ("profiler", "overhead of the profiler"),
    "kernel_unclassified": ("unclassified kernels", "what bounds them is not known"),
    "unclassified": ("unclassified", "not explained by the trace"),
}
"""Leaf to its name for people, and to what it means."""

_GLYPHS: dict[Label | None, tuple[str, str]] = {
    "compute-bound": ("█", "#"),
    "memory-bound": ("▓", "="),
    "collective-bound": ("▒", "+"),
    "host-bound": ("░", "-"),
    None: ("·", "."),
}
"""Where there is no colour: a glyph a class, and the same in ASCII."""


def label_text(label: Label) -> Text:
    """A label in its colour."""
    return Text(label, style=LABEL_STYLE[label])


def label_bar(label: Label, cells: int, console: Console) -> Text:
    """A bar of so many cells that stands for a label on this console."""
    return Text(_glyph(label, console) * cells, LABEL_STYLE[label])


def leaves_of(budget_ns: Mapping[str, int]) -> list[str]:
    """The leaves of a budget that are not zero, in the order of the contract."""
    return [leaf for leaf in LEAVES if budget_ns.get(leaf, 0) > 0]


def split_cells(budget_ns: Mapping[str, int], cells: int) -> list[tuple[str, int]]:
    """Share `cells` among the leaves of a budget, by largest remainder.

    The parts sum to `cells`, unless the budget is empty.
    """
    leaves = leaves_of(budget_ns)
    whole = sum(budget_ns[leaf] for leaf in leaves)
    parts = {leaf: divmod(budget_ns[leaf] * cells, whole) for leaf in leaves}
    left = cells - sum(full for full, _ in parts.values())
    lucky = set(sorted(leaves, key=lambda leaf: -parts[leaf][1])[:left])
    return [(leaf, parts[leaf][0] + (leaf in lucky)) for leaf in leaves]


def swatch(leaf: str, console: Console) -> tuple[str, str]:
    """(glyph, style) that stand for a leaf on this console."""
    return _glyph(LEAF_LABEL[leaf], console), LEAF_STYLE[leaf]


def _glyph(label: Label | None, console: Console) -> str:
    unicode_, ascii_ = _GLYPHS[label]
    if console.options.ascii_only:
        return ascii_
    has_colour = console.color_system is not None and not console.no_color
    return "█" if has_colour else unicode_


@dataclass(frozen=True)
class Bar:
    """A stacked horizontal bar as wide as it is let.

    Attributes:
        budget_ns: what it shows.
        scale: its length as a share of the place that it is given, 0 to 1.
        widest: cells that it takes at most.
    """

    budget_ns: Mapping[str, int]
    scale: float = 1.0
    widest: int = 400

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw one line."""
        place = min(options.max_width, self.widest)
        cells = max(1, round(place * self.scale))
        yield from self._segments(console, cells)
        yield Segment.line()

    def _segments(self, console: Console, cells: int) -> Iterator[Segment]:
        for leaf, width in split_cells(self.budget_ns, cells):
            glyph, style = swatch(leaf, console)
            yield Segment(glyph * width, console.get_style(style))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Eight cells say something; more say more."""
        widest = min(options.max_width, self.widest)
        return Measurement(min(8, widest), widest)
