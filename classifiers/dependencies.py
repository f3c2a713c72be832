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
from numpy.typing import NDArray

from perfdiag.classifiers.blocking import Loader, blocked_times, loader_of
from perfdiag.classifiers.device_order import DeviceOrder, order_devices
from perfdiag.classifiers.draft import Draft, NodeKind, Nodes
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import NEVER, Graph, Times
from perfdiag.classifiers.phase_nodes import PhaseNodes, phases_of
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.classifiers.threads import Threads, add_threads
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Program", "StepNodes", "build_program", "lacking"]


class StepNodes(NamedTuple):
    """Where the steps of a rank begin and end in the graph.

    Attributes:
        begin: the node with which the first step begins.
        host: (steps,) the node that begins where each ends on the host.
        work, step: (w,) nodes of device work, and the row of the step that launched each.
        phases: the phases of these steps.
        batches: (0 or 2,) nodes of the first and the last batch that the steps wait for, where a
            loader brings these one after the other at its own pace.
    """

    begin: int
    host: Int64s
    work: Int64s
    step: Int64s
    phases: PhaseNodes
    batches: Int64s

    @property
    def starts(self) -> Int64s:
        """Nodes whose start is asked for."""
        return np.concatenate((np.append(self.host, self.begin), self.phases.host, self.batches))

    @property
    def ends(self) -> Int64s:
        """Nodes whose end is asked for."""
        return np.concatenate((self.work, self.phases.host, self.batches))

    def within(self, group: Int64s) -> "StepNodes":
        """The same in a graph of groups of nodes, by (n,) the group of each node."""
        begin, phases = int(group[self.begin]), self.phases.within(group)
        host, work, batches = group[self.host], group[self.work], group[self.batches]
        return StepNodes(begin, host, work, self.step, phases, batches)

    def bounds(self, times: Times) -> Int64s:
        """(scenarios, steps + 1) when the first step begins, and when each is complete."""
        done = times.start_ns[:, self.host]
        np.maximum.at(done.T, self.step, times.end_ns[:, self.work].T)
        done = np.maximum.accumulate(done, axis=1)
        return np.concatenate((times.start_ns[:, self.begin : self.begin + 1], done), axis=1)

    def after_batches(self, times: Times) -> Int64s:
        """(scenarios,) from when the last batch came until the last step is complete."""
        return self.bounds(times)[:, -1] - times.end_ns[:, self.batches[1]]

    def making_batches(self, length_ns: Int64s) -> Int64s:
        """(scenarios,) from when the first batch began to be made until the last one came."""
        first, last = self.batches
        return np.asarray(length_ns[:, first : last + 1].sum(axis=1), np.int64)

    def windows(self, times: Times) -> Int64s:
        """(scenarios, steps) how long steps take: from one completion to the next."""
        return np.diff(self.bounds(times), axis=1)

    def phase_windows(self, times: Times) -> Int64s:
        """(scenarios, phases) how long phases take: likewise, inside their step."""
        return self.phases.windows(times, self.work, self.bounds(times))


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
    graph, nodes = draft.finish(_possible)
    return Program(graph, nodes, tuple(b.steps for b in built), tuple(b.order for b in built))


def _possible(nodes: Nodes, source: Int64s, target: Int64s) -> NDArray[np.bool_]:
    """(e,) whether what an edge comes from was recorded before what it leads to.

    Records that begin before their cause are told in notices; edges from them would close circles.
    """
    alike = nodes.rank[source] == nodes.rank[target]
    return np.asarray(~alike | (nodes.ts_ns[source] <= nodes.ts_ns[target]), np.bool_)


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
    for meetings in _by_channel(met, shift_ns):
        zero = np.zeros(len(meetings), np.int64)
        hub = draft.add_lane(ABSENT, NodeKind.MEETING, (zero, zero))
        hubs[meetings] = hub + np.arange(len(meetings))
    draft.add_edges(arrival, hubs[met.meeting])
    draft.add_edges(hubs[met.meeting], transfer)


def _by_channel(met: Meetings, shift_ns: Sequence[int]) -> list[Int64s]:
    """Meetings of the same ranks in one process group, in the order in which the last came."""
    if not len(met.meeting):
        return []
    came = np.maximum.reduceat(met.start_ns + np.array(shift_ns, np.int64)[met.rank], met.first)
    who: dict[tuple[int, bytes], list[int]] = {}
    bounds = np.append(met.first, len(met.meeting)).tolist()
    for meeting in np.lexsort((met.work[met.first], came)).tolist():
        ranks = met.rank[bounds[meeting] : bounds[meeting + 1]]
        who.setdefault((int(met.group[meeting]), ranks.tobytes()), []).append(meeting)
    return [np.array(meetings, np.int64) for meetings in who.values()]


PACED = 0.01
"""Of the time that waits for batches take if the loader sets the pace; a choice: less comes of a
batch that takes longer than others now and then."""

RECURS = 0.2
"""Of the batches that are waited for then, or half of it if more than one is; a choice: a loader is
waited for once in each round of its workers, of which a rank has four to eight."""


def _paced(loader: Loader) -> bool:
    """Whether a loader holds up steps after the first, which also waits for workers to start."""
    later = loader.waited[1:]
    waited = np.where(loader.waited, loader.came_ns - loader.asked_ns, 0)[1:].sum()
    passed = loader.came_ns[-1] - loader.asked_ns[0]
    often = later.sum() >= max(1.0, RECURS * len(later))
    again = later.sum() >= max(2.0, RECURS / 2 * len(later))
    return bool((often or again) and waited > PACED * passed)


