"""What would be otherwise: changes to a job's graph.

The words are those of Daydream (USENIX ATC 2020): nodes are scaled, removed and inserted, and work
runs beside other work that kept it waiting. Changes can be made together: two that shorten the same
node leave the product of what each leaves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdiag.classifiers.graph import Graph
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Change", "advance", "apply", "cut", "insert", "overlap", "remove", "scale"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a graph.

    Attributes:
        nodes: (k,) nodes that take another time, each once.
        left: (k,) share of the time that is left of each.
        added_ns: (k,) time that comes on top.
        edges: (j,) edges that wait less long, each once.
        earlier_ns: (j,) by how much.
        cut: (c,) edges that wait no longer at all, each once.
        cut_at: (c,) the share of the change from which on that is so.
    """

    nodes: Int64s
    left: Floats
    added_ns: Floats
    edges: Int64s
    earlier_ns: Floats
    cut: Int64s
    cut_at: Floats

    def part(self, share: float) -> "Change":
        """The same done in part, or with a share above 1 more than done: 0 changes nothing."""
        return Change(
            self.nodes,
            np.clip(1.0 - (1.0 - self.left) * share, 0.0, None),
            self.added_ns * share,
            self.edges,
            self.earlier_ns * share,
            self.cut,
            self.cut_at / max(share, TINY),
        )


TINY = 1e-9
"""Share that cuts nothing."""

NOT_AT_ALL = -(1 << 59)
"""Lag, in ns, of an edge that is cut: longer than any trace."""

_NONE = np.empty(0, np.int64)
_NO_TIME = np.empty(0, np.float64)


def scale(nodes: Int64s, left: ArrayLike) -> Change:
    """Nodes take this share of their time: 0.5 is twice as fast.

    Args:
        nodes: (k,) each once.
        left: (k,) or one for all.
    """
    shares = np.broadcast_to(np.asarray(left, np.float64), nodes.shape)
    return Change(nodes, shares, np.zeros(len(nodes)), _NONE, _NO_TIME, _NONE, _NO_TIME)


def remove(nodes: Int64s) -> Change:
    """Nodes take no time."""
    return scale(nodes, 0.0)


def insert(nodes: Int64s, time_ns: ArrayLike) -> Change:
    """Nodes take longer by a time: (k,) or one for all."""
    added = np.broadcast_to(np.asarray(time_ns, np.float64), nodes.shape)
    return Change(nodes, np.ones(len(nodes)), added, _NONE, _NO_TIME, _NONE, _NO_TIME)


def overlap(nodes: Int64s, hidden: ArrayLike, slowdown: float) -> Change:
    """A share of nodes runs beside other work, which it slows.

    While it does, that work gets on by only 1 / `slowdown` of its pace, so that of the hidden time
    as much is saved.

    Args:
        nodes: (k,) each once.
        hidden: (k,) share of each, or one for all.
        slowdown: times as long that work takes beside them, at least 1.
    """
    return scale(nodes, 1.0 - np.asarray(hidden, np.float64) / slowdown)


def advance(edges: Int64s, time_ns: ArrayLike) -> Change:
    """Edges wait less long by a time: (j,) or one for all."""
    earlier = np.broadcast_to(np.asarray(time_ns, np.float64), edges.shape)
    return Change(_NONE, _NO_TIME, _NO_TIME, edges, earlier, _NONE, _NO_TIME)


def cut(edges: Int64s, share: ArrayLike) -> Change:
    """A share of edges waits no longer at all, spread over all of them as evenly as can be.

    Args:
        edges: (c,) each once, in the order of time.
        share: (c,) of the edges like each one, or one for all.
    """
    # Multiples of the golden ratio fall evenly into any interval, however many there are (Weyl).
    place = np.arange(1, len(edges) + 1) * ((np.sqrt(5) - 1) / 2) % 1.0
    shares = np.broadcast_to(np.asarray(share, np.float64), edges.shape)
    at = np.where(shares >= 1.0, place * (1 - TINY), place / np.maximum(shares, TINY))
    return Change(_NONE, _NO_TIME, _NO_TIME, _NONE, _NO_TIME, edges, at)


def apply(graph: Graph, changes: Iterable[Change]) -> tuple[Int64s, Int64s]:
    """(n,) lengths of nodes and (e,) lags of edges with all changes made."""
    left = np.ones(graph.nodes)
    added = np.zeros(graph.nodes)
    earlier = np.zeros(len(graph.source))
    gone = np.zeros(len(graph.source), np.bool_)
    for change in changes:
        left[change.nodes] *= change.left
        added[change.nodes] += change.added_ns
        earlier[change.edges] = np.maximum(earlier[change.edges], change.earlier_ns)
        gone[change.cut[change.cut_at < 1.0]] = True
    length = np.rint(graph.length_ns * left + added).astype(np.int64)
    lag = graph.lag_ns - np.rint(earlier).astype(np.int64)
    return length, np.where(gone, NOT_AT_ALL, lag)
