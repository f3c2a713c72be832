"""Collectives and the compute that could hide them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._shared import (
    ask,
    computing_without,
    lane_name,
    leaf_ns,
    longest,
    spell,
    split_by_step,
    windows,
)
from perfdiag.classifiers.diagnosis import Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import cut, merge
from perfdiag.profiler.model import Coded
from perfdiag.trace_schemas.kernels import COLLECTIVE_OPS
from perfdiag.trace_schemas.recording import ABSENT, Int32s, Int64s

__all__ = [
    "COMPUTE_LANE",
    "HIDDEN",
    "LEAVES",
    "MOVABLE",
    "MOVING",
    "TINY",
    "Bools",
    "Exposed",
    "Kind",
    "at_most",
    "collectives",
    "exposed",
    "for_small_messages",
    "heaviest",
    "lanes_of_compute",
    "main_kind",
    "numbered",
    "operations",
]

Bools = NDArray[np.bool_]

LEAVES = ("collective_transfer", "collective_wait", "collective_unsplit")

MOVING = ("collective_transfer", "collective_unsplit")
"""What compute can hide: a wait for a late rank lasts until that rank has come, hidden or not."""

MOVABLE = (
    "all_reduce",
    "reduce_scatter",
    "reduce",
    "broadcast",
    "all_gather",
    "all_to_all",
    "unknown",
)
"""Operations that carry data for all: no barriers, no sends between two ranks."""

FOR_SMALL_MESSAGES = ("cross_device_reduce", "shot_all", "multimem", "quick_reduce", "lamport")
"""In the lower-cased names of kernels that inference uses for small messages. The next kernel needs
what they bring."""

COMPUTE_LANE = Threshold(
    0.1,
    "share of the compute time",
    "a choice: side streams carry a few casts and copies (2.5 % in a DDP job on A100)",
)

HIDDEN = Threshold(
    0.5, "share of what compute could hide", "a choice: the last bucket has nothing to hide behind"
)

TINY = Threshold(8, "bytes", "one element of the widest type: it synchronises and carries nothing")


def lanes_of_compute(facts: RankFacts, least: float) -> Int64s:
    """The lanes of the device that carry at least this share of its kernels' time."""
    if not facts.kernels.any():
        return np.empty(0, np.int64)
    time = np.bincount(facts.model.work.lane[facts.kernels], facts.length_ns[facts.kernels])
    return np.flatnonzero((time > 0) & (time >= least * time.sum()))


@dataclass(frozen=True, slots=True)
class Exposed:
    """Some collectives of a rank.

    Attributes:
        rows: of `Work`.
        parts, step: their union, cut by step.
        time_ns: (steps,) how long they run while no kernel does, known waits for late ranks apart.
        hideable: (steps,) share of that time for which there is compute to hide it: compute
            that hides no collective yet.
    """

    rows: Int64s
    parts: tuple[Int64s, Int64s]
    step: Int64s
    time_ns: Int64s
    hideable: NDArray[np.float64]

    def claim(
        self,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        mid: NDArray[np.float64] | None = None,
    ) -> Claim:
        """A claim on them, by shares of each step."""
        likely = (low + high) / 2 if mid is None else mid
        least, likely, most = (share[self.step] for share in (low, likely, high))
        return claim(self.parts, MOVING, low=least, mid=likely, high=most, verb="overlap")


def operations(facts: RankFacts) -> Coded:
    """(work,) what each collective does; '' for other work.

    Sends without a launch in the trace belong to exchanges where their lane carries exchanges.
    """
    work = facts.model.work
    code = {op: number for number, op in enumerate(COLLECTIVE_OPS)}
    left = work.collective.where("send_recv") & (work.launch_id == ABSENT)
    if not left.any():
        return work.collective
    codes = work.collective.map(lambda op: code.get(op, ABSENT), np.int32)
    lanes = np.unique(work.lane[codes == code["all_to_all"]])
    codes[left & np.isin(work.lane, lanes)] = code["all_to_all"]
    return Coded(codes, list(COLLECTIVE_OPS))


def for_small_messages(facts: RankFacts) -> Bools:
    """(work,) kernels that are made for small messages."""
    special = facts.model.work.name.map(_for_small_messages, np.bool_)
    return np.asarray(special, np.bool_)


