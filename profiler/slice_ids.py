"""Ids that slices have where the complete trace is queried, without writing it.

A verdict is drawn from a trace that holds only what it needs, so the ids there are not those of
`perfdiag query`. A trace processor numbers slices by their start and, at equal times, in the order
of the file: both are known without it.
"""

from collections.abc import Sequence

import numpy as np

from perfdiag.profiler.nesting import assign_tracks
from perfdiag.profiler.trace_packets import MetaSlice
from perfdiag.profiler.trace_writer import counter_slices, track_groups
from perfdiag.trace_schemas.recording import ABSENT, Int64s, Kind, Recording

__all__ = ["slice_ids"]


def slice_ids(
    recording: Recording,
    meta: Sequence[MetaSlice],
    lane: Int64s,
    bounds: tuple[Int64s, Int64s],
) -> Int64s:
    """(n,) ids of slices in the complete trace of a recording, -1 for one that it does not hold.

    Args:
        recording: all of it, its times rebased.
        meta: the facts that are written into the trace with it, lanes and counters apart.
        lane: (n,) lanes of the slices.
        bounds: (n,) their starts and ends. Of slices that agree in all of this, the first.
    """
    before = np.sort([0] * len(counter_slices(recording, 0)) + [item.ts_ns for item in meta])
    drawn = np.sort(np.array(recording.drawn_ns, np.int64))
    slices = recording.slices
    starts = np.sort(slices.ts_ns, kind="stable")
    order = _file_order(recording, bounds[0])
    times, lanes, ends = slices.ts_ns[order], slices.lane[order], slices.end_ns[order]
    work_first = np.isin(slices.kind[order], (Kind.DEVICE_ANNOTATION, Kind.DEVICE_SYNC))
    ids = np.full(len(lane), ABSENT, np.int64)
    for i, (number, start, end) in enumerate(zip(lane, *bounds, strict=True)):
        first, last = np.searchsorted(times, (start, start + 1))
        alike = np.flatnonzero((lanes[first:last] == number) & (ends[first:last] == end))
        if len(alike):
            at = alike[np.argmin(work_first[first + alike])]
            earlier = np.searchsorted(starts, start) + np.searchsorted(before, start, "right")
            ids[i] = earlier + np.searchsorted(drawn, start) + at
    return ids


def _file_order(recording: Recording, times_ns: Int64s) -> Int64s:
    """Rows of the slices that start at some times, in the order in which they are written."""
    slices, group = recording.slices, track_groups(recording)
    rows = np.flatnonzero(np.isin(slices.ts_ns, times_ns))
    level = np.zeros(len(rows), np.int64)
    for full in _shared(group[rows], slices.ts_ns[rows]).tolist():
        mine = np.flatnonzero(group == full)
        tracks = assign_tracks(slices.ts_ns[mine], slices.dur_ns[mine], group[mine])
        here = group[rows] == full
        level[here] = tracks.level[tracks.track[np.searchsorted(mine, rows[here])]]
    empty = slices.dur_ns[rows] == 0
    last = np.where(empty, 0, -slices.end_ns[rows])
    return rows[np.lexsort((rows, last, empty, level, group[rows], slices.ts_ns[rows]))]


def _shared(group: Int64s, times_ns: Int64s) -> Int64s:
    """Groups of which several slices start at one time: only there their tracks matter."""
    order = np.lexsort((times_ns, group))
    same = (np.diff(group[order]) == 0) & (np.diff(times_ns[order]) == 0)
    return np.unique(group[order][1:][same])
