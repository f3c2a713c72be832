"""What of a collective is waiting, for whom, and what the late rank did meanwhile.

The rank that arrives last has the shortest collective: its length is the transfer, what the others
take beyond it is their wait. A wait is charged to the late rank, leaf by leaf to what that rank
needed longer for than the one that waits since both were last level. Ends of collectives coincide,
so none of this compares the clocks of two ranks.

Two ranks are level when a collective ends beside which neither had anything else to do. One that
runs beside other work does not stop that: the one rank may have done what the other has yet to do,
and waits for it in the next ones, which says nothing of why the other is behind.

A budget counts the waits that nothing hides. What a rank costs the others is more: see
`hidden_waits`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF, Timeline
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.hidden_waits import delays_ns
from perfdiag.classifiers.intervals import covered, cut, instants, merge
from perfdiag.classifiers.pace import BY_DEVICE, BY_HOST, longer_ns
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.trace_schemas.recording import ABSENT, Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["Waits", "find_waits", "split_timelines"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

WAIT, TRANSFER = LEAF["collective_wait"], LEAF["collective_transfer"]
UNSPLIT = LEAF["collective_unsplit"]


def split_timelines(ranks: Sequence[RankFacts], met: Meetings) -> list[RankFacts]:
    """The ranks with their exposed collectives split into waiting and transfer, where matched.

    What of a collective is no wait for a rank that is there may be one for a rank that is not: it
    stays unsplit where traces are missing.
    """
    waits = met.end_ns - met.start_ns - _transfer(met)
    found = []
    for position, facts in enumerate(ranks):
        mine = met.rank == position
        middle = met.start_ns[mine] + waits[mine]
        moved = met.complete[met.meeting[mine]]
        waiting = merge(met.start_ns[mine], middle)
        moving = merge(middle[moved], met.end_ns[mine][moved])
        transfer = np.full(len(facts.model.work.id), ABSENT, np.int64)
        transfer[met.work[mine][moved]] = (met.end_ns[mine] - middle)[moved]
        timeline = _split(facts.timeline, waiting, moving)
        found.append(replace(facts, timeline=timeline, transfer_ns=transfer))
    return found


def _transfer(met: Meetings) -> Int64s:
    """(n,) the shortest length of each arrival's meeting."""
    if not len(met.meeting):
        return met.start_ns
    shortest = np.minimum.reduceat(met.end_ns - met.start_ns, met.first)
    return np.asarray(shortest[met.meeting], np.int64)


def _split(
    timeline: Timeline, waiting: tuple[Int64s, Int64s], moving: tuple[Int64s, Int64s]
) -> Timeline:
    old = timeline.edges_ns
    edges = instants(old, *waiting, *moving)
    edges = edges[(edges >= old[0]) & (edges <= old[-1])]
    at = np.searchsorted(old, edges[:-1], "right") - 1
    leaf, active = timeline.leaf[at].copy(), timeline.active[at]
    unsplit = leaf == UNSPLIT
    leaf[unsplit & covered(*waiting, edges[:-1])] = WAIT
    leaf[unsplit & covered(*moving, edges[:-1])] = TRANSFER
    return Timeline(edges, leaf, active, timeline.device)


@dataclass(frozen=True, slots=True)
class Waits:
    """Exposed waits of a job's ranks, and where they lead.

    Attributes:
        charged_ns: (ranks, ranks, leaves) time that the first waits for the second, by the leaf
            that the second spent it in. The first with itself holds nothing.
        cost_ns: likewise what waiting costs the first: also transfers that would be over but for
            waits that other work hides.
        exchange_ns: (ranks, ranks) the part of charged waits in exchanges (all-to-all).
        bubble_ns: (ranks,) time that waits in transfers between two ranks, which is not charged.
        longer_ns: (2, ranks, ranks) how much longer host, and device, of the second rank work
            than those of the first.
    """

    charged_ns: Floats
    cost_ns: Floats
    exchange_ns: Floats
    bubble_ns: Int64s
    longer_ns: Floats

    @property
    def late_ns(self) -> Floats:
        """(ranks, leaves) what each rank costs all others, as far as that rank is to blame.

        A transfer takes all members of a group as long: no rank is late by itself because of it.
        Nor is one that comes later than the others, but works no longer than they do.
        """
        late = self.cost_ns.copy()
        late[:, :, TRANSFER] = 0.0
        for leaves, longer in zip((BY_HOST, BY_DEVICE), self.longer_ns, strict=True):
            waited = late[:, :, leaves].sum(axis=2)
            late[:, :, leaves] *= np.minimum(1.0, longer / np.maximum(waited, 1.0))[:, :, None]
        return np.asarray(late.sum(axis=0), np.float64)

    def with_slow_link(self, rank: int, neighbours: Sequence[int]) -> "Waits":
        """The same with waits for transfers charged to the rank whose link is slow.

        Args:
            rank: its position.
            neighbours: of the ranks that share its slow groups, and so come late to others.
        """
        charged, near = self.charged_ns.copy(), list(neighbours)
        others = np.arange(len(charged)) != rank
        moved = charged[:, near, TRANSFER] * others[:, None]
        charged[:, near, TRANSFER] -= moved
        charged[:, rank, TRANSFER] += moved.sum(axis=1)
        return replace(self, charged_ns=charged)


