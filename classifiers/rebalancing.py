"""Where a late rank takes longer than the others: between which meetings.

Ranks that meet often wait wherever one of them has more to do. What that one takes longer in all is
taken off where it does, not evenly: elsewhere it would then come too early, and wait itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.dependencies import Program
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import instants
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["Excess", "Rebalancing"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


BY_CHANCE = 0.9
"""Of the stretches in which the rank takes less time than the others: by as much as in these it may
take longer by chance elsewhere. A choice."""


class Excess(NamedTuple):
    """What a rank takes longer than others.

    Attributes:
        begin_ns: (stretches,) from when each stretch between two meetings lasts, on its own clock.
        share: (stretches, leaves) of its time there.
    """

    begin_ns: Int64s
    share: Floats

    def of(self, leaf: int, times_ns: Int64s) -> Floats:
        """(n,) share of a leaf's time at some moments."""
        at = np.searchsorted(self.begin_ns, times_ns, "right") - 1
        return np.asarray(self.share[np.maximum(at, 0), leaf], np.float64)


class Rebalancing:
    """Spreads what ranks take longer over the stretches in which they do.

    Args:
        program: of the job.
        ranks: of the job.
    """

    def __init__(self, program: Program, ranks: Sequence[RankFacts]) -> None:
        """Look up when the meetings of each rank end."""
        self._ranks = ranks
        self._met = [_meetings(program, position) for position in range(len(ranks))]

    def excess(self, late: int, others: Sequence[int], longer_ns: Floats) -> list[Excess]:
        """(levels,) what a rank takes longer than others.

        Args:
            late: position of the rank.
            others: of those that wait for it.
            longer_ns: (levels, leaves) how much longer it takes in all.
        """
        bounds = self._bounds((late, *others))
        times = [_times(self._ranks[i], b) for i, b in zip((late, *others), bounds, strict=True)]
        own, rest = times[0], np.stack(times[1:])
        apart = own - np.median(rest, axis=0)
        more = np.maximum(apart - np.quantile(np.maximum(-apart, 0.0), BY_CHANCE, axis=0), 0.0)
        more = _where_alike(more, own, self._same_steps((late, *others), bounds))
        more = np.where(more.sum(axis=0) > 0, more, own)
        shares = more / np.maximum(more.sum(axis=0), 1.0) / np.maximum(own, 1.0)
        return [Excess(bounds[0][:-1], np.minimum(shares * ns, 1.0)) for ns in longer_ns]

    def _bounds(self, positions: Sequence[int]) -> list[Int64s]:
        """For some ranks (stretches + 1) their begin, when all of them have met, and their end.

        In the order in which these meetings end for the first one.
        """
        met = [self._met[position] for position in positions]
        common = met[0][0]
        for meetings, _ in met[1:]:
            common = np.intersect1d(common, meetings)
        ended = [ends[np.searchsorted(meetings, common)] for meetings, ends in met]
        order = np.argsort(ended[0], kind="stable")
        found = []
        for position, ends in zip(positions, ended, strict=True):
            edges = self._ranks[position].timeline.edges_ns
            inner = np.clip(np.maximum.accumulate(ends[order]), edges[0], edges[-1])
            found.append(np.concatenate((edges[:1], inner, edges[-1:])))
        return found

    def _same_steps(self, positions: Sequence[int], bounds: Sequence[Int64s]) -> Bools:
        """(stretches,) whether as many steps of the first rank begin in each as of the others."""
        begun = [
            np.diff(np.searchsorted(self._ranks[i].model.steps.ts_ns, own))
            for i, own in zip(positions, bounds, strict=True)
        ]
        return np.asarray(begun[0] == np.median(begun[1:], axis=0), np.bool_)


def _where_alike(more: Floats, own: Floats, alike: Bools) -> Floats:
    """(stretches, leaves) what is longer, as a usual share where other steps were recorded."""
    if not alike.any():
        return more
    usual = more[alike].sum(axis=0) / np.maximum(own[alike].sum(axis=0), 1.0)
    return np.asarray(np.where(alike[:, None], more, usual * own), np.float64)


def _meetings(program: Program, position: int) -> tuple[Int64s, Int64s]:
    """The nodes of all meetings of a rank, ascending, and when they ended for it."""
    graph, nodes = program.graph, program.nodes
    mine = nodes.rank[graph.target] == position
    edges = np.flatnonzero(mine & (nodes.kind[graph.source] == NodeKind.MEETING))
    met, first = np.unique(graph.source[edges], return_index=True)
    return met, nodes.end_ns[graph.target[edges[first]]]


def _times(facts: RankFacts, bounds: Int64s) -> Floats:
    """(stretches, leaves) time of a rank in each leaf."""
    timeline, stretches = facts.timeline, len(bounds) - 1
    edges = instants(timeline.edges_ns, bounds)
    at = np.searchsorted(timeline.edges_ns, edges[:-1], "right") - 1
    stretch = np.searchsorted(bounds, edges[:-1], "right") - 1
    inside = (stretch >= 0) & (stretch < stretches)
    cell = stretch[inside] * len(LEAVES) + timeline.leaf[at[inside]]
    found = np.bincount(cell, np.diff(edges)[inside], stretches * len(LEAVES))
    return found.reshape(stretches, len(LEAVES)).astype(np.float64)
