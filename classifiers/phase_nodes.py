"""Where the phases of a rank begin and end in its job's graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import Times
from perfdiag.classifiers.threads import Threads
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["PhaseNodes", "phases_of"]

Floats = NDArray[np.float64]


class PhaseNodes(NamedTuple):
    """The phases of a rank's steps, in the order in which the host is in them.

    Attributes:
        row: (p,) of each in `Regions`.
        step: (p,) row of its step in `Steps`.
        last: (p,) whether it is the last one of its step, which ends with it.
        host: (p,) the node in which the host leaves it.
        passed: (p,) share of that node that is over by then.
        work: (w,) the phase that launched each piece of device work of the steps; -1 for none.
    """

    row: Int64s
    step: Int64s
    last: NDArray[np.bool_]
    host: Int64s
    passed: Floats
    work: Int64s

    def within(self, group: Int64s) -> "PhaseNodes":
        """The same in a graph of groups of nodes, by (n,) the group of each node."""
        return self._replace(host=group[self.host])

    def windows(self, times: Times, work: Int64s, bounds_ns: Int64s) -> Int64s:
        """(scenarios, p) how long phases take, by the rule of `profiler.regions`.

        From the completion of the one before to its own, inside its step; the last takes the rest.

        Args:
            times: of the graph.
            work: (w,) nodes of the device work of the steps.
            bounds_ns: (scenarios, steps + 1) when the first step begins, and when each is complete.
        """
        start, end = times.start_ns[:, self.host], times.end_ns[:, self.host]
        done = start + np.rint((end - start) * self.passed).astype(np.int64)
        known = self.work != ABSENT
        np.maximum.at(done.T, self.work[known], times.end_ns[:, work[known]].T)
        begin, until = bounds_ns[:, self.step], bounds_ns[:, self.step + 1]
        done = np.where(self.last, until, np.clip(done, begin, until))
        done = np.maximum.accumulate(done, axis=1)
        before = np.where(np.append(True, self.last[:-1]), begin, np.roll(done, 1, axis=1))
        return done - before


def phases_of(facts: RankFacts, threads: Threads, launched_ns: Int64s) -> PhaseNodes:
    """Find the phases of a rank.

    Args:
        facts: the rank.
        threads: its threads in the graph.
        launched_ns: (w,) when each piece of device work of the steps was launched.
    """
    regions, steps = facts.model.regions, facts.model.steps
    row = np.flatnonzero(np.array([kind == "phase" for kind in regions.kind], np.bool_))
    step = np.searchsorted(steps.ordinal, regions.step[row])
    order = np.lexsort((regions.host_ts_ns[row], step))
    row, step = row[order], step[order]
    begin_ns = regions.host_ts_ns[row]
    last = np.diff(step, append=ABSENT) != 0
    end_ns = np.where(last, steps.host_end_ns[step], np.append(begin_ns[1:], 0))
    host, passed = _passing(facts, threads, end_ns)
    work = np.searchsorted(begin_ns, launched_ns, "right") - 1
    return PhaseNodes(row, step, last, host, passed, work)


def _passing(facts: RankFacts, threads: Threads, times_ns: Int64s) -> tuple[Int64s, Floats]:
    """(p,) the node in which the host is at each time, and the share of it that is over by then.

    Of the thread of which a node begins just then: backward begins with what autograd's thread
    does. Else of the main thread.
    """
    main = facts.states.main_lane
    host, passed = _on(threads, main, times_ns)
    unclear = passed != 0.0
    for lane in threads.cuts:
        exact = unclear & np.isin(times_ns, threads.cuts[lane][:-1])
        host[exact] = threads.at(lane, times_ns[exact])
        passed[exact] = 0.0
        unclear &= ~exact
    return host, passed


def _on(threads: Threads, lane: int, times_ns: Int64s) -> tuple[Int64s, Floats]:
    node, cuts = threads.at(lane, times_ns), threads.cuts[lane]
    at = node - threads.base[lane]
    passed = (times_ns - cuts[at]) / np.maximum(1, cuts[at + 1] - cuts[at])
    return node, np.clip(passed, 0.0, 1.0)
