"""A dependency graph in the making: lanes and edges, added one after another."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdiag.classifiers.graph import NEVER, Graph
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Draft", "NodeKind", "Nodes"]

Bools = NDArray[np.bool_]


class NodeKind(IntEnum):
    """What a node of a job's graph is."""

    HOST = 0
    """A stretch of a thread in which it does one thing."""
    BLOCKED = 1
    """A stretch in which a thread waits: as long as what it waits for takes."""
    ARRIVAL = 2
    """A rank has come to a collective that others take part in."""
    WORK = 3
    """A kernel, copy or fill; of a collective that others take part in, its transfer."""
    BATCH = 4
    """A loader brings a batch."""
    MEETING = 5
    """All ranks of a collective are there."""


class Nodes(NamedTuple):
    """(n,) what the nodes of a graph stand for.

    Attributes:
        kind: a `NodeKind`.
        rank: position of the rank; of a meeting -1.
        thread: lane of the rank's trace, of nodes of threads; else -1.
        ts_ns, end_ns: as recorded, on the rank's own clock.
        work: row of the rank's `Work`, or -1.
    """

    kind: NDArray[np.int8]
    rank: Int64s
    thread: Int64s
    ts_ns: Int64s
    end_ns: Int64s
    work: Int64s


@dataclass(slots=True)
class Draft:
    """Collects a graph. Nodes are numbered in the order in which they are added."""

    count: int = 0
    lanes: int = 0
    _nodes: list[list[Int64s]] = field(default_factory=list)
    _edges: list[list[Int64s]] = field(default_factory=list)

    def add_lane(
        self,
        rank: int,
        kind: ArrayLike,
        times_ns: tuple[Int64s, Int64s],
        *,
        length_ns: Int64s | None = None,
        gap_ns: ArrayLike = 0,
        release_ns: ArrayLike = NEVER,
        work: ArrayLike = ABSENT,
        thread: int = ABSENT,
    ) -> int:
        """Add a lane of nodes in their order; returns the number of the first.

        Args:
            rank: whose it is, as a position.
            kind: of each node.
            times_ns: when nodes start and end, as recorded.
            length_ns: how long they take, if that is not the time between.
            gap_ns: least time after the node before.
            release_ns: earliest start.
            work: row of device work.
            thread: the trace's number of the lane, of a thread.
        """
        start, end = times_ns
        length = end - start if length_ns is None else length_ns
        columns = (self.lanes, length, gap_ns, release_ns, kind, rank, thread, start, end, work)
        self._nodes.append([np.broadcast_to(np.asarray(c, np.int64), start.shape) for c in columns])
        first = self.count
        self.count += len(start)
        self.lanes += 1
        return first

    def add_edges(
        self,
        source: Int64s,
        target: Int64s,
        lag_ns: ArrayLike = 0,
        *,
        from_start: ArrayLike = False,
    ) -> None:
        """Add edges between nodes, by their numbers."""
        columns = (source, target, lag_ns, from_start)
        self._edges.append(
            [np.broadcast_to(np.asarray(c, np.int64), source.shape) for c in columns]
        )

    def finish(
        self, possible: Callable[[Nodes, Int64s, Int64s], Bools] | None = None
    ) -> tuple[Graph, Nodes]:
        """The graph, and what its nodes stand for.

        Args:
            possible: which edges may stay, by their sources and targets; all unless given.
        """
        nodes = [np.concatenate(column) for column in zip(*self._nodes, strict=True)]
        none = np.empty(0, np.int64)
        edges = [np.concatenate((none, *column)) for column in zip(*self._edges, strict=True)]
        source, target, lag, from_start = edges or [none] * 4
        lane, length, gap, release, kind, rank, thread, start, end, work = nodes
        known = Nodes(kind.astype(np.int8), rank, thread, start, end, work)
        every = np.ones(len(source), np.bool_)
        kept = every if possible is None else possible(known, source, target)
        source, target, lag, from_start = (
            column[kept] for column in (source, target, lag, from_start)
        )
        graph = Graph(lane, length, gap, release, source, target, lag, from_start.astype(np.bool_))
        return graph, known