def find_waits(ranks: Sequence[RankFacts], met: Meetings) -> Waits:
    """Charge the exposed waits of ranks whose time lines have been split."""
    count = len(ranks)
    charged, cost = np.zeros((2, count, count, len(LEAVES)))
    in_exchange = np.zeros((count, count))
    exposed, exchange = _exposed(ranks, met), _exchanges(ranks, met)
    costs = exposed + _delays(ranks, met, exposed)
    alone = _end_alone(ranks, met)
    bubble = np.zeros(count, np.int64)
    pairwise = met.pairwise[met.meeting] if len(met.meeting) else np.zeros(0, bool)
    np.add.at(bubble, met.rank[pairwise], exposed[pairwise])
    totals = [_Totals(facts.timeline) for facts in ranks]
    last = np.full((count, count, 2), ABSENT, np.int64)
    first = np.append(met.first, len(met.meeting))
    begins = np.maximum.reduceat(met.end_ns, met.first) if len(met.meeting) else met.end_ns
    for meeting in np.argsort(begins, kind="stable").tolist():
        rows = np.arange(first[meeting], first[meeting + 1])
        if not met.pairwise[meeting]:
            late = rows[np.argmin((met.end_ns - met.start_ns)[rows])]
            for row in rows[(rows != late) & (costs[rows] > 0)].tolist():
                waits, _ = pair = int(met.rank[row]), int(met.rank[late])
                excess = _excess(totals, met, (row, int(late)), last)
                found = _charge(charged, pair, excess * exposed[row])
                charged[waits] += found
                in_exchange[waits] += found.sum(axis=1) * exchange[meeting]
                cost[waits] += _charge(cost, pair, excess * costs[row])
        _remember(last, met, rows[alone[rows]])
    return Waits(charged, cost, in_exchange, bubble, longer_ns(ranks))


def _exchanges(ranks: Sequence[RankFacts], met: Meetings) -> Bools:
    """(m,) whether all ranks of a group send to all others."""
    found = np.zeros(len(met.pairwise), bool)
    for position, facts in enumerate(ranks):
        mine = met.rank == position
        found[met.meeting[mine]] |= facts.model.work.collective.where("all_to_all")[met.work[mine]]
    return found


def _exposed(ranks: Sequence[RankFacts], met: Meetings) -> Int64s:
    """(n,) how long each arrival waits, in steps with a verdict, with nothing else to do."""
    waits = met.end_ns - met.start_ns - _transfer(met)
    exposed = np.zeros(len(met.meeting), np.int64)
    for position, facts in enumerate(ranks):
        mine = np.flatnonzero(met.rank == position)
        edges, steps = facts.timeline.edges_ns, facts.model.steps
        counted = facts.trusted[np.searchsorted(steps.ts_ns, edges[:-1], "right") - 1]
        waiting = (facts.timeline.leaf == WAIT) & counted
        union = merge(edges[:-1][waiting], edges[1:][waiting])
        parts = cut((met.start_ns[mine], met.start_ns[mine] + waits[mine]), union)
        length = (parts.end_ns - parts.start_ns).astype(np.float64)
        exposed[mine] = np.bincount(parts.interval, length, len(mine))
    return exposed


def _delays(ranks: Sequence[RankFacts], met: Meetings, exposed_ns: Int64s) -> Floats:
    """(n,) what each wait costs later, as far as other work hides it at first."""
    waits = met.end_ns - met.start_ns - _transfer(met)
    delays = np.zeros(len(met.meeting))
    for position, facts in enumerate(ranks):
        mine = met.rank == position
        delays[mine] = delays_ns(facts, met.work[mine], waits[mine], exposed_ns[mine])
    return delays


