"""Which group collectives belong to that were launched before the trace began.

What a collective is about is written where it is launched. Of those that were under way when the
trace began a trace holds no launch: neither group nor number. But a communicator runs its
collectives on a stream of its own, one after the other, so that they come right before the first
one there that says both.
"""

from typing import NamedTuple

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Named", "name_collectives"]


class Named(NamedTuple):
    """(n,) collectives: rows of `Collectives`, in the order of their start, and what they are of.

    Attributes:
        row: of each.
        group: its process group, '' where nothing tells.
        seq: its number in the group, -1 where nothing tells.
        size: ranks of the group, -1 where nothing tells.
    """

    row: Int64s
    group: list[str]
    seq: Int64s
    size: Int64s


def name_collectives(facts: RankFacts) -> Named:
    """The collectives on the device that a rank's budget is about, and their groups."""
    collectives, work = facts.model.collectives, facts.model.work
    rows = collectives.work
    here = np.flatnonzero(facts.here[rows])
    order = here[np.argsort(work.ts_ns[rows[here]], kind="stable")]
    rows = rows[order]
    named = Named(
        order, work.group.take(rows), collectives.seq[order].copy(), collectives.group_size[order]
    )
    lanes = work.lane[rows]
    for lane in np.unique(lanes[work.launch_id[rows] == ABSENT]).tolist():
        _name_first(named, np.flatnonzero(lanes == lane))
    return named


def _name_first(named: Named, places: Int64s) -> None:
    """Name what comes before the first collective on a stream that says its group and number.

    Not unless all behind it are numbered one by one in one group: else others may lie between.
    """
    told = np.array([named.group[place] != "" for place in places.tolist()], bool)
    first = int(np.argmax(told))
    behind = places[first:]
    groups = {named.group[place] for place in behind.tolist()}
    counted = len(behind) > 1 and (np.diff(named.seq[behind]) == 1).all()
    if not (first and counted and len(groups) == 1 and named.seq[behind[0]] != ABSENT):
        return
    before = places[:first]
    named.seq[before] = named.seq[behind[0]] - np.arange(first, 0, -1)
    named.size[before] = named.size[behind[0]]
    for place in before.tolist():
        named.group[place] = named.group[int(behind[0])]
