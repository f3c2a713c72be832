"""Why the device is idle: what the thread was doing that issued the work that ends the gap.

A gap ends with a device op. Until that op was launched, the gap belongs to what the launching
thread did; after that, to the launch itself and then to whatever the op waited for. Without a
launch only what the main thread shows can be believed: a silent thread proves nothing. Distances
between launch and start are not looked at where the device is busy: a deep queue costs nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.host_states import HostState, HostStates
from perfdiag.classifiers.intervals import gaps, instants
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["IdlePieces", "attribute_idle"]

LEAF = {name: code for code, name in enumerate(LEAVES)}

USUAL_LATENCY_NS = 10_000
"""From a launch call to the start of its kernel on an idle device, where the trace does not
show it: 3 to 12 us on the CUDA and HIP devices whose traces we hold."""


@dataclass(frozen=True, slots=True)
class IdlePieces:
    """Idle time, cut where its cause changes: (n,) starts in order, and leaves."""

    start_ns: Int64s
    leaf: NDArray[np.int8]

    def leaf_at(self, times_ns: Int64s) -> NDArray[np.int8]:
        """Leaf at times that lie in idle time."""
        if not len(self.start_ns):
            return np.full(len(times_ns), LEAF["unclassified"], np.int8)
        at = np.searchsorted(self.start_ns, times_ns, "right") - 1
        return self.leaf[np.maximum(at, 0)]


@dataclass(frozen=True, slots=True)
class _Gaps:
    """n gaps, and the launch of the op that ends each.

    Attributes:
        start_ns, end_ns: the gap.
        launch_ns, launch_end_ns: of the op that ends it, at most `end_ns`; `end_ns` where none is
            known.
        lane: that issued it.
        drained: a blocking call was under way when the device ran dry.
        unowned: no launch is known to end it: the trace ends first, or holds no launch of the op.
    """

    start_ns: Int64s
    end_ns: Int64s
    launch_ns: Int64s
    launch_end_ns: Int64s
    lane: Int64s
    drained: NDArray[np.bool_]
    unowned: NDArray[np.bool_]


def attribute_idle(
    model: Model,
    states: HostStates,
    here: NDArray[np.bool_],
    busy: tuple[Int64s, Int64s],
    span: tuple[int, int],
) -> IdlePieces:
    """Cut the idle time of a device by cause.

    Args:
        model: the rank.
        states: of its host lanes.
        here: (work,) what runs on the device.
        busy: union of that.
        span: from when to when.
    """
    found = _find_gaps(model, states, here, busy, span)
    if not here.any():
        return _without_device(states, found)
    host_until = np.clip(found.launch_ns, found.start_ns, found.end_ns)
    launched = np.clip(found.launch_end_ns + _latency(found), host_until, found.end_ns)
    own = np.where(found.drained, LEAF["sync"], LEAF["launch"])
    pieces = [
        _host_pieces(states, found, host_until),
        _pieces(host_until, launched, own),
        _pieces(launched, found.end_ns, np.full(len(launched), LEAF["dependency"])),
    ]
    starts = np.concatenate([p[0] for p in pieces])
    leaves = np.concatenate([p[1] for p in pieces])
    order = np.argsort(starts, kind="stable")
    return IdlePieces(starts[order], leaves[order].astype(np.int8))


def _find_gaps(
    model: Model,
    states: HostStates,
    here: NDArray[np.bool_],
    busy: tuple[Int64s, Int64s],
    span: tuple[int, int],
) -> _Gaps:
    """Gaps with the launch that ends each; without one, the main thread owns the whole gap."""
    starts, ends = gaps(*busy, *span)
    work = model.work
    rows = np.flatnonzero(here & (work.end_ns > work.ts_ns))
    at = np.searchsorted(work.ts_ns[rows], ends)
    known = at < len(rows)
    row = rows[at[known]]
    launched = work.launch_ts_ns[row] >= 0
    ended, row = np.flatnonzero(known)[launched], row[launched]
    launch_ns, launch_end_ns = ends.copy(), ends.copy()
    lane = np.full(len(ends), states.main_lane)
    launch_ns[ended] = np.minimum(work.launch_ts_ns[row], ends[ended])
    launch_end_ns[ended] = np.minimum(work.launch_end_ns[row], ends[ended])
    lane[ended] = work.launch_lane[row]
    drained = _drained(states, starts, lane)
    unowned = np.ones(len(ends), bool)
    unowned[ended] = False
    return _Gaps(starts, ends, launch_ns, launch_end_ns, lane, drained, unowned)


def _drained(states: HostStates, starts: Int64s, lane: Int64s) -> NDArray[np.bool_]:
    drained = states.blocked_since(states.main_lane, starts)
    for number in np.unique(lane).tolist():
        mine = lane == number
        drained[mine] |= states.blocked_since(number, starts[mine])
    return drained


def _latency(found: _Gaps) -> int:
    """How long a launch takes to start its kernel on an idle device: the faster half's median."""
    idle_launch = (found.launch_ns > found.start_ns) & (found.launch_ns < found.end_ns)
    waits = np.sort((found.end_ns - found.launch_end_ns)[idle_launch])
    return int(np.median(waits[: (len(waits) + 1) // 2])) if len(waits) >= 8 else USUAL_LATENCY_NS


def _pieces(
    starts: Int64s, ends: Int64s, leaf: NDArray[np.integer]
) -> tuple[Int64s, NDArray[np.integer]]:
    some = ends > starts
    return starts[some], leaf[some]


_STATE_LEAF = np.full(len(HostState), LEAF["host_other"], np.int64)
_STATE_LEAF[HostState.PROFILER] = LEAF["profiler"]
_STATE_LEAF[HostState.INPUT] = LEAF["input"]
_STATE_LEAF[HostState.BLOCKED] = LEAF["sync"]
_STATE_LEAF[HostState.DISPATCHING] = LEAF["launch"]


def _host_pieces(
    states: HostStates, found: _Gaps, until: Int64s
) -> tuple[Int64s, NDArray[np.integer]]:
    """The parts of gaps before the launch, by what the launching thread was doing."""
    parts = []
    for lane in np.unique(found.lane).tolist():
        rows = np.flatnonzero((found.lane == lane) & (until > found.start_ns))
        edges = _edges_of(states, lane)
        starts, gap = _cut(found.start_ns[rows], until[rows], edges)
        state = states.at(lane, starts)
        if lane != states.main_lane:
            silent = state == HostState.NOTHING
            state[silent] = states.at(states.main_lane, starts[silent])
        leaf = _STATE_LEAF[state]
        weak = state >= HostState.BRIEF
        leaf[weak & found.drained[rows][gap]] = LEAF["sync"]
        leaf[(state == HostState.NOTHING) & found.unowned[rows][gap]] = LEAF["unclassified"]
        parts.append((starts, leaf))
    return (
        np.concatenate([p[0] for p in parts] or [np.empty(0, np.int64)]),
        np.concatenate([p[1] for p in parts] or [np.empty(0, np.int64)]),
    )


def _edges_of(states: HostStates, lane: int) -> Int64s:
    empty = np.empty(0, np.int64)
    both = [states.edges.get(n, empty) for n in {lane, states.main_lane}]
    return instants(*both)


def _cut(starts: Int64s, ends: Int64s, edges: Int64s) -> tuple[Int64s, Int64s]:
    """Disjoint intervals cut at edges: starts of the pieces, and the interval of each."""
    first = np.searchsorted(edges, starts, "right")
    count = np.maximum(np.searchsorted(edges, ends, "left") - first, 0)
    gap = np.repeat(np.arange(len(starts)), count)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    inner = edges[np.repeat(first, count) + within]
    return np.concatenate((starts, inner)), np.concatenate((np.arange(len(starts)), gap))


def _without_device(states: HostStates, found: _Gaps) -> IdlePieces:
    """A host alone: waiting for input shows, nothing else can be told."""
    starts, _ = _cut(found.start_ns, found.end_ns, _edges_of(states, states.main_lane))
    starts = np.sort(starts)
    state = states.at(states.main_lane, starts)
    leaf = np.full(len(starts), LEAF["unclassified"], np.int8)
    leaf[state == HostState.INPUT] = LEAF["input"]
    return IdlePieces(starts, leaf)
