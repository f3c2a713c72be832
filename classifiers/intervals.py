"""Sets of intervals on one time line, as sorted arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Cuts", "covered", "cut", "gaps", "instants", "merge"]


def merge(start_ns: Int64s, end_ns: Int64s) -> tuple[Int64s, Int64s]:
    """The union of intervals as disjoint ones, in order; empty intervals vanish."""
    some = end_ns > start_ns
    order = np.argsort(start_ns[some], kind="stable")
    starts, ends = start_ns[some][order], end_ns[some][order]
    if not len(starts):
        return starts, ends
    reach = np.maximum.accumulate(ends)
    fresh = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((fresh[1:], [True]))
    return starts[fresh], reach[last]


def gaps(start_ns: Int64s, end_ns: Int64s, begin_ns: int, until_ns: int) -> tuple[Int64s, Int64s]:
    """What a union (as `merge` gives it) leaves free between two times."""
    starts = np.concatenate(([begin_ns], np.clip(end_ns, begin_ns, until_ns)))
    ends = np.concatenate((np.clip(start_ns, begin_ns, until_ns), [until_ns]))
    free = ends > starts
    return starts[free], ends[free]


def covered(start_ns: Int64s, end_ns: Int64s, at_ns: Int64s) -> NDArray[np.bool_]:
    """(n,) whether a union (as `merge` gives it) covers each time; ends are outside."""
    at = np.searchsorted(start_ns, at_ns, "right") - 1
    inside = at >= 0
    inside[inside] = at_ns[inside] < end_ns[at[inside]]
    return inside


def instants(*times_ns: Int64s) -> Int64s:
    """All different times, in order.

    By sorting: numpy's own `unique` hashes, which on times a constant step apart is a hundred
    times slower (numpy 2.4).
    """
    times = np.sort(np.concatenate(times_ns), kind="stable")
    fresh = np.concatenate((np.ones(min(len(times), 1), bool), times[1:] != times[:-1]))
    return np.asarray(times[fresh], np.int64)


class Cuts(NamedTuple):
    """(n,) parts of intervals: where they start and end, of which interval, in which window."""

    start_ns: Int64s
    end_ns: Int64s
    interval: Int64s
    window: Int64s


def cut(intervals: tuple[Int64s, Int64s], windows: tuple[Int64s, Int64s]) -> Cuts:
    """Cut intervals at the bounds of windows; what lies in none is left out.

    Args:
        intervals: starts and ends, in any order.
        windows: starts and ends, disjoint and in order; empty ones take nothing.
    """
    first = np.searchsorted(windows[1], intervals[0], "right")
    count = np.maximum(np.searchsorted(windows[0], intervals[1], "left") - first, 0)
    interval = np.repeat(np.arange(len(count)), count)
    before = np.repeat(np.cumsum(count) - count, count)
    window = np.repeat(first, count) + np.arange(len(interval)) - before
    starts = np.maximum(intervals[0][interval], windows[0][window])
    ends = np.minimum(intervals[1][interval], windows[1][window])
    some = ends > starts
    return Cuts(starts[some], ends[some], interval[some], window[some])