def _for_small_messages(name: str) -> bool:
    lower = name.lower()
    return any(part in lower for part in FOR_SMALL_MESSAGES)


def collectives(
    facts: RankFacts, *ops: str, on_compute_lanes: bool | None = None, least: float = 0.0
) -> Bools:
    """(work,) collectives of the device of the budget.

    Args:
        facts: the rank.
        ops: operations, all of them unless stated.
        on_compute_lanes: those on lanes with kernels, those on lanes of their own, or both.
        least: share of the kernels' time that makes a lane one of compute.
    """
    work = facts.model.work
    found = facts.here & work.kind.where("collective")
    if on_compute_lanes is not None:
        mixed = np.isin(work.lane, lanes_of_compute(facts, least))
        found &= mixed == on_compute_lanes
    return np.asarray(found & operations(facts).where(*ops) if ops else found, np.bool_)


def exposed(facts: RankFacts, chosen: Bools) -> Exposed:
    """Some collectives, with the time in which no kernel hides them.

    Args:
        facts: the rank.
        chosen: (work,) which.
    """
    work = facts.model.work
    rows = np.flatnonzero(chosen)
    parts, step = split_by_step(facts, merge(work.ts_ns[rows], work.end_ns[rows]))
    time = np.bincount(step, leaf_ns(facts, *MOVING, bounds=parts), len(facts.model.steps.ts_ns))
    free = computing_without(facts, "collective")
    return Exposed(
        rows, parts, step, time.astype(np.int64), np.minimum(free / np.maximum(time, 1), 1.0)
    )


def at_most(facts: RankFacts, one: Claim) -> Int64s:
    """(steps,) what a claim saves of each step at best."""
    parts = cut((one.start_ns, one.end_ns), windows(facts))
    time = leaf_ns(facts, *one.leaves, bounds=(parts.start_ns, parts.end_ns))
    saved = np.bincount(parts.window, time * one.high[parts.interval], len(windows(facts)[0]))
    return saved.astype(np.int64)


def numbered(*keys: Int64s | Int32s) -> Int64s:
    """(n,) the same number, from 0 on, where all of some (n,) keys are the same."""
    if not len(keys[0]):
        return np.empty(0, np.int64)
    _, number = np.unique(np.stack(keys), axis=1, return_inverse=True)
    return np.asarray(number, np.int64)


class Kind(NamedTuple):
    """The collectives of one operation on one lane, as `perfdiag_collective` names it.

    Attributes:
        op, lane: of all of them.
        rows: of `Work`, in the whole trace.
        words: how a sentence names them.
    """

    op: str
    lane: int
    rows: Int64s
    words: str


def main_kind(facts: RankFacts, chosen: Bools, weight: Int64s) -> Kind:
    """The kind of some collectives that weighs most.

    Args:
        facts: the rank.
        chosen: (work,) which to look at, at least one.
        weight: (work,) of each.
    """
    work = facts.model.work
    lanes = int(work.lane.max()) + 1
    pair = (work.collective.codes.astype(np.int64) + 1) * lanes + work.lane
    most = int(np.argmax(np.bincount(pair[chosen], weight[chosen])))
    rows = np.flatnonzero(work.kind.where("collective") & (pair == most))
    op, lane = work.collective.take(rows[:1])[0], most % lanes
    named = "Collectives of unknown kind" if op == "unknown" else f"Kernels of {op}"
    return Kind(op, lane, rows, f"{named} on {lane_name(facts, lane)}")


def heaviest(facts: RankFacts, chosen: Bools) -> tuple[str, Proof]:
    """A sentence on the kind of some collectives that takes longest, and its proof.

    Args:
        facts: the rank.
        chosen: (work,) which to look at, at least one; all of that kind are counted.
    """
    work, kind = facts.model.work, main_kind(facts, chosen, facts.length_ns)
    total, moved = int(facts.length_ns[kind.rows].sum()), work.bytes[kind.rows]
    size = f", {moved.sum() / 1e6:.4g} MB" if (moved >= 0).all() and moved.any() else ""
    spots = longest(work, kind.rows)
    proof = ask("ns", total, "perfdiag_collective_ns", kind.op, kind.lane, spots=spots)
    return f"{kind.words} take most: {spell(total)} in the trace{size}.", proof
