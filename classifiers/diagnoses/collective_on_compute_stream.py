"""Collectives on the stream of the kernels: they cannot overlap.

What it finds:
    A stream that carries both the kernels of the model and collectives.

Why it costs time:
    Work of one stream runs in order. A collective on the stream of the kernels stops them for its
    whole length, whatever could have been computed meanwhile.

How it is told apart:
    By the lane of both. Streams that carry less than a tenth of the compute time (casts beside a
    collective) are no streams of compute. Barriers, and sends and receives between the stages of a
    pipeline, would wait on any stream: they have findings of their own. Kernels for small messages
    (one-shot all-reduces of inference) are left out: the next kernel needs what they bring.

Example:
    Four times a matrix product of 100 us and an all-reduce of 150 us, all on stream 7.

What to do:
    Give collectives a stream of their own, and wait for them only where their result is used.
    Saved at most: as much as there is compute that could run meanwhile.

References:
    https://github.com/pytorch/pytorch/pull/150398
    https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations
    https://github.com/openxla/xla/issues/14397
"""

import numpy as np

from perfdiag.classifiers.diagnoses._overlap import (
    COMPUTE_LANE,
    HIDDEN,
    MOVABLE,
    collectives,
    exposed,
    for_small_messages,
)
from perfdiag.classifiers.diagnoses._shared import (
    ask,
    count_of,
    lane_name,
    longest,
    per_step,
    share_of,
    spell,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits
from perfdiag.classifiers.facts import RankFacts

DIAGNOSIS = Diagnosis(
    id="collective_on_compute_stream",
    layer="collectives",
    title="Collectives share the stream of the kernels and cannot overlap",
    title_ok="Collectives have streams of their own",
    needs=("device",),
    confidence=0.8,
    thresholds={"share": MATERIAL, "hidden": HIDDEN, "compute_lane": COMPUTE_LANE},
    how=(
        "torch.distributed: async_op=True and work.wait() where the result is used; from PyTorch "
        "2.8 on a call with async_op=False runs on the current stream. Own NCCL calls: a "
        "torch.cuda.Stream for them, tied by events. JAX: "
        "--xla_gpu_enable_latency_hiding_scheduler=true in XLA_FLAGS."
    ),
    verify="Record again: the collectives lie on another stream, and part of them under kernels.",
    refuted_by="the very next kernel needs the result of each collective",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for collectives on the lanes of compute."""
    here = collectives(facts, *MOVABLE, on_compute_lanes=True, least=limits["compute_lane"])
    here &= ~for_small_messages(facts)
    found = exposed(facts, here)
    if not len(found.rows):
        return DIAGNOSIS.quiet("No stream carries both kernels and collectives.")
    share = share_of(facts, found.time_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Collectives among kernels take {share:.1%} of the time.")
    work = facts.model.work
    length = facts.length_ns[found.rows]
    lane = int(np.argmax(np.bincount(work.lane[found.rows], length)))
    mine = work.kind.where("collective") & (work.lane == lane)
    total = int(facts.length_ns[mine].sum())
    why = (
        f"The kernels and {count_of(int(mine.sum()), 'collective')} share "
        f"{lane_name(facts, lane)}: these take {spell(total)} in the trace and stop the kernels "
        f"for {spell(per_step(facts, found.time_ns))} of a step ({share:.0%})."
    )
    return DIAGNOSIS.fires(
        why,
        [found.claim(limits["hidden"] * found.hideable, found.hideable)],
        [ask("ns", total, "perfdiag_lane_work_ns", lane, "collective", spots=longest(work, mine))],
    )
