"""Which collectives of different ranks are one: where the ranks of a job meet.

By process group and number, where the trace has them; else by their order within the group, as far
as all ranks run the same operations in it. Never by time: clocks of ranks differ. A collective of
which nothing tells the group meets no other one where groups have names: it may be of any of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.backlogs import Named, name_collectives
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Meetings", "match"]

Bools = NDArray[np.bool_]
Key = tuple[str, str, int, int, int]

PAIRWISE = ("send_recv",)
"""Operations in which two ranks meet, and the one waits for the other's share of a schedule."""


@dataclass(frozen=True, slots=True)
class Meetings:
    """Collectives that several ranks take part in: m meetings, n arrivals.

    Attributes:
        meeting: (n,) which meeting, ascending.
        rank: (n,) position of the rank among those that were matched.
        work: (n,) row of the rank's `Work`.
        start_ns, end_ns: (n,) on the rank's own clock.
        pairwise: (m,) whether it is a transfer between two ranks.
        group: (m,) number of its process group.
        complete: (m,) whether the traces of all its ranks are there, as far as they say how many
            they are.
        unmatched: collectives of ranks that meet others, without a partner.
    """

    meeting: Int64s
    rank: Int64s
    work: Int64s
    start_ns: Int64s
    end_ns: Int64s
    pairwise: Bools
    group: Int64s
    complete: Bools
    unmatched: int

    @property
    def first(self) -> Int64s:
        """(m,) the first arrival of each meeting."""
        return np.searchsorted(self.meeting, np.arange(len(self.pairwise)))


def match(ranks: Sequence[RankFacts]) -> Meetings:
    """Match the collectives of a job's ranks, on the device that each one's budget is about."""
    arrivals: dict[Key, dict[int, int]] = defaultdict(dict)
    sizes: dict[Key, int] = {}
    total = 0
    named = [name_collectives(facts) for facts in ranks]
    for group, by_rank in _by_group(named).items():
        for key, rank, row, size in _keyed(ranks, named, group, by_rank):
            arrivals[key].setdefault(rank, row)
            sizes[key] = max(sizes.get(key, 0), size)
        total += sum(map(len, by_rank.values()))
    met = {key: found for key, found in arrivals.items() if len(found) > 1}
    return _meetings(ranks, met, sizes, total)


def _by_group(named: Sequence[Named]) -> dict[str, dict[int, list[int]]]:
    """By process group and rank: places in `Named`."""
    groups: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, one in enumerate(named):
        for place, name in enumerate(one.group):
            groups[name][position].append(place)
    return groups


def _keyed(
    ranks: Sequence[RankFacts], named: Sequence[Named], group: str, by_rank: dict[int, list[int]]
) -> Iterable[tuple[Key, int, int, int]]:
    """Key, rank, row of work and size of the group for each collective that can be matched."""
    indices = {rank: named[rank].row[places] for rank, places in by_rank.items()}
    alike = _alike(ranks, indices) if group or not any(any(one.group) for one in named) else 0
    for rank, places in by_rank.items():
        collectives, work = ranks[rank].model.collectives, ranks[rank].model.work
        ops = work.collective.take(collectives.work[indices[rank]])
        pairs: dict[tuple[int, int], int] = defaultdict(int)
        for order, (place, op) in enumerate(zip(places, ops, strict=True)):
            index, size = int(named[rank].row[place]), int(named[rank].size[place])
            source, target = int(collectives.src_rank[index]), int(collectives.dst_rank[index])
            row, number = int(collectives.work[index]), int(named[rank].seq[place])
            if op in PAIRWISE and source != ABSENT and target not in (ABSENT, source):
                pairs[source, target] += 1
                yield (group, op, source, target, pairs[source, target]), rank, row, 2
            elif number != ABSENT and op not in PAIRWISE:
                yield (group, op, ABSENT, ABSENT, number), rank, row, size
            elif order < alike:
                yield (group, op, ABSENT, ABSENT, -2 - order), rank, row, size


def _alike(ranks: Sequence[RankFacts], by_rank: dict[int, Int64s]) -> int:
    """How many collectives of a group, from the first on, are the same on all of its ranks."""
    lists = []
    for rank, indices in by_rank.items():
        work, rows = ranks[rank].model.work, ranks[rank].model.collectives.work[indices]
        lists.append(list(zip(work.collective.take(rows), work.bytes[rows].tolist(), strict=True)))
    if len({len(one) for one in lists}) != 1:
        return 0  # a rank that recorded more or fewer would shift all that follows
    differ = (i for i, one in enumerate(zip(*lists, strict=True)) if len(set(one)) > 1)
    return next(differ, len(lists[0]))


def _meetings(
    ranks: Sequence[RankFacts],
    met: dict[Key, dict[int, int]],
    sizes: dict[Key, int],
    total: int,
) -> Meetings:
    rows = [
        (number, rank, row)
        for number, found in enumerate(met.values())
        for rank, row in sorted(found.items())
    ]
    meeting, rank, work = np.array(rows, np.int64).reshape(-1, 3).T
    starts, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for position, facts in enumerate(ranks):
        mine = rank == position
        starts[mine] = facts.model.work.ts_ns[work[mine]]
        ends[mine] = facts.model.work.end_ns[work[mine]]
    world = max((facts.world_size or 0 for facts in ranks), default=0)
    wanted = [sizes[key] if sizes[key] > 0 else (world or len(found)) for key, found in met.items()]
    there = [len(found) for found in met.values()]
    groups: dict[str, int] = {}
    return Meetings(
        meeting,
        rank,
        work,
        starts,
        ends,
        np.array([key[1] in PAIRWISE for key in met], bool),
        np.array([groups.setdefault(key[0], len(groups)) for key in met], np.int64),
        np.array(there, np.int64) >= np.array(wanted, np.int64),
        total - len(rows),
    )
