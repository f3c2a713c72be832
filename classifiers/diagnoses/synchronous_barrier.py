"""Barriers and one-element reductions inside the step.

What it finds:
    Barriers, and collectives that carry one element, that run while no kernel does; and time in
    which the device is idle while the host stands in a barrier or has just left one.

Why it costs time:
    A barrier makes all ranks as late as the latest one, and a host that waits in it launches
    nothing: the queue runs dry, and the device is idle until the next launch gets through.

How it is told apart:
    By the operation, the size (8 bytes at most), or the name of the range. A barrier under queued
    kernels costs nothing and is not counted; nor is one that occurs in one of several steps only,
    as around a checkpoint. The trace of one rank cannot tell how much of it is waiting for a late
    rank: that would only move to the next collective, so nothing is saved at worst.

Example:
    dist.barrier() after the backward pass: 50 us, and 36 us until the next kernel starts.

What to do:
    Take barriers out of the training step. Collectives order the ranks well enough. Reduce losses
    and metrics every N steps, together, and read them later.

References:
    https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://github.com/pytorch/pytorch/pull/140785
"""

import re

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._overlap import (
    LEAVES,
    MOVABLE,
    TINY,
    Bools,
    at_most,
    collectives,
    heaviest,
)
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    Intervals,
    joined,
    per_step,
    ranges,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts

BARRIER = re.compile(r"(?:^|[^A-Za-z])(?:monitored_)?barrier_?(?:\(\))?$")
"""Names of ranges: c10d::barrier, nccl:all_reduce_barrier."""

OFTEN = Threshold(2, "steps", "a choice: once is a checkpoint or the start")

DIAGNOSIS = Diagnosis(
    id="synchronous_barrier",
    layer="collectives",
    title="Barriers or one-element reductions hold up the step",
    title_ok="No barrier that the step waits for",
    needs=("device",),
    confidence=0.5,
    thresholds={"share": MATERIAL, "tiny": TINY, "often": OFTEN},
    how=(
        "No torch.distributed.barrier() or monitored_barrier() in the loop (PyTorch 1.8 has both); "
        "where ranks must meet, a gloo group: new_group(backend='gloo'). Losses and metrics: stack "
        "them into one tensor and all_reduce(async_op=True) it every N steps; Lightning: "
        "self.log(sync_dist=False) in training_step. Megatron-LM: --timing-log-level 0, "
        "--no-barrier-with-level-1-timing, a larger --log-interval. "
        "DeepSpeed: wall_clock_breakdown=false."
    ),
    verify="Record again: no barrier in a step, and the next collective does not wait instead.",
    refuted_by="the next collective takes longer by as much: another rank is late",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for barriers that are exposed, or that leave the device idle."""
    work, chosen = facts.model.work, _barriers(facts, limits)
    named = ranges(facts, _is_barrier)
    claims = [
        claim((work.ts_ns[chosen], work.end_ns[chosen]), LEAVES, low=0.0, high=1.0),
        claim(_idle_by(facts, chosen, named), HOST_IDLE, low=0.0, high=1.0),
    ]
    lost = at_most(facts, claims[0]) + at_most(facts, claims[1])
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Barriers hold up the device for {share:.1%} of the time.")
    if (lost[facts.trusted] > 0).sum() < min(limits["often"], facts.trusted.sum()):
        return DIAGNOSIS.quiet("A barrier holds up the device in one of several steps only.")
    most, proof = _proof(facts, chosen, named)
    why = (
        f"Barriers and reductions of one element hold up the device for "
        f"{spell(per_step(facts, lost))} of a step ({share:.0%}). {most}"
    )
    return DIAGNOSIS.fires(why, claims, [proof])


def _is_barrier(name: str) -> bool:
    return BARRIER.search(name) is not None


def _barriers(facts: RankFacts, limits: Limits) -> Bools:
    """(work,) collectives that only synchronise."""
    work = facts.model.work
    tiny = (work.bytes >= 0) & (work.bytes <= limits["tiny"])
    named = facts.origins.under(_is_barrier)
    return collectives(facts, "barrier") | (collectives(facts, *MOVABLE) & (tiny | named))


def _idle_by(facts: RankFacts, chosen: Bools, named: Bools) -> Intervals:
    """While the host stands in a barrier, and from the end of one on the device until more runs."""
    starts, ends = facts.idle_gaps
    after = np.isin(starts, facts.model.work.end_ns[chosen])
    return joined(union_of(facts.model.hosts, named), (starts[after], ends[after]))


def _proof(facts: RankFacts, chosen: Bools, named: Bools) -> tuple[str, Proof]:
    """A sentence on the ranges of barriers, or where there are none on the collectives."""
    if not named.any():
        return heaviest(facts, chosen)
    name, total, count, proof = longest_range(facts, named)
    return f"{count} times {name!r}, {spell(total)} on the host in all.", proof
