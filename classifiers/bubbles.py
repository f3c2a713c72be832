"""Idle time of pipeline stages that have done their share while others have not."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF, Timeline
from perfdiag.classifiers.clocks import Clocks
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import covered, instants, merge
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["with_bubbles"]

UNOWNED = ("unclassified", "host_other", "dependency")
"""Leaves of idle time that nothing claims: a loader or a dispatching host does."""


def with_bubbles(ranks: Sequence[RankFacts], met: Meetings, clocks: Clocks) -> list[RankFacts]:
    """The ranks; what a stage idles at the end of a step while its peers compute is waiting.

    Args:
        ranks: of one job.
        met: where they meet; those that send to each other are stages.
        clocks: times are compared on the common clock.
    """
    stages: list[int] = np.unique(met.rank[met.pairwise[met.meeting]]).tolist()
    found = list(ranks)
    for stage in stages:
        busy = _busy(ranks, [other for other in stages if other != stage], clocks)
        shift = int(clocks.shift_ns[stage])
        there = (busy[0] - shift, busy[1] - shift)
        found[stage] = replace(ranks[stage], timeline=_waiting(ranks[stage], there))
    return found


def _busy(ranks: Sequence[RankFacts], peers: list[int], clocks: Clocks) -> tuple[Int64s, Int64s]:
    """When a kernel of some peer computes, on the common clock."""
    starts, ends = [], []
    for peer in peers:
        timeline, shift = ranks[peer].timeline, clocks.shift_ns[peer]
        computing = (timeline.active & 1) > 0
        starts.append(timeline.edges_ns[:-1][computing] + shift)
        ends.append(timeline.edges_ns[1:][computing] + shift)
    return merge(np.concatenate(starts), np.concatenate(ends))


def _waiting(facts: RankFacts, busy: tuple[Int64s, Int64s]) -> Timeline:
    old = facts.timeline
    edges = instants(old.edges_ns, *busy)
    edges = edges[(edges >= old.edges_ns[0]) & (edges <= old.edges_ns[-1])]
    at = np.searchsorted(old.edges_ns, edges[:-1], "right") - 1
    leaf, active = old.leaf[at].copy(), old.active[at]
    unowned = np.isin(leaf, [LEAF[name] for name in UNOWNED]) & (active == 0)
    trailing = unowned & _after_work(facts, edges[:-1])
    leaf[trailing & covered(*busy, edges[:-1])] = LEAF["collective_wait"]
    return Timeline(edges, leaf, active, old.device)


def _after_work(facts: RankFacts, times_ns: Int64s) -> NDArray[np.bool_]:
    """(n,) whether each time lies behind the last device work of its step."""
    steps, work = facts.model.steps, facts.model.work
    step = np.searchsorted(steps.ts_ns, times_ns, "right") - 1
    mine = np.searchsorted(steps.ts_ns, work.ts_ns[facts.here], "right") - 1
    last = np.array(steps.ts_ns, np.int64)
    np.maximum.at(
        last,
        np.maximum(mine, 0),
        np.minimum(work.end_ns[facts.here], steps.end_ns[np.maximum(mine, 0)]),
    )
    return np.asarray(times_ns >= last[step], np.bool_)
