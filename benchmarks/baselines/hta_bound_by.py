"""HolisticTraceAnalysis at f4d0062: the largest `bound_by` of its critical path.

Published: `hta/analyzers/critical_path_analysis.py`. The path is the longest one by weight through
the beginnings and ends of operators, runtime calls and device work. On the host, time inside
operators and calls counts, thread by thread; time between operators weighs nothing, nor does a
blocking call. A kernel is reached from its launch where its stream had nothing left when it was
launched, and the next is not launched when it begins; else from the work before it, if the gap is
below 1.5 ms. There is no way back from the device to the host, nor from stream to stream, without
`cuda_sync` records, which PyTorch writes only on request; the rule here is the one for traces
without them. So the path is a stretch of one host thread, a launch, and what follows on one stream.

Work is what was launched in the window; of what one call launched, as the replay of a graph, only
the last is seen (its issue 290). The tool drops the last step of a trace, too, which this rule does
not: it is told which window to look at. What annotations alone show (a loader's wait, garbage
collection, a sleep) is not on the path, however long; copies and fills are compute; a collective's
wait is communication.

Our mapping: `cpu_bound` and `gpu_kernel_launch_overhead` are host-bound, `gpu_communication_bound`
is collective-bound, `gpu_compute_bound` is compute-bound (the tool cannot tell arithmetic from
memory), `gpu_kernel_kernel_overhead` is unknown: its documents put it down to nothing. An empty
path is unknown.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.hta_names import COMMUNICATION
from baselines.rule import Baseline, heaviest
from baselines.seen import named
from baselines.spans import Cover, Windows
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Model, Work
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Label

__all__ = ["BOUNDS", "HTA_BOUND_BY"]

Bools = NDArray[np.bool_]

LONGEST_GAP_NS = 1_500_000

BOUNDS: dict[str, Label] = {
    "cpu_bound": "host-bound",
    "gpu_kernel_launch_overhead": "host-bound",
    "gpu_compute_bound": "compute-bound",
    "gpu_communication_bound": "collective-bound",
    "gpu_kernel_kernel_overhead": "unknown",
}
"""Our label for each of the tool's classes."""

_BLOCKING = re.compile(r"cuda(?:(?:Device|Stream|Event)Synchronize|EventQuery|Memcpy(?:Async)?)\Z")


@dataclass(frozen=True, slots=True)
class _Thread:
    """One host thread: what its operators and calls take, and the blocking part of that."""

    spent: Cover
    blocked: Cover

    def weight(self, windows: Windows) -> Int64s:
        return self.spent.inside(windows) - self.blocked.inside(windows)


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    threads = _threads(facts.model)
    alone = [thread.weight(windows) for thread in threads.values()]
    longest = np.max(alone, axis=0) if alone else np.zeros(len(windows[0]), np.int64)
    streams = _Streams.of(facts.model.work)
    labels: list[Label] = []
    for begin, until, host in zip(*windows, longest.tolist(), strict=True):
        chains = _chains(streams, int(begin), int(until))
        prefix = _prefix(streams.work, threads, chains, int(begin))
        labels.append(_label(streams, chains, prefix, host))
    return labels


@dataclass(frozen=True, slots=True)
class _Streams:
    """The device work that the path can hold.

    Attributes:
        work: all of the rank's.
        rows: (k,) of it, stream by stream: the last that each call launched.
        previous: (k,) row before on the stream, -1 for none.
        alone: (k,) whether nothing more waits on the stream when each begins.
        comm: (work,) what counts as communication.
    """

    work: Work
    rows: Int64s
    previous: Int64s
    alone: Bools
    comm: Bools

    @classmethod
    def of(cls, work: Work) -> "_Streams":
        kept = _last_of_call(work)
        rows = kept[np.argsort(work.lane[kept], kind="stable")]
        same = work.lane[rows][1:] == work.lane[rows][:-1]
        previous, alone = np.full(len(rows), -1, np.int64), np.ones(len(rows), np.bool_)
        previous[1:][same] = rows[:-1][same]
        alone[:-1] = ~same | (work.launch_ts_ns[rows[1:]] > work.ts_ns[rows[:-1]])
        return cls(work, rows, previous, alone, named(work, COMMUNICATION))


def _last_of_call(work: Work) -> Int64s:
    """Rows of launched work; of what one call launched, as a graph's replay, only the last."""
    launched = np.flatnonzero(work.launch_id >= 0)[::-1]
    return np.sort(launched[np.unique(work.launch_id[launched], return_index=True)[1]])


