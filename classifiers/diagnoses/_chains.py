"""Kernels one after the other on a stream that only move memory."""

import numpy as np

from perfdiag.classifiers.diagnosis import Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["FUSABLE", "GAP", "SHORTEST", "elementwise_chains", "in_order"]

FUSABLE = ("copy", "elementwise", "fill", "loss", "norm", "random", "softmax")

SHORTEST = Threshold(3, "kernels", "a choice: pairs are too common by chance")
GAP = Threshold(10_000, "ns", "a launch on an idle device takes 3 to 12 us in the traces at hand")


def in_order(facts: RankFacts) -> Int64s:
    """(n,) rows of all that runs on the device of the budget, stream by stream."""
    work = facts.model.work
    here = np.flatnonzero(
        (work.device == facts.timeline.device)
        & work.kind.where("kernel", "collective", "copy", "fill")
    )
    return np.asarray(here[np.lexsort((work.ts_ns[here], work.lane[here]))], np.int64)


def elementwise_chains(facts: RankFacts, limits: Limits) -> tuple[Int64s, Int64s]:
    """Rows of kernels that lie in chains, and the number of each one's chain.

    Args:
        facts: the rank.
        limits: with `shortest`, the kernels of a chain at least, and `gap`, between two of them.
    """
    work = facts.model.work
    rows = in_order(facts)
    fusable = (work.family.where(*FUSABLE) & work.kind.where("kernel"))[rows]
    lane, start, end = work.lane[rows], work.ts_ns[rows], work.end_ns[rows]
    joined = fusable[1:] & fusable[:-1] & (lane[1:] == lane[:-1])
    joined &= start[1:] - end[:-1] <= limits["gap"]
    run = np.concatenate(([0], np.cumsum(~joined)))[: len(rows)]
    long = (
        fusable & (np.bincount(run, minlength=1)[run] >= limits["shortest"])
        if len(rows)
        else fusable
    )
    _, chain = np.unique(run[long], return_inverse=True)
    return rows[long], chain.astype(np.int64)
