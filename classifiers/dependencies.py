"""The dependency graph of a job, read off the traces of its ranks.

Nodes are stretches of host threads between calls and changes of what the thread does, launches,
device work, batches of a loader and meetings of collectives. What a trace says outright, which
launch work comes from and which ranks meet, becomes an edge; what it does not is told by the order
of calls and by what ended just before. Delays that remain unexplained are left out, so that a
replay of the unchanged graph says how much of a step the graph explains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from perfdiag.classifiers.blocking import (
    Loader,
    blocked_times,
    issuing_lanes,
    loader_of,
)
from perfdiag.classifiers.device_order import DeviceOrder, order_devices
from perfdiag.classifiers.draft import Draft, NodeKind, Nodes
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import NEVER, Graph, Times
from perfdiag.classifiers.intervals import covered, instants, merge
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Program", "StepNodes", "build_program", "lacking"]


class StepNodes(NamedTuple):
    """Where the steps of a rank begin and end in the graph.

    Attributes:
        begin: the node with which the first step begins.
        host: (steps,) the node that begins where each ends on the host.
        work, step: (w,) nodes of device work, and the row of the step that launched each.
    """

    begin: int
    host: Int64s
    work: Int64s
    step: Int64s

    def within(self, group: Int64s) -> "StepNodes":
        """The same in a graph of groups of nodes, by (n,) the group of each node."""
        return StepNodes(int(group[self.begin]), group[self.host], group[self.work], self.step)

    def windows(self, times: Times) -> Int64s:
        """(scenarios, steps) how long steps take: from one completion to the next."""
        done = times.start_ns[:, self.host]
        np.maximum.at(done.T, self.step, times.end_ns[:, self.work].T)
        done = np.maximum.accumulate(done, axis=1)
        begin = times.start_ns[:, self.begin : self.begin + 1]
        return np.diff(done, axis=1, prepend=begin)


@dataclass(frozen=True, slots=True)
class Program:
    """What a job does, as a graph that can be re-timed.

    Attributes:
        graph: all ranks.
        nodes: what its nodes stand for.
        steps: of each rank.
        orders: what the device work of each rank waits for.
    """

    graph: Graph
    nodes: Nodes
    steps: tuple[StepNodes, ...]
    orders: tuple[DeviceOrder, ...]


LEAST_LINKED = 0.95
"""Of the device work of a rank must have a launch in the trace; a choice: below it the replay would
not know what the work waited for."""


def lacking(facts: RankFacts) -> str:
    """What a rank's trace lacks for a replay, as a sentence; '' if nothing."""
    if not facts.coverage.has_device:
        return "The trace holds no device work."
    if not facts.trusted.any():
        return "No step has a verdict: too much of the device work is missing."
    work = facts.model.work
    linked = work.launch_id != ABSENT
    later = facts.here & (work.ts_ns >= work.ts_ns[linked].min(initial=np.iinfo(np.int64).max))
    share = float(linked[later].mean()) if later.any() else 0.0
    if share < LEAST_LINKED:
        return f"Only {share:.0%} of the device work has its launch in the trace."
    return ""


def build_program(
    ranks: Sequence[RankFacts], met: Meetings | None, shift_ns: Sequence[int]
) -> Program:
    """Build the graph of a job.

    Args:
        ranks: none of which lacks what a replay needs.
        met: where they meet; None where that is not known or cannot be believed.
        shift_ns: to be added to times of each rank to bring them onto one clock.
    """
    draft = Draft()
    built = [
        _Rank(draft, facts, position, shift, _transfers(met, position)).add()
        for position, (facts, shift) in enumerate(zip(ranks, shift_ns, strict=True))
    ]
    if met is not None:
        _meet(draft, met, built, shift_ns)
    graph, nodes = draft.finish()
    return Program(graph, nodes, tuple(b.steps for b in built), tuple(b.order for b in built))


def _transfers(met: Meetings | None, position: int) -> tuple[Int64s, Int64s]:
    """Rows of a rank's work in which it meets others, and how long their transfers take."""
    if met is None or not len(met.meeting):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    shortest = np.minimum.reduceat(met.end_ns - met.start_ns, met.first)[met.meeting]
    mine = met.rank == position
    return met.work[mine], np.asarray(shortest[mine], np.int64)


def _meet(draft: Draft, met: Meetings, ranks: "Sequence[_Built]", shift_ns: Sequence[int]) -> None:
    """Nothing of a collective moves before all of its ranks have come."""
    arrival, transfer = np.empty_like(met.work), np.empty_like(met.work)
    for position, built in enumerate(ranks):
        mine = met.rank == position
        arrival[mine] = built.first[met.work[mine]]
        transfer[mine] = built.last[met.work[mine]]
    hubs = np.empty(len(met.pairwise), np.int64)
    for meetings in _by_participants(met, shift_ns):
        zero = np.zeros(len(meetings), np.int64)
        hubs[meetings] = draft.add_lane(ABSENT, NodeKind.MEETING, (zero, zero)) + np.arange(
            len(meetings)
        )
    draft.add_edges(arrival, hubs[met.meeting])
    draft.add_edges(hubs[met.meeting], transfer)


