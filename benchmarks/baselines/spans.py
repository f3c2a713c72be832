"""Time that sets of intervals take up in windows, for many windows at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Cover", "Spans", "Windows", "layers", "rows_from", "sums"]

Spans = tuple[Int64s, Int64s]
"""Starts and ends, in any order."""

Windows = tuple[Int64s, Int64s]
"""(n,) starts and ends; they may overlap, as a step and its phases do."""


@dataclass(frozen=True, slots=True)
class Cover:
    """The union of intervals.

    Attributes:
        start_ns, end_ns: disjoint and in order.
        before_ns: (n + 1,) how much of it lies before each of them.
    """

    start_ns: Int64s
    end_ns: Int64s
    before_ns: Int64s

    @classmethod
    def of(cls, *parts: Spans) -> "Cover":
        """The union of all intervals of some sets."""
        starts, ends = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        starts, ends = merge(starts, ends)
        before = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64)
        return cls(starts, ends, before)

    def until(self, times_ns: Int64s) -> Int64s:
        """(n,) how much of the union lies before each time."""
        if not len(self.start_ns):
            return np.zeros(len(times_ns), np.int64)
        at = np.searchsorted(self.start_ns, times_ns, "right")
        beyond = np.maximum(self.end_ns[np.maximum(at - 1, 0)] - times_ns, 0)
        return np.asarray(self.before_ns[at] - np.where(at > 0, beyond, 0), np.int64)

    def inside(self, windows: Windows) -> Int64s:
        """(n,) nanoseconds of each window that the union covers."""
        return self.until(windows[1]) - self.until(windows[0])

    def extent(self, windows: Windows) -> Int64s:
        """(n,) from the first to the last moment of each window that the union covers; or 0."""
        if not len(self.start_ns):
            return np.zeros(len(windows[0]), np.int64)
        first = np.searchsorted(self.end_ns, windows[0], "right")
        last = np.searchsorted(self.start_ns, windows[1], "left") - 1
        some = last >= first
        begin = np.maximum(self.start_ns[np.minimum(first, len(self.start_ns) - 1)], windows[0])
        end = np.minimum(self.end_ns[np.maximum(last, 0)], windows[1])
        return np.asarray(np.where(some, end - begin, 0), np.int64)


def layers(parts: Sequence[Spans], windows: Windows) -> Int64s:
    """(parts + 1, n) nanoseconds of windows by the first part that covers a moment, or by none."""
    reached = [np.zeros(len(windows[0]), np.int64)]
    reached += [Cover.of(*parts[: i + 1]).inside(windows) for i in range(len(parts))]
    return np.diff(np.stack([*reached, windows[1] - windows[0]]), axis=0)


def rows_from(start_ns: Int64s, windows: Windows) -> list[slice]:
    """Rows that start in each window, its end included.

    Args:
        start_ns: in order.
        windows: of which the rows are asked for.
    """
    first = np.searchsorted(start_ns, windows[0], "left").tolist()
    last = np.searchsorted(start_ns, windows[1], "right").tolist()
    return [slice(one, max(one, other)) for one, other in zip(first, last, strict=True)]


def sums(values: NDArray[np.float64], rows: Sequence[slice]) -> NDArray[np.float64]:
    """(rows,) sums of a column over ranges of rows."""
    before = np.concatenate(([0.0], np.cumsum(values)))
    return np.array([before[part.stop] - before[part.start] for part in rows], np.float64)
