"""What a host thread is doing at each moment, as disjoint intervals per lane."""

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.intervals import covered, instants, merge
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.host_ranges import classify_range, marks_step
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["HostState", "HostStates"]


class HostState(IntEnum):
    """States in the order in which they win where several hold at once."""

    PROFILER = 0
    """The thread itself works for the profiler."""
    INPUT = 1
    OTHER = 2
    """Named work that is not the step's: garbage collection, checkpoints, logging, compilers."""
    HELD = 3
    """The profiler is busy on another thread: what calls the device may wait for it, a loader that
    goes on meanwhile does not."""
    BLOCKED = 4
    """Inside a call that waits for the device."""
    BRIEF = 5
    """Named work that is not the step's, but so short that a queue of launches would hide it."""
    DISPATCHING = 6
    """Inside an operator or a runtime call."""
    NOTHING = 7
    """No event: Python between operators, or a thread that waits for work."""


_ACTIVITY_STATE = {
    "profiler_overhead": HostState.PROFILER,
    "input": HostState.INPUT,
    "compile": HostState.OTHER,
    "gc": HostState.OTHER,
    "checkpoint": HostState.OTHER,
    "logging": HostState.OTHER,
    "module_loading": HostState.OTHER,
    "queue_full": HostState.DISPATCHING,
}

HIDDEN_BY_QUEUE_NS = 1_000_000
"""The launch queue holds 1,024 kernels (the limit that HolisticTraceAnalysis measures queue
lengths against); even of a microsecond each they hide this much."""

Union = tuple[Int64s, Int64s]


@dataclass(frozen=True, slots=True)
class HostStates:
    """States of all host lanes of a model.

    Attributes:
        unions: by lane and state, the time spent in it. Profiler overhead counts on all lanes:
            CUPTI flushes its buffers on a thread of its own while launches wait, and Kineto does
            not write on which thread overhead was.
        edges: by lane, all times at which a state begins or ends, sorted.
        main_lane: the lane that bears the steps or, without markers, most of the launches.
    """

    unions: dict[int, dict[HostState, Union]]
    edges: dict[int, Int64s]
    main_lane: int

    @classmethod
    def of(cls, model: Model) -> "HostStates":
        """Read the states off the slices of a model."""
        lane, state, start_ns, end_ns = _stated(model)
        overhead = state == HostState.PROFILER
        unions: dict[int, dict[HostState, Union]] = {}
        main_lane = _main_lane(model)
        for number in np.union1d(lane, [main_lane]).tolist():
            here = np.where(overhead & (lane != number), HostState.HELD, state)
            here[(lane != number) & ~overhead] = HostState.NOTHING
            unions[number] = {
                s: merge(start_ns[here == s], end_ns[here == s])
                for s in HostState
                if s != HostState.NOTHING
            }
        edges = {
            number: instants(*(side for union in by.values() for side in union))
            for number, by in unions.items()
        }
        return cls(unions, edges, main_lane)

    def at(self, lane: int, times_ns: Int64s) -> NDArray[np.int8]:
        """(n,) state of a lane at each time."""
        states = np.full(len(times_ns), HostState.NOTHING, np.int8)
        for state, union in reversed(self.unions.get(lane, {}).items()):
            states[covered(*union, times_ns)] = state
        return states

    def blocked_since(self, lane: int, times_ns: Int64s) -> NDArray[np.bool_]:
        """(n,) whether a blocking call was under way when the device ran dry at each time."""
        union = self.unions.get(lane, {}).get(HostState.BLOCKED)
        if union is None:
            return np.zeros(len(times_ns), bool)
        return covered(union[0], union[1] + 1, times_ns) & covered(*union, times_ns - 1)


def _stated(model: Model) -> tuple[Int64s, NDArray[np.int8], Int64s, Int64s]:
    hosts, calls = model.hosts, model.calls
    state = hosts.name.map(_named_state, np.int8)
    unnamed = state == HostState.NOTHING
    # Old traces write their step markers as operators, and a step is no activity.
    dispatches = hosts.kind.where("host_op") & ~hosts.name.map(marks_step, np.bool_)
    state[unnamed & dispatches] = HostState.DISPATCHING
    state[unnamed & hosts.kind.where("overhead")] = HostState.PROFILER
    state[(state == HostState.PROFILER) & hosts.kind.where("host_op")] = HostState.DISPATCHING
    brief = hosts.end_ns - hosts.ts_ns < HIDDEN_BY_QUEUE_NS
    state[(state == HostState.OTHER) & brief] = HostState.BRIEF
    known = state != HostState.NOTHING
    blocks = calls.role.where("sync") | _awaits_its_copy(model)
    call_state = np.where(blocks, HostState.BLOCKED, HostState.DISPATCHING)
    return (
        np.concatenate((hosts.lane[known], calls.lane)),
        np.concatenate((state[known], call_state)).astype(np.int8),
        np.concatenate((hosts.ts_ns[known], calls.ts_ns)),
        np.concatenate((hosts.end_ns[known], calls.end_ns)),
    )


_TO_HOST = re.compile(r"DtoH|D2H|DeviceToHost", re.IGNORECASE)


def _awaits_its_copy(model: Model) -> NDArray[np.bool_]:
    """(calls,) whether the call of an "asynchronous" copy to the host returns only when it is done.

    To pageable memory it does (CUDA API, "API synchronization behavior"): such calls outlast their
    copy by 4 us and more in all traces that we hold, those to pinned memory return before it.
    """
    work, calls = model.work, model.calls
    order = np.argsort(calls.id, kind="stable")
    to_host = work.name.map(lambda name: bool(_TO_HOST.search(name)), np.bool_)
    copies = work.kind.where("copy") & to_host & np.isin(work.launch_id, calls.id)
    row = order[np.searchsorted(calls.id, work.launch_id[copies], sorter=order)]
    awaits = np.zeros(len(calls.id), bool)
    awaits[row] = calls.end_ns[row] >= work.end_ns[copies]
    return awaits & calls.role.where("copy")


def _named_state(name: str) -> HostState:
    return _ACTIVITY_STATE.get(classify_range(name), HostState.NOTHING)


def _main_lane(model: Model) -> int:
    hosts, calls = model.hosts, model.calls
    marker = set(model.steps.name)
    steps = np.isin(hosts.ts_ns, model.steps.host_ts_ns) & hosts.name.map(
        marker.__contains__, np.bool_
    )
    for lanes in (hosts.lane[steps], calls.lane[calls.linked], calls.lane, hosts.lane):
        if len(lanes):
            return int(np.bincount(lanes).argmax())
    return -1
