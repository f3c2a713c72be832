"""Why the device is idle: what the thread was doing that issued the work that ends the gap.

A gap ends with a device op. Until that op was launched, the gap belongs to what the launching
thread did; after that, to the launch itself and then to whatever the op waited for. Without a
launch only what the main thread shows can be believed: a silent thread proves nothing. Distances
between launch and start are not looked at where the device is busy: a deep queue costs nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.coverage import lost_launches
from perfdiag.classifiers.host_states import HostState, HostStates
from perfdiag.classifiers.intervals import gaps, instants
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.recording import ABSENT, Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["ENOUGH", "IdlePieces", "attribute_idle", "usual_latency_ns"]

LEAF = {name: code for code, name in enumerate(LEAVES)}

USUAL_LATENCY_NS = 10_000
"""From a launch call to the start of its kernel on an idle device, where the trace does not
show it: 3 to 12 us on the CUDA and HIP devices whose traces we hold."""

ENOUGH = 8
"""Launches onto an idle device that tell how long one takes; a choice."""

LONGEST_LATENCY_NS = 100_000
"""No launch takes longer to start a kernel: at most 45 us in the traces that we hold (MTIA). Where
every kernel starts later than that, they wait for something else."""


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
        doubt_ns: from here to the end it cannot be believed: work was launched between the ops on
            both sides of which there is no record. `end_ns` without such work.
        waits_for: leaf of the time after the launch. Before the first op no stream or event is
            known to wait for: what ran then was launched before the trace began.
    """

    start_ns: Int64s
    end_ns: Int64s
    launch_ns: Int64s
    launch_end_ns: Int64s
    lane: Int64s
    drained: NDArray[np.bool_]
    unowned: NDArray[np.bool_]
    doubt_ns: Int64s
    waits_for: Int64s


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
    host_until = np.clip(found.launch_ns, found.start_ns, found.doubt_ns)
    launched = np.clip(found.launch_end_ns + _latency(found), host_until, found.doubt_ns)
    count = len(launched)
    pieces = [
        _host_pieces(states, found, host_until),
        _launch_pieces(states, found, host_until, launched),
        _pieces(launched, found.doubt_ns, found.waits_for),
        _pieces(found.doubt_ns, found.end_ns, np.full(count, LEAF["unclassified"])),
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
    before = np.append(ABSENT, np.maximum.accumulate(work.launch_ts_ns[rows]))[at]
    doubt_ns = _doubt(lost_launches(model.calls), before, launch_ns, (starts, ends))
    waits_for = np.where(at > 0, LEAF["dependency"], LEAF["unclassified"])
    return _Gaps(
        starts, ends, launch_ns, launch_end_ns, lane, drained, unowned, doubt_ns, waits_for
    )


def _doubt(lost_ns: Int64s, after: Int64s, before: Int64s, gap: tuple[Int64s, Int64s]) -> Int64s:
    """When the first launch without a record was made between two launches, inside the gap."""
    at = np.searchsorted(lost_ns, after, "right")
    first = np.append(lost_ns, np.iinfo(np.int64).max)[at]
    return np.where(first < before, np.clip(first, *gap), gap[1])


def _drained(states: HostStates, starts: Int64s, lane: Int64s) -> NDArray[np.bool_]:
    drained = states.blocked_since(states.main_lane, starts)
    for number in np.unique(lane).tolist():
        drained |= states.blocked_since(number, starts)
    return drained


def _latency(found: _Gaps) -> int:
    """How long a launch takes to start its kernel on an idle device: the faster half's median."""
    idle_launch = (found.launch_ns > found.start_ns) & (found.launch_ns < found.end_ns)
    return usual_latency_ns((found.end_ns - found.launch_end_ns)[idle_launch])


def usual_latency_ns(waits_ns: Int64s) -> int:
    """The median of the faster half of (n,) times from launches to starts on an idle device.

    The slower half may have waited for something else.
    """
    if len(waits_ns) < ENOUGH:
        return USUAL_LATENCY_NS
    faster = np.sort(waits_ns)[: (len(waits_ns) + 1) // 2]
    return min(int(np.median(faster)), LONGEST_LATENCY_NS)


def _pieces(
    starts: Int64s, ends: Int64s, leaf: NDArray[np.integer]
) -> tuple[Int64s, NDArray[np.integer]]:
    some = ends > starts
    return starts[some], leaf[some]


_STATE_LEAF = np.full(len(HostState), LEAF["host_other"], np.int64)
_STATE_LEAF[HostState.PROFILER] = LEAF["profiler"]
_STATE_LEAF[HostState.HELD] = LEAF["profiler"]
_STATE_LEAF[HostState.INPUT] = LEAF["input"]
_STATE_LEAF[HostState.BLOCKED] = LEAF["sync"]
_STATE_LEAF[HostState.DISPATCHING] = LEAF["launch"]


def _host_pieces(
    states: HostStates, found: _Gaps, until: Int64s
) -> tuple[Int64s, NDArray[np.integer]]:
    """The parts of gaps before the launch, by what the launching thread was doing."""
    starts, gap, state = _seen(states, found, found.start_ns, until)
    leaf = _STATE_LEAF[state]
    weak = state >= HostState.BRIEF
    leaf[weak & found.drained[gap]] = LEAF["sync"]
    leaf[(state == HostState.NOTHING) & found.unowned[gap]] = LEAF["unclassified"]
    return starts, leaf


def _launch_pieces(
    states: HostStates, found: _Gaps, begin: Int64s, until: Int64s
) -> tuple[Int64s, NDArray[np.integer]]:
    """The parts of gaps that a launch takes; CUPTI asks for buffers inside the call."""
    starts, gap, state = _seen(states, found, begin, until)
    leaf = np.where(found.drained, LEAF["sync"], LEAF["launch"])[gap]
    overhead = np.isin(state, (HostState.PROFILER, HostState.HELD))
    leaf[overhead & (starts < found.launch_end_ns[gap])] = LEAF["profiler"]
    return starts, leaf


def _seen(
    states: HostStates, found: _Gaps, begin: Int64s, until: Int64s
) -> tuple[Int64s, Int64s, NDArray[np.int8]]:
    """Gaps between two times, cut where the launching thread's state changes: start, gap, state.

    Where that thread is silent, the main thread is asked.
    """
    parts = []
    for lane in np.unique(found.lane).tolist():
        rows = np.flatnonzero((found.lane == lane) & (until > begin))
        starts, gap = _cut(begin[rows], until[rows], _edges_of(states, lane))
        state = states.at(lane, starts)
        if lane != states.main_lane:
            silent = np.isin(state, (HostState.NOTHING, HostState.HELD))
            state[silent] = states.at(states.main_lane, starts[silent])
        parts.append((starts, rows[gap], state))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8)
    starts, gap, state = (np.concatenate(side) for side in zip(*parts, strict=True))
    return starts, gap, state


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