def _by_participants(met: Meetings, shift_ns: Sequence[int]) -> list[Int64s]:
    """Meetings of the same ranks, in the order in which the last of them came."""
    if not len(met.meeting):
        return []
    came = np.maximum.reduceat(met.start_ns + np.array(shift_ns, np.int64)[met.rank], met.first)
    who: dict[bytes, list[int]] = {}
    bounds = np.append(met.first, len(met.meeting)).tolist()
    for meeting in np.argsort(came, kind="stable").tolist():
        ranks = met.rank[bounds[meeting] : bounds[meeting + 1]]
        who.setdefault(ranks.tobytes(), []).append(meeting)
    return [np.array(meetings, np.int64) for meetings in who.values()]


class _Built(NamedTuple):
    """(work,) the first and the last node of each piece of device work."""

    first: Int64s
    last: Int64s
    steps: StepNodes
    order: DeviceOrder


class _Threads(NamedTuple):
    """The threads of a rank in the graph: by lane, when nodes begin, and the first one's number.

    What happens on a thread at some time is told by the start of the node that begins then: the
    node before may be a wait, which takes no time of its own.
    """

    cuts: dict[int, Int64s]
    base: dict[int, int]

    def at(self, lane: int, times_ns: Int64s) -> Int64s:
        """(n,) the node of a thread that begins at, or holds, each time."""
        cuts = self.cuts[lane]
        at = np.searchsorted(cuts, times_ns, "right") - 1
        return self.base[lane] + np.clip(at, 0, len(cuts) - 2)


