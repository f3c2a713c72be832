"""Runtime calls that launches wait for, and what they cost the device."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.blocking import issuing_lanes
from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._issuer import waits
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    Intervals,
    joined,
    leaf_in,
    split_by_step,
    union_of,
)
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import covered, cut, merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Stalls", "after_the_first", "copying", "held_up", "let_go", "of_launchers", "stalls"]

Bools = NDArray[np.bool_]


def of_launchers(facts: RankFacts) -> Bools:
    """(calls,) those of threads that launch work: what others call holds up no launch."""
    lanes = np.append(np.unique(facts.model.work.launch_lane), facts.states.main_lane)
    return np.isin(facts.model.calls.lane, lanes)


def after_the_first(facts: RankFacts) -> Bools:
    """(steps,) all but the first, in which a job starts up."""
    return np.arange(len(facts.model.steps.ts_ns)) > 0


def held_up(facts: RankFacts, union: Intervals) -> Intervals:
    """The parts of disjoint intervals in which the device waits for a launch that is to come."""
    waiting = waits(facts)
    parts = cut(union, merge(waiting.start_ns, waiting.end_ns))
    return merge(parts.start_ns, parts.end_ns)


def let_go(facts: RankFacts, chosen: Bools, least: float = 0.0) -> Claim:
    """A claim that calls no longer wait for the device, or this share of them at least.

    Args:
        facts: the rank.
        chosen: (calls,) which.
        least: of them.
    """
    calls, lanes = union_of(facts.model.calls, chosen), issuing_lanes(facts)
    return claim(calls, (), low=least, mid=1.0, high=1.0, verb="detach", threads=lanes)


def copying(facts: RankFacts, rows: NDArray[np.integer] | Bools) -> Bools:
    """(calls,) those that launch some copies, or wait for one right after it in one operator."""
    calls, op = facts.model.calls, facts.origins.call_op
    ids = facts.model.work.launch_id[rows]
    chosen = np.isin(calls.id, ids[ids != ABSENT])
    order = np.lexsort((calls.ts_ns, calls.lane))
    before, after = order[:-1], order[1:]
    same = (calls.lane[before] == calls.lane[after]) & (op[before] == op[after]) & (op[after] >= 0)
    waits = same & chosen[before] & calls.role.where("sync")[after]
    chosen[after[waits]] = True
    return chosen


class Stalls(NamedTuple):
    """What calls cost the device.

    Attributes:
        under: the times of the calls in which the device waits for a launch.
        refill: from the end of a call under which the device ran dry until work arrives again.
        lost_ns: (steps,) idle time in both.
        calls: their times; `threads`: those that launch work.
    """

    under: Intervals
    refill: Intervals
    lost_ns: Int64s
    calls: Intervals
    threads: list[int]

    def claims(self, least: float) -> list[Claim]:
        """Claims: the calls go, also where a queue of launches hides them, or this share at least.

        The host does what follows as much earlier as it no longer waits.
        """
        gone = claim(
            self.calls, (), low=0.0, mid=1.0, high=1.0, verb="remove", threads=self.threads
        )
        return [
            claim(self.under, HOST_IDLE, low=least, mid=1.0, high=1.0),
            claim(self.refill, HOST_IDLE, low=0.0, high=1.0, verb="detach"),
            gone,
        ]


def stalls(facts: RankFacts, union: Intervals, steps: Bools) -> Stalls:
    """Idle time under calls and after them.

    Args:
        facts: the rank.
        union: the times of the calls, as `merge` gives them.
        steps: (steps,) which steps count.
    """
    starts, ends = facts.idle_gaps
    dry = covered(*union, starts)
    call = np.searchsorted(union[0], starts[dry], "right") - 1
    left = np.minimum(union[1][call], ends[dry])
    under = _in_steps(facts, held_up(facts, union), steps)
    refill = _in_steps(facts, (left, ends[dry]), steps)
    lost = leaf_in(facts, joined(under, refill), *HOST_IDLE)
    return Stalls(under, refill, lost, _in_steps(facts, union, steps), issuing_lanes(facts))


def _in_steps(facts: RankFacts, intervals: Intervals, steps: Bools) -> Intervals:
    """The parts of disjoint intervals that lie in some steps."""
    (starts, ends), step = split_by_step(facts, intervals)
    return starts[steps[step]], ends[steps[step]]
