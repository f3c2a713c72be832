"""Work that is done tensor by tensor, one small kernel after the other."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
    Intervals,
    idle_before,
    leaf_in,
    union_of,
)
from perfdiag.classifiers.diagnosis import Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["FIXED", "LAUNCHES", "TENSORS", "long_runs", "one_by_one", "spans", "time_of"]

Bools = NDArray[np.bool_]

TENSORS = Threshold(16, "kernels", "a choice: fewer tensors than that need no list of tensors")

FIXED = Threshold(
    2_000, "ns", "what the shortest pointwise kernels take in traces of V100, A100, H100 and MI300"
)
"""A kernel needs this long whatever it does; a kernel over a list of tensors needs it once."""

LAUNCHES = Threshold(
    0.5, "share", "a choice: grouping the tensors costs host time too, half of it at worst"
)


def long_runs(facts: RankFacts, chosen: Bools, least: float, between: int = 0) -> Bools:
    """(work,) the chosen work that lies in long runs.

    Args:
        facts: the rank.
        chosen: (work,) which.
        least: pieces of it that make a run.
        between: other pieces that a thread may launch between two of a run.
    """
    work = facts.model.work
    known = np.flatnonzero(facts.here & (work.launch_id != ABSENT))
    order = known[np.lexsort((work.launch_ts_ns[known], work.launch_lane[known]))]
    place = np.flatnonzero(chosen[order])
    rows = order[place]
    fresh = (np.diff(place) > between + 1) | (np.diff(work.launch_lane[rows]) != 0)
    run = np.concatenate(([0], np.cumsum(fresh)))[: len(rows)]
    long = np.zeros(len(chosen), bool)
    if len(rows):
        long[rows] = np.bincount(run)[run] >= least
    return long


def spans(facts: RankFacts, chosen: Bools, group: Int64s) -> Intervals:
    """From the first to the last of some work, for each group, with idle time before the first.

    While a thread launches one small kernel after the other, whatever ends an idle time on the
    device waited for it: helpers of the kernels too, of which no launch is known.

    Args:
        facts: the rank.
        chosen: (work,) which.
        group: (work,) what belongs together.
    """
    work = facts.model.work
    _, at = np.unique(group[chosen], return_inverse=True)
    begin = np.full(at.max(initial=-1) + 1, np.iinfo(np.int64).max)
    end = np.zeros(len(begin), np.int64)
    np.minimum.at(begin, at, work.ts_ns[chosen])
    np.maximum.at(end, at, work.end_ns[chosen])
    before = idle_before(facts, chosen)
    return merge(np.concatenate((begin, before[0])), np.concatenate((end, before[1])))


def time_of(facts: RankFacts, chosen: Bools, idle: Intervals) -> Int64s:
    """(steps,) time that small kernels take, and idle time of the host inside some intervals."""
    own = leaf_in(facts, union_of(facts.model.work, chosen), "memory_kernel")
    return own + leaf_in(facts, idle, *LAUNCHING)


def one_by_one(
    facts: RankFacts,
    chosen: Bools,
    group: Int64s,
    idle: Intervals,
    limits: Limits,
    fused: ArrayLike,
) -> list[Claim]:
    """What one kernel over all tensors saves of many small ones.

    Args:
        facts: the rank.
        chosen: (work,) the small ones.
        group: (work,) what belongs together.
        idle: where the device waits for their launches, see `spans`.
        limits: with `fixed` and `launches`.
        fused: share of the traffic of each kernel, or of all, that is saved at best.
    """
    work, length = facts.model.work, np.maximum(facts.length_ns[chosen], 1)
    low = np.minimum(limits["fixed"] / length, 1.0)
    best = low + (1.0 - low) * np.asarray(fused)
    kernels = (work.ts_ns[chosen], work.end_ns[chosen])
    loops, threads = _loops(facts, chosen, group)
    launches = limits["launches"]
    return [
        claim(kernels, ["memory_kernel"], low=low, mid=best, high=best),
        claim(loops, LAUNCHING, low=launches, mid=1.0, high=1.0, verb="remove", threads=threads),
        claim(idle, LAUNCHING, low=launches, mid=1.0, high=1.0),
    ]


def _loops(facts: RankFacts, chosen: Bools, group: Int64s) -> tuple[Intervals, list[int]]:
    """From the first launch to the last one of each group on a thread; and the threads."""
    work = facts.model.work
    rows = np.flatnonzero(chosen & (work.launch_id != ABSENT))
    lanes, lane = np.unique(work.launch_lane[rows], return_inverse=True)
    _, at = np.unique(np.stack((group[rows], lane)), axis=1, return_inverse=True)
    begin = np.full(at.max(initial=-1) + 1, np.iinfo(np.int64).max)
    end = np.zeros(len(begin), np.int64)
    np.minimum.at(begin, at.ravel(), work.launch_ts_ns[rows])
    np.maximum.at(end, at.ravel(), work.launch_end_ns[rows])
    threads: list[int] = lanes.tolist()
    return merge(begin, end), threads
