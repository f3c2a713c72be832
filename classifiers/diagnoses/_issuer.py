"""Idle time that waits for a launch, and what the thread is doing meanwhile that makes it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._enclosing import of_autograd
from perfdiag.classifiers.diagnoses._shared import Intervals, issuing, joined, within
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.classifiers.intervals import cut, gaps, instants, merge
from perfdiag.trace_schemas.host_ranges import step_marker
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = [
    "Innermost",
    "Waits",
    "backward",
    "common",
    "heaviest",
    "innermost",
    "minus",
    "named_work",
    "waits",
]

Bools = NDArray[np.bool_]


class Waits(NamedTuple):
    """(n,) times in which nothing runs and the work that ends it is not launched yet.

    Attributes:
        start_ns, end_ns: from when the device is idle until the launch.
        lane: the thread that makes the launch.
        drained: whether some thread that launches was waiting for the device when it ran dry.
    """

    start_ns: Int64s
    end_ns: Int64s
    lane: Int64s
    drained: Bools


def waits(facts: RankFacts) -> Waits:
    """The idle times of the device up to the launch that each is ended by, where it is known."""
    work = facts.model.work
    starts, ends = facts.idle_gaps
    rows = np.flatnonzero(facts.here & (work.end_ns > work.ts_ns))
    at = np.searchsorted(work.ts_ns[rows], ends)
    starts, row = starts[at < len(rows)], rows[at[at < len(rows)]]
    late = work.launch_ts_ns[row] > starts
    starts, row = starts[late], row[late]
    until = np.minimum(work.launch_ts_ns[row], work.ts_ns[row])
    drained = np.zeros(len(row), bool)
    for lane in np.unique(work.launch_lane).tolist():
        drained |= facts.states.blocked_since(lane, starts)
    return Waits(starts, until, work.launch_lane[row], drained)


def minus(intervals: Intervals, *unions: Intervals) -> Intervals:
    """What is left of intervals outside of some unions: disjoint, in order."""
    if not len(intervals[0]):
        return intervals
    free = gaps(*joined(*unions), int(intervals[0].min()), int(intervals[1].max()))
    return common(intervals, free)


def common(intervals: Intervals, others: Intervals) -> Intervals:
    """What intervals and a union have in common: disjoint, in order."""
    parts = cut(intervals, others)
    return merge(parts.start_ns, parts.end_ns)


def named_work(facts: RankFacts, lane: int) -> Intervals:
    """When a thread is at work that is not the step's and has a name: logging, collection."""
    by = facts.states.unions.get(lane, {})
    return joined(*(by[state] for state in (HostState.OTHER, HostState.BRIEF) if state in by))


class Innermost(NamedTuple):
    """Which range of a thread is the innermost: from each time on, a row of `Hosts`, or -1."""

    from_ns: Int64s
    row: Int64s

    def at(self, times_ns: Int64s) -> Int64s:
        """(n,) the row at each time."""
        at = np.searchsorted(self.from_ns, times_ns, "right") - 1
        return np.append(self.row, ABSENT)[at]

    def where(self, rows: Bools) -> Intervals:
        """When one of some ranges is the innermost; the last of a mask stands for none."""
        held = rows[self.row[:-1]]
        return merge(self.from_ns[:-1][held], self.from_ns[1:][held])


def heaviest(facts: RankFacts, inner: Innermost, times: Intervals) -> tuple[str, int]:
    """The name whose ranges are the innermost for most of some times, and for how long.

    '' where for most of the times no range is open.
    """
    held = inner.row[:-1] != ABSENT
    names = facts.model.hosts.name
    code = names.codes[inner.row[:-1][held]]
    time = within(times, (inner.from_ns[:-1][held], inner.from_ns[1:][held]))
    if 2 * time.sum() <= (times[1] - times[0]).sum():
        return "", 0
    total = np.bincount(code, time)
    best = int(np.argmax(total))
    return names.texts[best], int(total[best])


def innermost(facts: RankFacts, chosen: Bools, lane: int) -> Innermost:
    """Follow which of some ranges of a thread is the innermost.

    Args:
        facts: the rank.
        chosen: (hosts,) which ranges count; those around them are looked through.
        lane: the thread.
    """
    hosts = facts.model.hosts
    rows = np.flatnonzero(chosen & (hosts.lane == lane) & (hosts.end_ns > hosts.ts_ns))
    length = hosts.end_ns[rows] - hosts.ts_ns[rows]
    time = np.concatenate((hosts.end_ns[rows], hosts.ts_ns[rows]))
    inner = np.concatenate((_above(facts, chosen, rows), rows))
    begins = np.repeat([False, True], len(rows))
    # Of those that end at once the outer comes last, of those that begin at once the inner.
    order = np.lexsort(
        (np.concatenate((-rows, rows)), np.concatenate((length, -length)), begins, time)
    )
    return Innermost(time[order], inner[order])


def _above(facts: RankFacts, chosen: Bools, rows: Int64s) -> Int64s:
    """(n,) the nearest chosen range around each of some, or -1."""
    parent = facts.origins.parent
    above, stop = parent[rows], np.append(chosen, True)
    while (passed := np.flatnonzero(~stop[above])).size:
        above[passed] = parent[above[passed]]
    return above


def backward(facts: RankFacts, lane: int) -> Intervals:
    """When autograd's engine works on a thread, from one node to the next.

    Nodes are of one pass where no operator begins between them on a thread that launches work.
    """
    hosts, origins = facts.model.hosts, facts.origins
    node = of_autograd(facts)
    mine = merge(*(side[node & (hosts.lane == lane)] for side in (hosts.ts_ns, hosts.end_ns)))
    if not len(mine[0]):
        return mine
    marks = origins.named(lambda name: step_marker(name) is not None)
    other = hosts.kind.where("host_op") & issuing(facts) & ~origins.inside(node) & ~marks
    begun = instants(hosts.ts_ns[other])
    joined = np.searchsorted(begun, mine[1][:-1]) == np.searchsorted(begun, mine[0][1:])
    first, last = np.append(True, ~joined), np.append(~joined, True)
    return mine[0][first], mine[1][last]