def _threads(model: Model) -> dict[int, _Thread]:
    hosts, calls = model.hosts, model.calls
    ops = hosts.kind.where("host_op")
    blocking = calls.api.map(lambda name: bool(_BLOCKING.match(name)), np.bool_)
    found = {}
    for lane in np.unique(np.concatenate((hosts.lane[ops], calls.lane))).tolist():
        op, call = ops & (hosts.lane == lane), calls.lane == lane
        own = calls.ts_ns[call], calls.end_ns[call]
        spent = Cover.of((hosts.ts_ns[op], hosts.end_ns[op]), own)
        found[lane] = _Thread(spent, Cover.of((own[0][blocking[call]], own[1][blocking[call]])))
    return found


@dataclass(frozen=True, slots=True)
class _Chains:
    """Device work by stream, cut where the path cannot go from one to the next.

    Attributes:
        rows: (k,) of `Work`, stream by stream, in the order of time.
        first, last: (c,) positions in `rows` of the ends of each chain.
        launched: (c,) whether the path comes from the launch of the first.
        gap_ns: (k,) on the path before each; 0 for the first of a chain.
    """

    rows: Int64s
    first: Int64s
    last: Int64s
    launched: Bools
    gap_ns: Int64s


def _chains(streams: _Streams, begin_ns: int, until_ns: int) -> _Chains:
    """What was launched in a window."""
    work, launch = streams.work, streams.work.launch_ts_ns[streams.rows]
    own = np.flatnonzero((launch >= begin_ns) & (launch <= until_ns))
    rows, previous, launch = streams.rows[own], streams.previous[own], launch[own]
    inside = np.zeros(len(rows), np.bool_)
    inside[1:] = previous[1:] == rows[:-1]
    ended = np.where(previous >= 0, work.end_ns[previous], -1)
    begun = (previous < 0) | (work.ts_ns[previous] <= launch)
    idle = begun & streams.alone[own] & (~inside | (ended < launch))
    gap = np.where(inside, np.maximum(work.ts_ns[rows] - ended, 0), 0)
    fresh = idle | ~inside | (gap >= LONGEST_GAP_NS)
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(rows))[: len(first)] - 1
    return _Chains(rows, first, last, idle[first], np.where(fresh, 0, gap))


def _prefix(work: Work, threads: dict[int, _Thread], chains: _Chains, begin_ns: int) -> Int64s:
    """(c,) weight of the host's path up to the launch of each chain's first work."""
    rows = chains.rows[chains.first]
    found = np.zeros(len(rows), np.int64)
    launch, lane = work.launch_ts_ns[rows], work.launch_lane[rows]
    for number in np.unique(lane[chains.launched]).tolist():
        own = chains.launched & (lane == number)
        start = np.full(int(own.sum()), begin_ns, np.int64)
        if number in threads:
            found[own] = threads[number].weight((start, launch[own]))
    return found


def _label(streams: _Streams, chains: _Chains, prefix: Int64s, alone: int) -> Label:
    """By the longest path: one of the chains with what leads to it, or a host thread alone."""
    if not len(chains.first):
        return heaviest([("host-bound", alone)])
    work, rows = streams.work, chains.rows
    begin, end = work.ts_ns[rows[chains.first]], work.end_ns[rows[chains.last]]
    delay = np.where(chains.launched, begin - work.launch_ts_ns[rows[chains.first]], 0)
    weight = prefix + delay + end - begin
    best = int(np.argmax(weight))
    if weight[best] <= alone:
        return heaviest([("host-bound", alone)])
    own = slice(int(chains.first[best]), int(chains.last[best]) + 1)
    gaps = int(chains.gap_ns[own].sum())
    length = (work.end_ns - work.ts_ns)[rows[own]]
    told = int(length[streams.comm[rows[own]]].sum())
    spent = {
        "cpu_bound": int(prefix[best]),
        "gpu_kernel_launch_overhead": int(delay[best]),
        "gpu_compute_bound": int(length.sum()) - told,
        "gpu_communication_bound": told,
        "gpu_kernel_kernel_overhead": gaps,
    }
    return heaviest((BOUNDS[name], ns) for name, ns in spent.items())


HTA_BOUND_BY = Baseline(
    "HTA bound-by", "HolisticTraceAnalysis f4d0062, critical_path_analysis.py", _judge
)
