"""What a fix changes in the graph of a job: claims on the time budget as changes of nodes.

A claim speaks for time of the recorded steps. In the graph that time is a part of nodes: of
kernels, copies or collectives where the device was busy; of what the host was doing where it was
idle; of waiting for other streams or ranks where it depended on them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.claims import Claim, Pieces
from perfdiag.classifiers.dependencies import Program
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import Share
from perfdiag.classifiers.rebalancing import Excess
from perfdiag.classifiers.whatif import Change, advance, cut, overlap
from perfdiag.trace_schemas.recording import ABSENT, Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["Effects"]

Floats = NDArray[np.float64]

HOST = ("launch", "sync", "host_other", "profiler")
INPUT = ("input",)
COLLECTIVES = ("collective_transfer", "collective_unsplit")


class _Part(NamedTuple):
    """Nodes, or edges, that some leaves are about.

    `start_ns`, `end_ns`: when the time that they stand for was recorded; `whole_ns`: what they gain
    if all of it is saved, for nodes their length; `edges`: whether they are edges.
    """

    leaves: tuple[str, ...]
    ids: Int64s
    start_ns: Int64s
    end_ns: Int64s
    whole_ns: Int64s
    edges: bool

    def change(self, saved_ns: Floats, slowdown: float) -> Change:
        """Nodes take less time, edges wait less long; 1 is no slowdown of what runs beside."""
        some = saved_ns > 0
        ids, saved, whole = self.ids[some], saved_ns[some], self.whole_ns[some]
        if self.edges:
            stands_for = np.maximum(self.end_ns - self.start_ns, 1)[some]
            return advance(ids, saved / stands_for * whole / slowdown)
        return overlap(ids, np.minimum(saved / np.maximum(whole, 1), 1.0), slowdown)


@dataclass(frozen=True)
class Effects:
    """The nodes and edges of one rank that time of its budget stands for.

    Attributes:
        facts: the rank.
        nodes: parts whose nodes become shorter.
        parts: these, and those whose edges wait less long.
        thread: of each node of the second part, those of threads and batches; `ABSENT` of batches.
        waits: edges on which the host waits for the device, and until when; `waiting`: its threads.
    """

    facts: RankFacts
    nodes: tuple[_Part, ...]
    parts: tuple[_Part, ...]
    thread: Int64s
    waits: tuple[Int64s, Int64s]
    waiting: Int64s

    @classmethod
    def of(cls, program: Program, facts: RankFacts, position: int) -> "Effects":
        """Sort the nodes and edges of a rank by the leaves that they explain."""
        nodes = tuple(_node_parts(program, facts, position))
        edges = _edge_parts(program, facts, position)
        thread = program.nodes.thread[nodes[1].ids]
        waits = _waits(program, position)
        waiting = program.nodes.thread[program.graph.target[waits[0]]]
        return cls(facts, nodes, (*nodes, *edges), thread, waits, waiting)

    def changes(self, share: Share, slowdown: Floats) -> tuple[list[Change], ...]:
        """What a finding changes on this rank at least, likely and at most.

        What it re-balances it changes on other ranks: see `rebalanced`.

        Args:
            share: what the finding takes of the rank's time.
            slowdown: (3,) of work beside which other work runs, at least 1, for each of the three.
        """
        take, pieces = share.take, share.pieces
        rate = np.stack((take.low, take.mid, take.high)) * (take.taken & pieces.known)
        found: tuple[list[Change], ...] = ([], [], [])
        for number, one in enumerate(share.finding.claims):
            if one.verb == "rebalance":
                continue
            mine = rate * (take.claim == number)
            parts = [part for part in self.parts if set(part.leaves) & set(one.leaves)]
            if one.verb == "remove":
                mine, parts = _everything(pieces, one), [self._of_threads(one.threads)]
            if one.threads:
                self._let_go(found, one, pieces)
            if one.verb == "detach":
                mine = mine * _AT_MOST
            beside = slowdown if one.verb == "overlap" else np.ones(3)
            for part in parts:
                _add(found, part, _saved(pieces, mine, part), beside)
        return found

    def _let_go(self, found: tuple[list[Change], ...], one: Claim, pieces: Pieces) -> None:
        """Waits for the device that end in the intervals of a claim, on its threads, go with it.

        So do those for what is done already, which other changes may make waits. What the host does
        afterwards it does earlier, however long that was.
        """
        ids, until = self.waits
        at = np.searchsorted(pieces.edges_ns, until - 1, "right") - 1
        inside = np.isin(self.waiting, one.threads) & (at >= 0) & (at < len(pieces.leaf))
        for made, share in zip(found, _everything(pieces, one)[:, at[inside]], strict=True):
            some = share > 0
            made.append(cut(ids[inside][some], share[some]))

    @cached_property
    def own_ns(self) -> Floats:
        """(leaves,) time of the rank in each leaf, in steps with a verdict."""
        timeline, steps = self.facts.timeline, self.facts.model.steps
        step = np.searchsorted(steps.ts_ns, timeline.edges_ns[:-1], "right") - 1
        lengths = np.diff(timeline.edges_ns) * self.facts.trusted[step]
        return np.bincount(timeline.leaf, lengths, len(LEAF)).astype(np.float64)

    @property
    def batches(self) -> Int64s:
        """Nodes of the batches that a loader brings."""
        found: Int64s = self.nodes[1].ids[self.thread == ABSENT]
        return found

    def _of_threads(self, threads: tuple[int, ...]) -> _Part:
        """All that some threads do, or the making of batches."""
        host = self.nodes[1]
        mine = np.isin(self.thread, threads)
        start, end = host.start_ns[mine], host.end_ns[mine]
        return _Part(LEAVES, host.ids[mine], start, end, host.whole_ns[mine], edges=False)

    def rebalanced(self, excess: Excess) -> Iterator[Change]:
        """The rank takes as much less as it took more than the others, where it did."""
        for part in self.nodes:
            for name in part.leaves:
                share = excess.of(LEAF[name], part.start_ns)
                if share.any():
                    spent = self.facts.timeline.time_in([name], (part.start_ns, part.end_ns))
                    yield part.change(spent * share, 1.0)


_AT_MOST = np.array([[0.0], [0.0], [1.0]])
"""What the host does while the device idles after a wait goes with the wait at most."""


def _add(found: tuple[list[Change], ...], part: _Part, saved_ns: Floats, slowdown: Floats) -> None:
    """Add the changes of one part, at least, likely and at most."""
    for made, ns, times in zip(found, saved_ns, slowdown.tolist(), strict=True):
        made.append(part.change(ns, times))


def _everything(pieces: Pieces, one: Claim) -> Floats:
    """(levels, m) share of all pieces in a claim's intervals."""
    if not len(one.start_ns):
        return np.zeros((3, len(pieces.leaf)))
    inside, row = pieces.within(one)
    inside &= pieces.known
    return np.stack([np.where(inside, share[row], 0.0) for share in (one.low, one.mid, one.high)])


