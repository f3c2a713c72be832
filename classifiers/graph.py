"""A graph of what must happen before what, and the scheduler that re-times it.

Nodes lie on lanes: threads, streams, whatever does one thing after another. A node starts when its
lane is free and everything it depends on is done, as in Lumos (arXiv 2504.09307) and dPRO
(arXiv 2205.02473). Lanes are advanced in stretches, as far as what they depend on is known; within
a stretch the times follow from one running sum and one running maximum, for many scenarios at once.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.recording import Int64s

__all__ = ["NEVER", "CircleError", "Contracted", "Graph", "Times"]

Bools = NDArray[np.bool_]

NEVER = -(1 << 60)
"""A time before all others: of nodes that nothing releases."""


class CircleError(ValueError):
    """Nodes of a graph wait for each other."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__("nodes depend on each other in a circle")


class Times(NamedTuple):
    """(scenarios, nodes) when nodes start and end."""

    start_ns: Int64s
    end_ns: Int64s


@dataclass(frozen=True)
class Graph:
    """Nodes on lanes, and the edges between lanes.

    Attributes:
        lane: (n,) ascending; the nodes of a lane are in their order.
        length_ns: (n,) how long each node takes.
        gap_ns: (n,) least time between the end of the node before it on its lane and its start.
        release_ns: (n,) earliest start; `NEVER` where only others decide.
        source, target: (e,) the target starts no earlier than the source ends.
        lag_ns: (e,) plus this.
        from_start: (e,) whether that counts from the source's start.
    """

    lane: Int64s
    length_ns: Int64s
    gap_ns: Int64s
    release_ns: Int64s
    source: Int64s
    target: Int64s
    lag_ns: Int64s
    from_start: Bools

    def __post_init__(self) -> None:
        """Edges in the order of their targets are what the scheduler wants."""
        order = np.argsort(self.target, kind="stable")
        for name in ("source", "target", "lag_ns", "from_start"):
            object.__setattr__(self, name, getattr(self, name)[order])

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.lane)

    @cached_property
    def stretches(self) -> list["_Stretch"]:
        """The nodes in an order in which they can be timed.

        Raises:
            CircleError: nodes wait for each other.
        """
        return [_Stretch.of(self, low, high) for low, high in _Advance(self).order()]

    def contracted(self, starts: Int64s, ends: Int64s) -> "Contracted":
        """The same with neighbours joined between which nothing else comes in or goes out.

        Args:
            starts: nodes whose start is wanted.
            ends: nodes whose end is wanted.
        """
        opens = (np.diff(self.lane, prepend=-1) != 0) | (self.release_ns != NEVER)
        opens[self.target] = True
        opens[self.source[self.from_start]] = True
        opens[starts] = True
        closes = np.zeros(self.nodes, np.bool_)
        closes[self.source[~self.from_start]] = True
        closes[ends] = True
        opens[1:] |= closes[:-1]
        first = np.flatnonzero(opens)
        group = np.cumsum(opens) - 1
        inner = np.where(opens, 0, self.gap_ns)
        between = np.add.reduceat(inner, first) if len(first) else inner
        graph = Graph(
            self.lane[first],
            (np.add.reduceat(self.length_ns, first) if len(first) else self.length_ns) + between,
            self.gap_ns[first],
            self.release_ns[first],
            group[self.source],
            group[self.target],
            self.lag_ns,
            self.from_start,
        )
        return Contracted(graph, first, group, between)

    def replay(
        self,
        length_ns: Int64s | None = None,
        lag_ns: Int64s | None = None,
    ) -> Times:
        """Time all nodes.

        Args:
            length_ns: (scenarios, n) lengths of nodes; as they are unless stated.
            lag_ns: (scenarios, e) lags of edges, in the graph's order; likewise.

        Raises:
            CircleError: nodes wait for each other.
        """
        length = self.length_ns[None] if length_ns is None else length_ns
        lag = self.lag_ns[None] if lag_ns is None else lag_ns
        end = np.empty((max(len(length), len(lag)), self.nodes), np.int64)
        length = np.broadcast_to(length, end.shape)
        for stretch in self.stretches:
            stretch.time(end, length, lag)
        return Times(end - length, end)


class Contracted(NamedTuple):
    """A graph with joined nodes.

    Attributes:
        graph: of g groups of nodes; its edges are in the same order.
        first: (g,) the first node of each.
        group: (n,) in which group each node is.
        between_ns: (g,) gaps between the nodes of each.
    """

    graph: Graph
    first: Int64s
    group: Int64s
    between_ns: Int64s

    def lengths(self, length_ns: Int64s) -> Int64s:
        """(scenarios, g) lengths of groups, from (scenarios, n) those of nodes."""
        return np.asarray(np.add.reduceat(length_ns, self.first, axis=-1) + self.between_ns)


