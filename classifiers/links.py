"""Slow links: ranks whose groups all need longer to move the same bytes than other groups do.

Every member of a group feels the slow link of one: in one group nobody can be told from the others.
But a rank is in several, and only for the rank with the slow link all of them are slow. So what
tells is the least that one of its groups loses: the published rule for workers in a grid (arXiv
2505.05713), here for transfers.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median, median_high
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["CLEARLY", "ENOUGH", "SlowLinks", "find_links"]

Floats = NDArray[np.float64]
Members = tuple[int, ...]

ENOUGH = 0.05
"""Of a step that a rank must cost the others before it is named (DESIGN: 5 %)."""

CLEARLY = 2.0
"""Times as much as for the rank that comes second: ranks that take turns are no culprits."""

SLOWER = 1.2
"""Times as long as elsewhere that each of a rank's groups must transfer. A choice: healthy groups
differ by less, and links that are broken by far more, when a whole trace is added up."""


@dataclass(frozen=True, slots=True)
class SlowLinks:
    """What slow links cost each rank of a job in steps that have a verdict, where nothing hides it.

    Attributes:
        excess_ns: (ranks,) by how much longer its groups transfer than others that are like them;
            0 where fewer than two of its groups can be compared with any.
        least_ns: (ranks,) the part of it in the group that loses least.
        times: (ranks,) as long as elsewhere its groups transfer, 0 where it cannot be told.
        rank: position of the rank whose link is clearly slow; None where none is.
        neighbours: positions of the ranks that share a slow group with it.
        lost: (m,) share of each meeting's transfer by which the groups of that rank exceed others.
    """

    excess_ns: Floats
    least_ns: Floats
    times: Floats
    rank: int | None = None
    neighbours: tuple[int, ...] = ()
    lost: Floats = field(default_factory=lambda: np.zeros(0))


def find_links(ranks: Sequence[RankFacts], met: Meetings) -> SlowLinks:
    """Compare the transfers of each group with those of others.

    Compared are the same operations on as many bytes in groups of the same form. Rows of a mesh are
    compared with rows and not with columns, whose ranks may be in different hosts.

    Args:
        ranks: of one job, their time lines split into waiting and transfer.
        met: where they meet.
    """
    groups = _compared(_transfers(ranks, met), len(ranks))
    excess, least, times = (np.zeros(len(ranks)) for _ in range(3))
    slow = np.zeros(len(ranks), bool)
    for rank in range(len(ranks)):
        mine = [group for members, group in groups.items() if rank in members]
        if len(mine) < 2:
            continue
        lost = [group.lost_ns(rank) for group in mine]
        excess[rank], least[rank] = sum(lost), min(lost)
        times[rank] = sum(g.taken_ns for g in mine) / max(1.0, sum(g.usual_ns for g in mine))
        slow[rank] = all(group.taken_ns >= SLOWER * group.usual_ns for group in mine)
    found = SlowLinks(excess, least, times)
    worst, second = np.argsort(-least, kind="stable")[:2].tolist()
    enough = excess[worst] >= ENOUGH * sum(facts.trusted_ns for facts in ranks) / len(ranks)
    if not (slow[worst] and enough and least[worst] >= CLEARLY * least[second]):
        return found
    its = {members: group for members, group in groups.items() if worst in members}
    near = {rank for members in its for rank in members} - {worst}
    share = np.zeros(len(met.pairwise))
    for group in its.values():
        share[group.meetings] = max(0.0, 1.0 - group.usual_ns / max(1.0, group.taken_ns))
    return SlowLinks(excess, least, times, worst, tuple(sorted(near)), share)


class _Transfer(NamedTuple):
    """One transfer: which, what it is like, of whom, how long, and how exposed each member is."""

    meeting: int
    alike: tuple[str, int, Members]
    members: Members
    time_ns: int
    exposed_ns: Int64s


@dataclass(slots=True)
class _Group:
    """The transfers of a group that can be compared, added up; `exposed_ns`: (ranks,)."""

    exposed_ns: Floats
    meetings: list[int] = field(default_factory=list)
    taken_ns: float = 0.0
    usual_ns: float = 0.0

    def lost_ns(self, rank: int) -> float:
        """What the excess costs a member: as much of it as nothing hides."""
        share = self.exposed_ns[rank] / max(1.0, self.taken_ns)
        return max(0.0, self.taken_ns - self.usual_ns) * float(share)


def _compared(transfers: Iterator[_Transfer], ranks: int) -> dict[Members, _Group]:
    """By its members each group that has peers, beside how long these take.

    Of two peers the slower one counts: if most are as slow, it is no group that is slow.
    """
    kinds: dict[tuple[str, int, Members], dict[Members, list[_Transfer]]] = {}
    for one in transfers:
        kinds.setdefault(one.alike, defaultdict(list))[one.members].append(one)
    groups: dict[Members, _Group] = defaultdict(lambda: _Group(np.zeros(ranks)))
    for by_members in kinds.values():
        middle = {who: median(one.time_ns for one in same) for who, same in by_members.items()}
        for who, same in by_members.items():
            others = [time for other, time in middle.items() if other != who]
            if not others:
                continue
            group = groups[who]
            group.usual_ns += median_high(others) * len(same)
            group.taken_ns += sum(one.time_ns for one in same)
            group.meetings += [one.meeting for one in same]
            for one in same:
                group.exposed_ns[list(who)] += one.exposed_ns
    return groups


def _transfers(ranks: Sequence[RankFacts], met: Meetings) -> Iterator[_Transfer]:
    """The transfers of whole groups in steps with a verdict, all members moving as many bytes."""
    if not len(met.meeting):
        return
    shortest = np.minimum.reduceat(met.end_ns - met.start_ns, met.first)
    exposed, moved = _by_arrival(ranks, met, shortest[met.meeting])
    least, most = (ends.reduceat(moved, met.first) for ends in (np.minimum, np.maximum))
    until = np.append(met.first[1:], len(met.meeting))
    numbers = [at if facts.rank is None else facts.rank for at, facts in enumerate(ranks)]
    for meeting in np.flatnonzero(met.complete & (least == most) & (least > 0)).tolist():
        rows = slice(int(met.first[meeting]), int(until[meeting]))
        members = tuple(met.rank[rows].tolist())
        who, where = ranks[members[0]], met.work[rows][:1]
        form = tuple(numbers[rank] - numbers[members[0]] for rank in members)
        alike = (
            who.model.work.collective.take(where)[0],
            int(least[meeting]),
            () if met.pairwise[meeting] else form,
        )
        yield _Transfer(meeting, alike, members, int(shortest[meeting]), exposed[rows])


def _by_arrival(
    ranks: Sequence[RankFacts], met: Meetings, transfer_ns: Int64s
) -> tuple[Int64s, Int64s]:
    """(n,) how long each arrival is exposed to the transfer, and its bytes; -1 in doubted steps."""
    exposed, moved = np.zeros((2, len(met.meeting)), np.int64)
    for position, facts in enumerate(ranks):
        mine = met.rank == position
        bounds = (met.end_ns[mine] - transfer_ns[mine], met.end_ns[mine])
        exposed[mine] = facts.timeline.time_in(("collective_transfer",), bounds)
        step = np.searchsorted(facts.model.steps.ts_ns, met.start_ns[mine], "right") - 1
        trusted = (step >= 0) & facts.trusted[np.maximum(step, 0)]
        moved[mine] = np.where(trusted, facts.model.work.bytes[met.work[mine]], -1)
    return exposed, moved
