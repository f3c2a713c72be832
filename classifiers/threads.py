"""The threads of a rank as lanes of its job's graph."""

from typing import NamedTuple

import numpy as np

from perfdiag.classifiers.blocking import Blocked, issuing_lanes
from perfdiag.classifiers.draft import Draft, NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import NEVER
from perfdiag.classifiers.intervals import covered, instants, merge
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Threads", "add_threads"]


class Threads(NamedTuple):
    """The threads of a rank in the graph: by lane, when nodes begin, and the first one's number.

    What happens on a thread at some time is told by the start of the node that begins then: the
    node before may be a wait, which takes no time of its own.
    """

    cuts: dict[int, Int64s]
    base: dict[int, int]

    def at(self, lane: int, times_ns: Int64s) -> Int64s:
        """(n,) the node of a thread that begins at, or holds, each time."""
        cuts = self.cuts[lane]
        at = np.searchsorted(cuts, times_ns, "right") - 1
        return self.base[lane] + np.clip(at, 0, len(cuts) - 2)


def add_threads(
    draft: Draft, facts: RankFacts, blocked: Blocked, position: int, shift_ns: int
) -> Threads:
    """Add the threads that launch work, cut wherever what they do changes.

    Args:
        draft: the graph in the making.
        facts: the rank.
        blocked: when its threads wait; such nodes take no time of their own.
        position: of the rank in the job.
        shift_ns: to be added to its times.
    """
    threads = Threads({}, {})
    for lane in issuing_lanes(facts):
        cuts = _cuts(facts, blocked, lane)
        mine = blocked.of_lane(lane)
        waiting = covered(*merge(mine.begin_ns, mine.until_ns), cuts[:-1])
        release = np.full(len(cuts) - 1, NEVER)
        if not waiting[0]:
            release[0] = cuts[0] + shift_ns
        if lane == facts.states.main_lane:
            begin = facts.model.steps.host_ts_ns[:1]
            release[np.searchsorted(cuts, begin)] = begin + shift_ns
        threads.cuts[lane] = cuts
        threads.base[lane] = draft.add_lane(
            position,
            np.where(waiting, NodeKind.BLOCKED, NodeKind.HOST),
            (cuts[:-1], cuts[1:]),
            length_ns=np.where(waiting, 0, np.diff(cuts)),
            release_ns=release,
            thread=lane,
        )
    return threads


def _cuts(facts: RankFacts, blocked: Blocked, lane: int) -> Int64s:
    """When a thread's nodes begin and end: calls, states, waits, steps, and who waits for it."""
    calls, steps = facts.model.calls, facts.model.steps
    made, mine = calls.lane == lane, blocked.of_lane(lane)
    times = [calls.ts_ns[made], calls.end_ns[made], mine.begin_ns, mine.until_ns]
    times.append(blocked.until_ns[blocked.by_lane == lane])
    if lane in facts.states.edges:
        times.append(facts.states.edges[lane])
    if lane == facts.states.main_lane:
        times += [steps.host_ts_ns, steps.host_end_ns]
    cuts = instants(*times)
    return np.append(cuts, cuts[-1] + 1)
