"""Collectives and the compute that could hide them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._shared import leaf_ns, split_by_step, windows, within
from perfdiag.classifiers.diagnosis import Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import Int64s

__all__ = [
    "COMPUTE_LANE",
    "HIDDEN",
    "LEAVES",
    "Exposed",
    "collectives",
    "exposed",
    "lanes_of_compute",
]

Bools = NDArray[np.bool_]

LEAVES = ("collective_transfer", "collective_wait", "collective_unsplit")

COMPUTE_LANE = Threshold(
    0.1,
    "share of the compute time",
    "a choice: side streams carry a few casts and copies (2.5 % in a DDP job on A100)",
)

HIDDEN = Threshold(
    0.5, "share of what compute could hide", "a choice: the last bucket has nothing to hide behind"
)


def lanes_of_compute(facts: RankFacts, least: float = COMPUTE_LANE.value) -> Int64s:
    """The lanes of the device that carry at least this share of its kernels' time."""
    if not facts.kernels.any():
        return np.empty(0, np.int64)
    time = np.bincount(facts.model.work.lane[facts.kernels], facts.length_ns[facts.kernels])
    return np.flatnonzero(time >= least * time.sum())


@dataclass(frozen=True, slots=True)
class Exposed:
    """Some collectives of a rank.

    Attributes:
        rows: of `Work`.
        parts, step: their union, cut by step.
        time_ns: (steps,) how long they run while no kernel does.
        hideable: (steps,) share of that time for which there is compute to hide it: compute
            that hides no collective yet.
    """

    rows: Int64s
    parts: tuple[Int64s, Int64s]
    step: Int64s
    time_ns: Int64s
    hideable: NDArray[np.float64]

    def claim(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Claim:
        """A claim on them, by shares of each step."""
        return claim(self.parts, LEAVES, low=low[self.step], high=high[self.step])


def collectives(facts: RankFacts, *ops: str, on_compute_lanes: bool, least: float) -> Bools:
    """(work,) the collectives on lanes with kernels, or those on lanes of their own.

    Args:
        facts: the rank.
        ops: operations, all of them unless stated.
        on_compute_lanes: which of the two.
        least: share of the kernels' time that makes a lane one of compute.
    """
    work = facts.model.work
    mixed = np.isin(work.lane, lanes_of_compute(facts, least))
    found = facts.here & work.kind.where("collective") & (mixed == on_compute_lanes)
    return np.asarray(found & work.collective.where(*ops) if ops else found, np.bool_)


def exposed(facts: RankFacts, chosen: Bools) -> Exposed:
    """Some collectives, with the time in which no kernel hides them.

    Args:
        facts: the rank.
        chosen: (work,) which.
    """
    work = facts.model.work
    rows = np.flatnonzero(chosen)
    parts, step = split_by_step(facts, merge(work.ts_ns[rows], work.end_ns[rows]))
    time = np.bincount(step, leaf_ns(facts, *LEAVES, bounds=parts), len(facts.model.steps.ts_ns))
    free = _compute_without_collective(facts)
    return Exposed(
        rows, parts, step, time.astype(np.int64), np.minimum(free / np.maximum(time, 1), 1.0)
    )


def _compute_without_collective(facts: RankFacts) -> Int64s:
    edges, active = facts.timeline.edges_ns, facts.timeline.active
    alone = (active & 3) == 1
    return within(merge(edges[:-1][alone], edges[1:][alone]), windows(facts))