def _end_alone(ranks: Sequence[RankFacts], met: Meetings) -> Bools:
    """(n,) whether the rank has nothing else to do when a collective ends."""
    alone = np.zeros(len(met.meeting), bool)
    for position, facts in enumerate(ranks):
        mine, timeline = met.rank == position, facts.timeline
        at = np.searchsorted(timeline.edges_ns, met.end_ns[mine] - 1, "right") - 1
        inside = (at >= 0) & (at < len(timeline.leaf))
        busy = np.zeros(len(at), bool)
        busy[inside] = ~np.isin(timeline.leaf[at[inside]], (WAIT, TRANSFER, UNSPLIT))
        alone[mine] = ~busy
        alone[mine] &= ~_beside_others(met.start_ns[mine], met.end_ns[mine])
    return alone


def _beside_others(start_ns: Int64s, end_ns: Int64s) -> Bools:
    """(n,) whether another one has begun when each ends, and is not done."""
    begun = np.searchsorted(np.sort(start_ns), end_ns, "left")
    done = np.searchsorted(np.sort(end_ns), end_ns, "right")
    return np.asarray(begun > done, np.bool_)


class _Totals:
    """Time in each leaf of a rank up to any moment."""

    def __init__(self, timeline: Timeline) -> None:
        lengths = np.diff(timeline.edges_ns)
        each = np.zeros((len(lengths) + 1, len(LEAVES)))
        each[np.arange(1, len(lengths) + 1), timeline.leaf] = lengths
        self._edges, self._leaf = timeline.edges_ns, timeline.leaf
        self._before = np.cumsum(each, axis=0)

    def between(self, start_ns: int, end_ns: int) -> Floats:
        """(leaves,) time in each leaf between two moments."""
        return self._until(end_ns) - self._until(start_ns)

    def _until(self, moment: int) -> Floats:
        if not len(self._leaf):
            return np.zeros(len(LEAVES))
        moment = int(np.clip(moment, self._edges[0], self._edges[-1]))
        at = min(int(np.searchsorted(self._edges, moment, "right")) - 1, len(self._leaf) - 1)
        total = np.array(self._before[at], np.float64)
        total[self._leaf[at]] += moment - self._edges[at]
        return total

    @property
    def begin_ns(self) -> int:
        """When the rank's first step begins."""
        return int(self._edges[0])


def _excess(totals: list[_Totals], met: Meetings, rows: tuple[int, int], last: Int64s) -> Floats:
    """(leaves,) what the late rank needed longer for than the one that waits, as shares.

    Args:
        totals: of all ranks.
        met: the meetings.
        rows: of the rank that waits and of the one that is late.
        last: when each pair of ranks was last level.
    """
    (waits, late), (here, there) = met.rank[list(rows)], met.start_ns[list(rows)]
    since = [int(last[waits, late, 0]), int(last[waits, late, 1])]
    if ABSENT in since:
        since = [totals[waits].begin_ns, totals[late].begin_ns]
    own = totals[waits].between(since[0], int(here))
    excess = np.maximum(totals[late].between(since[1], int(there)) - own, 0.0)
    if not excess.sum():
        excess[LEAF["unclassified"]] = 1.0
    return np.asarray(excess / excess.sum(), np.float64)


def _charge(charged: Floats, pair: tuple[int, int], share_ns: Floats) -> Floats:
    """One wait, (ranks, leaves): of the late rank, and what that waited itself of others.

    Args:
        charged: so far.
        pair: the rank that waits, and the one that is late.
        share_ns: (leaves,) the wait by what the late rank did; it is changed.
    """
    waits, late = pair
    through, share_ns[WAIT] = share_ns[WAIT], 0.0
    found = _pass_on(charged, waits, late, through)
    found[late] += share_ns
    return found


def _pass_on(charged: Floats, waits: int, late: int, time_ns: float) -> Floats:
    """What the late rank waited itself goes to those for whom it waited so far."""
    to = charged[late].copy()
    to[waits] = 0.0
    if not to.sum():
        to[late, LEAF["unclassified"]] = 1.0
    return np.asarray(to * (time_ns / to.sum()), np.float64)


def _remember(last: Int64s, met: Meetings, rows: Int64s) -> None:
    ranks, ends = met.rank[rows], met.end_ns[rows]
    last[np.ix_(ranks, ranks)] = np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1)