def _saved(pieces: Pieces, rate: Floats, part: _Part) -> Floats:
    """(levels, n) how much of the time of nodes is saved, by (levels, m) the share of pieces."""
    edges = pieces.edges_ns
    rate = rate * np.isin(pieces.leaf, [LEAF[name] for name in part.leaves])
    before = np.zeros((len(rate), len(edges)))
    np.cumsum(rate * np.diff(edges), axis=1, out=before[:, 1:])
    until = [_interpolated(edges, before, rate, side) for side in (part.start_ns, part.end_ns)]
    return np.asarray(until[1] - until[0], np.float64)


def _interpolated(edges: Int64s, before: Floats, rate: Floats, times_ns: Int64s) -> Floats:
    """(levels, n) what is saved up to each time."""
    times = np.clip(times_ns, edges[0], edges[-1])
    at = np.minimum(np.searchsorted(edges, times, "right") - 1, len(edges) - 2)
    return np.asarray(before[:, at] + (times - edges[at]) * rate[:, at], np.float64)


def _node_parts(program: Program, facts: RankFacts, position: int) -> Iterator[_Part]:
    nodes, work = program.nodes, facts.model.work
    mine = np.flatnonzero(nodes.rank == position)

    def part(leaves: tuple[str, ...], ids: Int64s) -> _Part:
        length = program.graph.length_ns[ids]
        return _Part(leaves, ids, nodes.ts_ns[ids], nodes.end_ns[ids], length, edges=False)

    kind = nodes.kind[mine]
    host = mine[kind == NodeKind.HOST]
    batches = mine[kind == NodeKind.BATCH]
    yield part(HOST, host)
    yield part(INPUT, np.concatenate((host, batches)))
    ids = mine[kind == NodeKind.WORK]
    row = nodes.work[ids]
    ids, row = ids[facts.here[row]], row[facts.here[row]]
    kernel = work.kind.where("kernel")[row]
    compute, memory = work.bound.where("compute")[row], work.bound.where("memory")[row]
    yield part(("compute_kernel",), ids[kernel & compute])
    yield part(("memory_kernel",), ids[kernel & memory])
    yield part(("kernel_unclassified",), ids[kernel & ~compute & ~memory])
    yield part(("copy",), ids[work.kind.where("copy", "fill")[row]])
    yield part(COLLECTIVES, ids[work.kind.where("collective")[row]])


def _edge_parts(program: Program, facts: RankFacts, position: int) -> Iterator[_Part]:
    """Edges from other streams, with the idle time before their target; and from meetings."""
    graph, nodes, work = program.graph, program.nodes, facts.model.work
    into = nodes.rank[graph.target] == position
    device = np.isin(nodes.kind, (NodeKind.WORK, NodeKind.ARRIVAL))
    crosses = np.flatnonzero(into & device[graph.target] & device[graph.source])
    target = graph.target[crosses]
    idle = facts.idle_gaps
    at = np.searchsorted(idle[1], nodes.ts_ns[target])
    begins = np.append(idle[0], np.iinfo(np.int64).max)[at]
    start = np.minimum(begins, nodes.ts_ns[target])
    end = nodes.ts_ns[target]
    yield _Part(("dependency",), crosses, start, end, end - start, edges=True)
    met = np.flatnonzero(into & (nodes.kind[graph.source] == NodeKind.MEETING))
    row = nodes.work[graph.target[met]]
    start, end = work.ts_ns[row], work.end_ns[row]
    yield _Part(("collective_wait",), met, start, end, end - start, edges=True)


def _waits(program: Program, position: int) -> tuple[Int64s, Int64s]:
    """Edges on which a thread of a rank waits for the end of device work, and until when."""
    graph, nodes = program.graph, program.nodes
    device = (nodes.kind[graph.source] == NodeKind.WORK) & ~graph.from_start
    into = (nodes.rank[graph.target] == position) & (nodes.kind[graph.target] == NodeKind.HOST)
    edges = np.flatnonzero(into & device)
    return edges, nodes.ts_ns[graph.target[edges]]
