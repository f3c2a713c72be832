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
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["Excess", "excess_of"]

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


def excess_of(
    program: Program,
    ranks: Sequence[RankFacts],
    late: int,
    others: Sequence[int],
    longer_ns: Floats,
) -> Excess:
    """Spread what a rank takes longer over the stretches in which it does.

    Args:
        program: of the job.
        ranks: of the job.
        late: position of the rank.
        others: of those that wait for it.
        longer_ns: (leaves,) how much longer it takes in all.
    """
    bounds = _bounds(program, ranks, (late, *others))
    times = np.stack(
        [_times(ranks[i], own) for i, own in zip((late, *others), bounds, strict=True)]
    )
    own = times[0]
    apart = own - np.median(times[1:], axis=0)
    more = np.maximum(apart - np.quantile(np.maximum(-apart, 0.0), BY_CHANCE, axis=0), 0.0)
    more = np.where(more.sum(axis=0) > 0, more, own)
    spread = more * (longer_ns / np.maximum(more.sum(axis=0), 1.0))
    return Excess(bounds[0][:-1], np.minimum(spread / np.maximum(own, 1.0), 1.0))


def _bounds(program: Program, ranks: Sequence[RankFacts], positions: Sequence[int]) -> list[Int64s]:
    """For some ranks (stretches + 1) their begin, when meetings of all of them end, and their end.

    In the order in which these end for the first one.
    """
    met = [_meetings(program, position) for position in positions]
    common = met[0][0]
    for meetings, _ in met[1:]:
        common = np.intersect1d(common, meetings)
    ended = [ends[np.searchsorted(meetings, common)] for meetings, ends in met]
    order = np.argsort(ended[0], kind="stable")
    found = []
    for position, ends in zip(positions, ended, strict=True):
        edges = ranks[position].timeline.edges_ns
        inner = np.clip(np.maximum.accumulate(ends[order]), edges[0], edges[-1])
        found.append(np.concatenate((edges[:1], inner, edges[-1:])))
    return found


def _meetings(program: Program, position: int) -> tuple[Int64s, Int64s]:
    """The nodes of all meetings of a rank, ascending, and when they ended for it."""
    graph, nodes = program.graph, program.nodes
    mine = nodes.rank[graph.target] == position
    edges = np.flatnonzero(mine & (nodes.kind[graph.source] == NodeKind.MEETING))
    met, first = np.unique(graph.source[edges], return_index=True)
    return met, nodes.end_ns[graph.target[edges[first]]]


def _times(facts: RankFacts, bounds: Int64s) -> Floats:
    """(stretches, leaves) time of a rank in each leaf."""
    stretches = bounds[:-1], bounds[1:]
    times = [facts.timeline.time_in([leaf], stretches) for leaf in LEAVES]
    return np.stack(times, axis=1).astype(np.float64)
