"""Features of how work gets to the device: launches, queues, and what the host's thread does."""

import numpy as np

from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Floats, held_within, ratio
from perfdiag.classifiers.features.view import View
from perfdiag.classifiers.host_states import HostState
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["FEATURES", "SHORT_NS", "columns"]

SHORT_NS = 10_000
"""Of a kernel that takes about as long as the host takes for an operator and its launch: 5 to 10 us
in eager PyTorch."""

FEATURES = described(
    "launch",
    ("launches_per_ms", "1/ms", "Calls that start device work, and begin in the window"),
    ("kernel_median", "log10 ns", "Median duration of the kernels that start in the window"),
    ("short_kernels", "share", "Of the time of kernels, in kernels shorter than 10 us"),
    ("idle_starts", "share", "Of the kernels, those that start on an idle device"),
    ("launch_wait", "log10 ns", "Median time from the end of a launch to the start of its kernel"),
    (
        "queue_depth",
        "log2",
        "One more than what is launched and not done, median where kernels start",
    ),
    ("queue_at_begin", "log2", "One more than what is launched and not done as the window begins"),
    ("launch_call", "log10 ns", "Median duration of the calls that start device work"),
    ("graph_launched", "share", "Of the kernels, those that the launch of a graph starts"),
    ("other_thread", "share", "Of the device work, what another than the main thread launches"),
    ("blocking_per_ms", "1/ms", "Calls of the main thread that wait for the device"),
    ("main_blocked", "share", "Of the window, the main thread in calls that wait for the device"),
    ("main_operators", "share", "Of the window, the main thread in operators and in no call"),
    ("main_calls", "share", "Of the window, the main thread in runtime calls that do not wait"),
    ("main_input", "share", "Of the window, the main thread loads or waits for data"),
    ("main_other", "share", "Of the window, the main thread in named work that is not the step's"),
    ("main_nothing", "share", "Of the window, the main thread in nothing that the trace shows"),
)

_MS = 1e6


def columns(view: View) -> dict[str, Floats]:
    """(n,) values by name of feature."""
    return _kernels(view) | _queue(view) | _calls(view) | _main_thread(view)


def _kernels(view: View) -> dict[str, Floats]:
    work, rows = view.facts.model.work, view.kernels
    start, starts, length = work.ts_ns[rows], view.kernel_starts, view.facts.length_ns[rows]
    gaps = view.facts.idle_gaps[1]
    idle = np.append(gaps, ABSENT)[np.searchsorted(gaps, start)] == start
    calls = view.facts.model.calls
    linked = work.launch_id[rows] != ABSENT
    launched = starts.where(linked)
    graphs = calls.id[calls.role.where("graph_launch")]
    in_graph = np.isin(work.launch_id[rows][linked], graphs)
    waited = np.maximum(start - work.launch_end_ns[rows], 0)[linked]
    return {
        "kernel_median": _log10(starts.medians(length)),
        "short_kernels": ratio(view.running.time(length < SHORT_NS), view.kernel_ns),
        "idle_starts": ratio(starts.sums(idle), starts.sums()),
        "launch_wait": _log10(launched.medians(waited)),
        "graph_launched": ratio(launched.sums(in_graph), launched.sums()),
    }


def _queue(view: View) -> dict[str, Floats]:
    """Of what has a launch in the trace; what starts does not count itself."""
    work = view.facts.model.work
    rows = np.flatnonzero(view.facts.here & (work.launch_id != ABSENT))
    launched, done = np.sort(work.launch_ts_ns[rows]), np.sort(work.end_ns[rows])

    def depth(times_ns: Int64s) -> Int64s:
        begun = np.searchsorted(launched, times_ns, "right")
        return begun - np.searchsorted(done, times_ns, "right")

    starts = view.spans.place(work.ts_ns[rows])
    behind = np.maximum(depth(work.ts_ns[rows]) - 1, 0)
    at_begin = depth(view.spans.start_ns) if len(rows) else np.full(len(view.step), np.nan)
    other = work.launch_lane[rows] != view.facts.states.main_lane
    return {
        "queue_depth": np.log2(1 + starts.medians(behind)),
        "queue_at_begin": np.log2(1 + np.maximum(at_begin, 0)),
        "other_thread": ratio(starts.sums(other), starts.sums()),
    }


def _calls(view: View) -> dict[str, Floats]:
    calls = view.facts.model.calls
    if not view.facts.coverage.has_host:
        return {}
    rows = np.flatnonzero(calls.linked)
    begun = view.spans.place(calls.ts_ns[rows])
    return {
        "launches_per_ms": ratio(begun.sums(), view.spans.length_ns / _MS),
        "launch_call": _log10(begun.medians(calls.end_ns[rows] - calls.ts_ns[rows])),
    }


_MAIN = {
    "main_blocked": (HostState.BLOCKED,),
    "main_operators": (HostState.DISPATCHING,),
    "main_input": (HostState.INPUT,),
    "main_other": (HostState.OTHER, HostState.BRIEF),
}


def _main_thread(view: View) -> dict[str, Floats]:
    """Without host events in the trace nothing is known."""
    facts, spans = view.facts, view.spans
    states, lane = facts.states, facts.states.main_lane
    if not facts.coverage.has_host or lane not in states.edges:
        return {}
    edges, window = states.edges[lane], spans.length_ns
    now = states.at(lane, edges[:-1])
    in_state = {
        name: held_within(edges[:-1], edges[1:], spans, np.isin(now, wanted))
        for name, wanted in _MAIN.items()
    }
    named = held_within(edges[:-1], edges[1:], spans, now != HostState.NOTHING)
    calls = np.minimum(_call_ns(view, lane), in_state["main_operators"])
    in_state["main_operators"] = in_state["main_operators"] - calls
    blocked = states.unions[lane][HostState.BLOCKED][0]
    return {name: ratio(ns, window) for name, ns in in_state.items()} | {
        "main_calls": ratio(calls, window),
        "main_nothing": ratio(window - named, window),
        "blocking_per_ms": ratio(spans.place(blocked).sums(), window / _MS),
    }


def _call_ns(view: View, lane: int) -> Floats:
    """(n,) time in runtime calls that do not wait."""
    calls, unions = view.facts.model.calls, view.facts.states.unions[lane]
    mine = calls.lane == lane
    blocked = held_within(*unions[HostState.BLOCKED], view.spans)
    return held_within(*merge(calls.ts_ns[mine], calls.end_ns[mine]), view.spans) - blocked


def _log10(time_ns: Floats) -> Floats:
    return np.log10(1 + time_ns)