class _Stretch(NamedTuple):
    """Neighbouring nodes of one lane whose sources are all timed before them.

    Attributes:
        nodes, edges: the slices of them.
        follows: whether there is a node before the first one on its lane.
        gap_ns: (k,) of the nodes.
        released: (r,) nodes that something releases, counted from the first; `release_ns`: when.
        targets: (t,) nodes with sources, likewise; `first`: the first edge of each, likewise.
        source: (e,) of the edges; `counts`: (e,) 1 where they count from its start.
    """

    nodes: slice
    edges: slice
    follows: bool
    gap_ns: Int64s
    released: Int64s
    release_ns: Int64s
    targets: Int64s
    first: Int64s
    source: Int64s
    counts: Int64s

    @classmethod
    def of(cls, graph: Graph, low: int, high: int) -> "_Stretch":
        nodes = slice(low, high)
        edges = slice(*np.searchsorted(graph.target, (low, high)).tolist())
        target = graph.target[edges]
        first = np.flatnonzero(np.diff(target, prepend=-1))
        released = np.flatnonzero(graph.release_ns[nodes] != NEVER)
        return cls(
            nodes,
            edges,
            bool(low > 0 and graph.lane[low - 1] == graph.lane[low]),
            graph.gap_ns[nodes],
            released,
            graph.release_ns[nodes][released],
            target[first] - low,
            first,
            graph.source[edges],
            graph.from_start[edges].astype(np.int64),
        )

    def time(self, end: Int64s, length: Int64s, lag: Int64s) -> None:
        """Fill in the ends of these nodes.

        Counted from the running sum of lengths, each node ends with the latest of what came in
        before it: its own start, or that of a node before it.
        """
        own = length[:, self.nodes]
        before = np.cumsum(own + self.gap_ns, axis=1)
        start = before - own
        ready = np.full(own.shape, NEVER)
        if len(self.released):
            ready[:, self.released] = self.release_ns - start[:, self.released]
        if len(self.targets):
            done = end[:, self.source] + lag[:, self.edges] - length[:, self.source] * self.counts
            latest = np.maximum.reduceat(done, self.first, axis=1) - start[:, self.targets]
            ready[:, self.targets] = np.maximum(ready[:, self.targets], latest)
        if self.follows:
            last = end[:, self.nodes.start - 1]
            ready[:, 0] = np.maximum(ready[:, 0], last)
        np.maximum.accumulate(ready, axis=1, out=ready)
        np.add(ready, before, out=end[:, self.nodes])


class _Advance:
    """Walks over the lanes of a graph, each as far as what it depends on allows."""

    def __init__(self, graph: Graph) -> None:
        self._first = np.flatnonzero(np.diff(graph.lane, prepend=-1))
        self._until = np.append(self._first, graph.nodes)[1:].tolist()
        self._next = self._first.tolist()
        row = np.searchsorted(graph.lane[self._first], graph.lane) if graph.nodes else graph.lane
        self._waits: list[list[tuple[int, Int64s, Int64s]]] = [[] for _ in self._next]
        self._feeds: list[set[int]] = [set() for _ in self._next]
        self._sort_edges(graph, row)

    def _sort_edges(self, graph: Graph, row: Int64s) -> None:
        """By lane of the target and of the source: targets, and the last source so far."""
        to, by = row[graph.target], row[graph.source]
        pair = to * max(1, len(self._next)) + by
        order = np.lexsort((graph.target, pair))
        bounds = np.flatnonzero(np.diff(pair[order], prepend=-1))
        for edges in np.split(order, bounds[1:]) if len(order) else []:
            lane, source = int(to[edges[0]]), int(by[edges[0]])
            reach = np.maximum.accumulate(graph.source[edges])
            self._waits[lane].append((source, reach, graph.target[edges]))
            self._feeds[source].add(lane)

    def order(self) -> Iterator[tuple[int, int]]:
        """Stretches of nodes, each after all that it depends on."""
        queue = deque(range(len(self._next)))
        queued = set(queue)
        while queue:
            lane = queue.popleft()
            queued.discard(lane)
            low, high = self._next[lane], self._limit(lane)
            if high <= low:
                continue
            self._next[lane] = high
            yield low, high
            fresh = self._feeds[lane] - queued
            queue.extend(sorted(fresh))
            queued |= fresh
        if self._next != self._until:
            raise CircleError

    def _limit(self, lane: int) -> int:
        """The first node of a lane that must still wait."""
        limit = int(self._until[lane])
        for source, reach, target in self._waits[lane]:
            known = int(np.searchsorted(reach, self._next[source]))
            if known < len(target):
                limit = min(limit, int(target[known]))
        return limit
