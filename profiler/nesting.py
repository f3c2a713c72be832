"""How slices nest on their lanes, and tracks on which they never cross.

All of it is sorting: the ends of the slices are put in order, depth is a running sum, and a
slice whose begin and end are not partners at their depth crosses another one.
"""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.recording import ABSENT, Int32s, Int64s

__all__ = ["Nesting", "Tracks", "assign_tracks", "count_crossings", "nest"]

MAX_DEPTH = 500
"""Of slices on one track. The trace processor keeps at most 512 open (v52, slice_tracker.cc) and
gives the ends of the others to the wrong ones."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """Where n slices stand on their lanes.

    Attributes:
        order: (2n,) begins (row) and ends (n + row) by lane, then time, innermost ends first.
        parent: (n,) row of the enclosing slice of the same lane, or `ABSENT`. On a lane whose
            slices cross it may be one that ended before.
        crossing: (n,) True for some of the slices that cross, on every lane on which any do.
    """

    order: Int64s
    parent: Int64s
    crossing: NDArray[np.bool_]


def nest(ts_ns: Int64s, dur_ns: Int64s, lane: NDArray[np.integer]) -> Nesting:
    """Nest slices by time on each lane; at equal times the longer one encloses."""
    n = len(ts_ns)
    order = _order(ts_ns, dur_ns, lane)
    begins = order < n
    row = np.where(begins, order, order - n)
    depth = np.cumsum(np.where(begins, 1, -1)) + ~begins
    position = np.arange(2 * n)
    by_depth = np.lexsort((position, depth))
    opened, closed = row[by_depth[0::2]], row[by_depth[1::2]]
    crossing = np.zeros(n, bool)
    crossing[opened[opened != closed]] = True
    crossing[closed[opened != closed]] = True
    return Nesting(order, _parents(row[begins], depth[begins], position[begins]), crossing)


def _order(ts_ns: Int64s, dur_ns: Int64s, lane: NDArray[np.integer]) -> Int64s:
    """Ends before begins at equal times; a slice without length is closed at once."""
    n = len(ts_ns)
    row = np.arange(n)
    end_ns, empty = ts_ns + dur_ns, dur_ns == 0
    time = np.concatenate((ts_ns, end_ns))
    phase = np.concatenate((np.where(empty, 2, 1), np.where(empty, 2, 0)))
    first = np.concatenate(
        (np.where(empty, 2 * row, -end_ns), np.where(empty, 2 * row + 1, -ts_ns))
    )
    second = np.concatenate((row, -row))
    return np.lexsort((second, first, phase, time, np.concatenate((lane, lane))))


def _parents(row: Int64s, depth: Int64s, position: Int64s) -> Int64s:
    """The last slice that began one level up; begins are given in order."""
    parent = np.full(len(row), ABSENT, np.int64)
    if not len(row):
        return parent
    span = 2 * len(row) + 1
    key = depth * span + position
    by_key = np.argsort(key)
    before = np.searchsorted(key[by_key], (depth - 1) * span + position) - 1
    nested = depth > 1
    parent[row[nested]] = row[by_key[before[nested]]]
    return parent


@dataclass(frozen=True, slots=True)
class Tracks:
    """Tracks on which slices never cross.

    Attributes:
        track: (n,) track of each slice.
        lane: (tracks,) lane of each track.
        level: (tracks,) 0 for a lane's own track, 1, 2, ... for those that take what crosses.
        order: (2n,) begins and ends by track, then time; see `Nesting.order`.
    """

    track: Int32s
    lane: Int64s
    level: Int64s
    order: Int64s


def assign_tracks(ts_ns: Int64s, dur_ns: Int64s, lane: NDArray[np.integer]) -> Tracks:
    """Put every slice on the first track of its lane that takes it.

    That is one on which it crosses none before it and lies no deeper than `MAX_DEPTH`.
    """
    lane = lane.astype(np.int64)
    nesting = nest(ts_ns, dur_ns, lane)
    level = np.zeros(len(ts_ns), np.int64)
    for full in np.unique(lane[nesting.crossing | _too_deep(nesting.order)]).tolist():
        rows = np.flatnonzero(lane == full)
        level[rows] = _levels(ts_ns[rows], ts_ns[rows] + dur_ns[rows])
    key = lane * (level.max(initial=0) + 1) + level
    _, first, track = np.unique(key, return_index=True, return_inverse=True)
    order = nesting.order if not level.any() else _order(ts_ns, dur_ns, track)
    return Tracks(track.astype(np.int32), lane[first].astype(np.int64), level[first], order)


def _too_deep(order: Int64s) -> NDArray[np.bool_]:
    """(n,) whether a slice lies deeper than a track can hold."""
    n = len(order) // 2
    begins = order < n
    deep = np.zeros(n, bool)
    deep[order[begins]] = np.cumsum(np.where(begins, 1, -1))[begins] > MAX_DEPTH
    return deep


MOST_NESTED_LEVELS = 64
"""Levels on which slices may nest. Lanes that need more hold no threads; on further levels slices
follow each other, which a heap finds at once."""


def _levels(ts_ns: Int64s, end_ns: Int64s) -> Int64s:
    """First fit: each level is a stack of open ends."""
    levels = np.zeros(len(ts_ns), np.int64)
    stacks: list[list[int]] = []
    flat: list[tuple[int, int]] = []
    starts, ends = ts_ns.tolist(), end_ns.tolist()
    for row in np.lexsort((-end_ns, ts_ns)).tolist():
        level = _fitting(stacks, starts[row], ends[row])
        if level == MOST_NESTED_LEVELS:
            free = flat and flat[0][0] <= starts[row]
            level = heappop(flat)[1] if free else MOST_NESTED_LEVELS + len(flat)
            heappush(flat, (ends[row], level))
        levels[row] = level
    return levels


def _fitting(stacks: list[list[int]], start: int, end: int) -> int:
    """The first level on which a slice nests, opened if it may be; else the number of levels."""
    for level, stack in enumerate(stacks):
        while stack and stack[-1] <= start:
            stack.pop()
        if not stack or (stack[-1] >= end and len(stack) < MAX_DEPTH):
            stack.append(end)
            return level
    if len(stacks) < MOST_NESTED_LEVELS:
        stacks.append([end])
        return len(stacks) - 1
    return MOST_NESTED_LEVELS


def count_crossings(ts_ns: Int64s, dur_ns: Int64s, lane: NDArray[np.integer]) -> int:
    """Slices that start inside an earlier one of their lane and outlast it."""
    crossing = nest(ts_ns, dur_ns, lane).crossing
    return sum(
        _crossings(ts_ns[rows], ts_ns[rows] + dur_ns[rows])
        for rows in (np.flatnonzero(lane == n) for n in np.unique(lane[crossing]).tolist())
    )


def _crossings(ts_ns: Int64s, end_ns: Int64s) -> int:
    starts, ends = ts_ns.tolist(), end_ns.tolist()
    open_ends: list[int] = []
    count = 0
    for row in np.lexsort((-end_ns, ts_ns)).tolist():
        del open_ends[: bisect_right(open_ends, starts[row])]
        count += bisect_left(open_ends, ends[row]) > 0
        insort(open_ends, ends[row])
    return count
