"""Two faults of foreign traces: ids that several processes use, and ends that came too late."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT, Int64s, Kind, Lane, Slices

__all__ = ["mend_empty", "scoped_ids"]

_FROM_FLOW = 1 << 62
"""Ids of launches that have none of their own begin here."""

_PROCESS_BITS = 48
"""Ids of further processes are set apart above these."""

_FEWEST_EMPTY = 3
"""Slices without length inside another, before they are taken for a fault of the writer."""


def scoped_ids(slices: Slices, lanes: Sequence[Lane], launch: Int64s) -> Int64s:
    """(n,) correlation ids by which each launch finds its own device work and no other.

    Args:
        slices: with the ids of the source, which are unique only in one process.
        lanes: by number.
        launch: (n,) row of the slice that launched a device slice, or `ABSENT`.
    """
    ids = slices.correlation.copy()
    ids[ids < 0] = ABSENT
    numbers = {name: i for i, name in enumerate(dict.fromkeys(lane.process for lane in lanes))}
    process = np.array([numbers[lane.process] for lane in lanes] or [0], np.int64)[slices.lane]
    calls = np.flatnonzero((slices.kind == Kind.RUNTIME) & (ids != ABSENT))
    first = process[calls].min(initial=len(numbers))
    ids[calls] += np.maximum(process[calls] - first, 0) << _PROCESS_BITS
    linked = np.flatnonzero(launch != ABSENT)
    nameless = np.unique(launch[linked])
    nameless = nameless[ids[nameless] == ABSENT]
    ids[nameless] = _FROM_FLOW + nameless
    ids[linked] = ids[launch[linked]]
    return ids


def mend_empty(
    slices: Slices, parent: Int64s, on_device: NDArray[np.bool_]
) -> tuple[Slices, Notice]:
    """Slices back to back whose begins were all written before their ends.

    At equal times the end of one then closes the next, which lasts no time, while the first
    covers them all. On a device lane each begin is a boundary: what is open lasts until the
    next one. The time covered stays the same.

    Args:
        slices: in the order of the trace.
        parent: (n,) row of the enclosing slice, or `ABSENT`.
        on_device: (lanes,) whether work is mended there.

    Returns:
        The slices, and a notice with the number of those that were empty.
    """
    inside = (parent != ABSENT) & on_device[slices.lane]
    empty = np.flatnonzero(inside & (slices.dur_ns == 0) & (slices.dur_ns[parent] > 0))
    message = (
        "Slices without length inside another: their begins were written before the ends. Each "
        "is taken to last until the next one begins."
    )
    notice = Notice("duration.impossible", "info", len(empty), message)
    if len(empty) < _FEWEST_EMPTY:
        return slices, replace(notice, count=0)
    return replace(slices, dur_ns=_until_next(slices, empty, parent)), notice


def _until_next(slices: Slices, empty: Int64s, parent: Int64s) -> Int64s:
    dur_ns = slices.dur_ns.copy()
    for enclosing in np.unique(parent[empty]).tolist():
        pieces = [enclosing, *empty[parent[empty] == enclosing].tolist()]
        bounds = [*slices.ts_ns[pieces].tolist(), int(slices.end_ns[enclosing])]
        dur_ns[pieces] = np.diff(bounds)
    return dur_ns