class _Rank:
    """Adds one rank to a graph."""

    def __init__(
        self,
        draft: Draft,
        facts: RankFacts,
        position: int,
        shift_ns: int,
        meets: tuple[Int64s, Int64s],
    ) -> None:
        self._draft, self._facts, self._position = draft, facts, position
        self._shift, self._meets = int(shift_ns), meets
        self._blocked, self._loader = blocked_times(facts), loader_of(facts)
        self._order = order_devices(facts)

    def add(self) -> _Built:
        threads = self._add_threads()
        first, last = self._add_streams()
        self._add_launches(threads, first)
        self._draft.add_edges(
            last[self._order.source], first[self._order.target], self._order.cross_ns
        )
        self._add_waits(threads, first, last)
        if self._loader is not None:
            self._add_batches(self._loader, threads)
        return _Built(first, last, self._steps(threads, last), self._order)

    def _add_threads(self) -> _Threads:
        threads = _Threads({}, {})
        for lane in issuing_lanes(self._facts):
            cuts = self._cuts(lane)
            mine = self._blocked.lane == lane
            begin, until = self._blocked.begin_ns[mine], self._blocked.until_ns[mine]
            union = merge(begin, until)
            if self._loader is not None and self._loader.lane == lane:
                waits = self._loader.waited
                quick = self._loader.asked_ns[waits] + self._loader.quick_ns
                union = merge(
                    np.concatenate((begin, quick)),
                    np.concatenate((until, self._loader.came_ns[waits])),
                )
            waiting = covered(*union, cuts[:-1])
            started = bool(mine.any() and waiting[0])
            release = np.full(len(cuts) - 1, NEVER)
            release[0] = NEVER if started else cuts[0] + self._shift
            if lane == self._facts.states.main_lane:
                begin = self._facts.model.steps.host_ts_ns[:1]
                release[np.searchsorted(cuts, begin)] = begin + self._shift
            threads.cuts[lane] = cuts
            threads.base[lane] = self._draft.add_lane(
                self._position,
                np.where(waiting, NodeKind.BLOCKED, NodeKind.HOST),
                (cuts[:-1], cuts[1:]),
                length_ns=np.where(waiting, 0, np.diff(cuts)),
                release_ns=release,
            )
        return threads

    def _cuts(self, lane: int) -> Int64s:
        """When a thread's nodes begin and end."""
        facts, calls = self._facts, self._facts.model.calls
        mine, by = calls.lane == lane, self._blocked.by_lane == lane
        here = self._blocked.lane == lane
        times = [
            calls.ts_ns[mine],
            calls.end_ns[mine],
            self._blocked.begin_ns[here],
            self._blocked.until_ns[here],
            self._blocked.until_ns[by],
        ]
        active = facts.states.edges.get(lane)
        times += [] if active is None else [active]
        if lane == facts.states.main_lane:
            times += [facts.model.steps.host_ts_ns, facts.model.steps.host_end_ns]
        if self._loader is not None and self._loader.lane == lane:
            waits = self._loader.waited
            times += [self._loader.asked_ns[waits] + self._loader.quick_ns]
            times += [self._loader.came_ns]
        cuts = instants(*times)
        return np.append(cuts, cuts[-1] + 1)

    def _add_streams(self) -> tuple[Int64s, Int64s]:
        """Lanes of device work; what meets others arrives first, and then transfers."""
        work, order = self._facts.model.work, self._order
        first, last = np.empty(len(work.id), np.int64), np.empty(len(work.id), np.int64)
        length = work.end_ns - work.ts_ns
        meets = np.zeros(len(work.id), np.bool_)
        meets[self._meets[0]] = True
        length[self._meets[0]] = self._meets[1]
        for lane in np.unique(work.lane).tolist():
            rows = np.flatnonzero(work.lane == lane)
            twice = np.repeat(rows, 1 + meets[rows])
            fresh = np.diff(twice, prepend=-1) != 0
            arrives = fresh & meets[twice]
            alone = fresh & (work.launch_id[twice] == ABSENT)
            alone &= np.arange(len(twice)) == 0
            base = self._draft.add_lane(
                self._position,
                np.where(arrives, NodeKind.ARRIVAL, NodeKind.WORK),
                (work.ts_ns[twice], np.where(arrives, work.ts_ns[twice], work.end_ns[twice])),
                length_ns=np.where(arrives, 0, length[twice]),
                gap_ns=np.where(fresh & (np.arange(len(twice)) > 0), order.gap_ns[twice], 0),
                release_ns=np.where(alone, work.ts_ns[twice] + self._shift, NEVER),
                work=twice,
            )
            at = np.flatnonzero(fresh)
            first[rows], last[rows] = base + at, base + at + meets[rows]
        return first, last

    def _add_launches(self, threads: _Threads, first: Int64s) -> None:
        work, order = self._facts.model.work, self._order
        for lane in threads.cuts:
            rows = np.flatnonzero(work.launch_lane == lane)
            long_ = ~order.from_start[rows]
            since = np.where(long_, work.launch_end_ns[rows], work.launch_ts_ns[rows])
            source = threads.at(lane, since)
            self._draft.add_edges(source, first[rows], order.lag_ns[rows], from_start=True)

    def _add_waits(self, threads: _Threads, first: Int64s, last: Int64s) -> None:
        blocked = self._blocked
        for lane in threads.cuts:
            mine = np.flatnonzero(blocked.lane == lane)
            target = threads.at(lane, blocked.until_ns[mine])
            done, started = blocked.work[mine], blocked.start_of[mine]
            by_end, by_start = done != ABSENT, started != ABSENT
            self._draft.add_edges(last[done[by_end]], target[by_end])
            self._draft.add_edges(first[started[by_start]], target[by_start], from_start=True)
            for other in threads.cuts:
                by = blocked.by_lane[mine] == other
                source = threads.at(other, blocked.until_ns[mine][by])
                self._draft.add_edges(source, target[by], from_start=True)

    def _add_batches(self, loader: Loader, threads: _Threads) -> None:
        """A loader brings one batch after another, however fast they are asked for."""
        between = np.diff(loader.came_ns, prepend=loader.came_ns[0])
        usual = int(np.median(between[1:][loader.waited[1:]])) if loader.waited[1:].any() else 0
        there = np.diff(loader.asked_ns, prepend=loader.asked_ns[0])
        length = np.where(loader.waited, between, np.minimum(usual, there))
        release = np.full(len(length), NEVER)
        release[0] = loader.came_ns[0] + self._shift
        base = self._draft.add_lane(
            self._position,
            NodeKind.BATCH,
            (loader.asked_ns, loader.came_ns),
            length_ns=length,
            release_ns=release,
        )
        rows = np.flatnonzero(loader.waited)
        target = threads.at(loader.lane, loader.came_ns[rows])
        self._draft.add_edges(base + rows, target)

    def _steps(self, threads: _Threads, last: Int64s) -> StepNodes:
        steps, work = self._facts.model.steps, self._facts.model.work
        main = self._facts.states.main_lane
        launched = np.where(work.launch_id != ABSENT, work.launch_ts_ns, work.ts_ns)
        step = np.searchsorted(steps.host_ts_ns, launched, "right") - 1
        inside = (step >= 0) & (launched < steps.host_end_ns[np.maximum(step, 0)])
        return StepNodes(
            int(threads.at(main, steps.host_ts_ns[:1])[0]),
            threads.at(main, steps.host_end_ns),
            last[inside],
            step[inside],
        )