def _before(loader: Loader) -> Int64s:
    """(b,) when the batch that was waited for before came; before the first such, the first of all.

    Where none holds up steps, nothing shows when its making began: that is when it was asked for.
    """
    if not _paced(loader):
        return loader.asked_ns
    came = np.where(loader.waited, loader.came_ns, loader.came_ns[0])
    return np.append(loader.asked_ns[:1], np.maximum.accumulate(came)[:-1])


class _Built(NamedTuple):
    """(work,) the first and the last node of each piece of device work."""

    first: Int64s
    last: Int64s
    steps: StepNodes
    order: DeviceOrder


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
        self._loader = loader_of(facts)
        self._blocked = blocked_times(facts, self._loader)
        self._order = order_devices(facts)

    def add(self) -> _Built:
        threads = add_threads(self._draft, self._facts, self._blocked, self._position, self._shift)
        first, last = self._add_streams()
        self._add_launches(threads, first)
        self._draft.add_edges(
            last[self._order.source], first[self._order.target], self._order.cross_ns
        )
        batches = None if self._loader is None else self._add_batches(self._loader, threads)
        self._add_waits(threads, (first, last), batches)
        steps = self._steps(threads, last, self._pacing(batches))
        return _Built(first, last, steps, self._order)

    def _add_streams(self) -> tuple[Int64s, Int64s]:
        """Lanes of device work; what meets others arrives first, and then transfers.

        What no launch explains at the head of a stream was launched before the trace began.
        """
        work = self._facts.model.work
        first, last = np.empty(len(work.id), np.int64), np.empty(len(work.id), np.int64)
        length, meets = work.end_ns - work.ts_ns, np.zeros(len(work.id), np.bool_)
        length[self._meets[0]], meets[self._meets[0]] = self._meets[1], True
        for lane in np.unique(work.lane).tolist():
            rows = np.flatnonzero(work.lane == lane)
            twice = np.repeat(rows, 1 + meets[rows])
            fresh = np.diff(twice, prepend=-1) != 0
            arrives = fresh & meets[twice]
            gap = np.where(fresh, self._order.gap_ns[twice], 0)
            release = np.full(len(twice), NEVER)
            gap[0] = 0
            if work.launch_id[rows[0]] == ABSENT:
                release[0] = work.ts_ns[rows[0]] + self._shift
            at = np.flatnonzero(fresh) + self._draft.add_lane(
                self._position,
                np.where(arrives, NodeKind.ARRIVAL, NodeKind.WORK),
                (work.ts_ns[twice], np.where(arrives, work.ts_ns[twice], work.end_ns[twice])),
                length_ns=np.where(arrives, 0, length[twice]),
                gap_ns=gap,
                release_ns=release,
                work=twice,
            )
            first[rows], last[rows] = at, at + meets[rows]
        return first, last

    def _add_launches(self, threads: Threads, first: Int64s) -> None:
        work, order = self._facts.model.work, self._order
        for lane in threads.cuts:
            rows = np.flatnonzero(work.launch_lane == lane)
            long_ = ~order.from_start[rows]
            since = np.where(long_, work.launch_end_ns[rows], work.launch_ts_ns[rows])
            source = threads.at(lane, since)
            self._draft.add_edges(source, first[rows], order.lag_ns[rows], from_start=True)

    def _add_waits(
        self, threads: Threads, work: tuple[Int64s, Int64s], batches: Int64s | None
    ) -> None:
        """Threads go on when what they wait for is done."""
        first, last = work
        for lane in threads.cuts:
            waits = self._blocked.of_lane(lane)
            target = threads.at(lane, waits.until_ns)
            on = waits.work != ABSENT
            self._draft.add_edges(last[waits.work[on]], target[on])
            on = waits.start_of != ABSENT
            self._draft.add_edges(first[waits.start_of[on]], target[on], from_start=True)
            if batches is not None:
                on = waits.batch != ABSENT
                self._draft.add_edges(batches[waits.batch[on]], target[on])
            for other in threads.cuts:
                on = waits.by_lane == other
                source = threads.at(other, waits.until_ns[on])
                self._draft.add_edges(source, target[on], from_start=True)

    def _add_batches(self, loader: Loader, threads: Threads) -> Int64s:
        """(b,) nodes of the batches that a loader brings, however fast they are asked for.

        Its queue is empty when the thread has to wait: all workers are at work then, and have been
        since it last was. So such a batch takes its time from the one that was waited for before,
        as workers that make batches side by side deliver them by turns. Batches that are there
        already take theirs from when they are asked for.
        """
        nodes = np.empty(len(loader.asked_ns), np.int64)
        begin = np.where(loader.waited, _before(loader), loader.asked_ns)
        for waited in (True, False):
            rows = np.flatnonzero(loader.waited == waited)
            if not len(rows):
                continue
            since, came = begin[rows], loader.came_ns[rows]
            base = self._draft.add_lane(
                self._position,
                NodeKind.BATCH,
                (since, came),
                length_ns=came - since,
            )
            nodes[rows] = base + np.arange(len(rows))
            asked = rows[since == loader.asked_ns[rows]]
            source = threads.at(loader.lane, loader.asked_ns[asked])
            self._draft.add_edges(source, nodes[asked], from_start=True)
        first = np.flatnonzero(loader.waited & (begin != loader.asked_ns))[:1]
        self._draft.add_edges(nodes[np.zeros_like(first)], nodes[first])
        return nodes

    def _pacing(self, batches: Int64s | None) -> Int64s:
        """The first and the last batch that is waited for, of a loader that holds up steps."""
        if self._loader is None or batches is None or not _paced(self._loader):
            return np.empty(0, np.int64)
        return batches[self._loader.waited][[0, -1]]

    def _steps(self, threads: Threads, last: Int64s, batches: Int64s) -> StepNodes:
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
            phases_of(self._facts, threads, launched[inside]),
            batches,
        )
