"""Reductions on a stream of their own that no compute hides.

What it finds:
    Time in which gradients are reduced, on another stream than the kernels, and no kernel runs.
    Collectives of which the trace does not say what they do, and broadcasts of buffers, count.

Why it costs time:
    Gradients can travel while other layers compute. What travels when nothing is left to compute
    makes the step longer by its whole length.

How it is told apart:
    Compute and collectives are unions over the device: what overlaps is not counted. Collectives
    on a stream that also carries kernels are the finding `collective_on_compute_stream`; gathers,
    exchanges, sends and barriers have findings of their own. The trace of one rank cannot tell
    transfer from waiting for a late rank.

Example:
    One all-reduce of 1.2 GB after the backward pass: 12 of 15 ms.

What to do:
    Start reductions earlier and in smaller pieces, send fewer bytes, or give each more compute.
    Compute that hides none yet can hide at most its own length; the rest only shrinks with the
    bytes.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html
    https://arxiv.org/abs/2006.15704
"""

import numpy as np

from perfdiag.classifiers.diagnoses._overlap import (
    COMPUTE_LANE,
    HIDDEN,
    collectives,
    exposed,
    heaviest,
)
from perfdiag.classifiers.diagnoses._shared import leaf_ns, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

REDUCING = ("all_reduce", "reduce_scatter", "reduce", "broadcast", "unknown")

HALF = ("bfloat16", "half", "float16", "bf16", "byte", "char", "float8_e4m3fn", "float8_e5m2")
"""Types of numbers, in lower case, that a hook cannot halve."""

FEWER_BYTES = Threshold(
    0.5,
    "share of the time",
    "bf16_compress_hook halves gradients of fp32: docs.pytorch.org/docs/stable/ddp_comm_hooks",
)

DIAGNOSIS = Diagnosis(
    id="exposed_all_reduce",
    layer="collectives",
    title="Gradients are reduced while nothing computes",
    title_ok="Compute hides the reductions",
    needs=("device",),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "hidden": HIDDEN,
        "compute_lane": COMPUTE_LANE,
        "fewer_bytes": FEWER_BYTES,
    },
    how=(
        "DDP: no single reduction after backward(), bucket_cap_mb tuned (25 by default), "
        "gradient_as_bucket_view=True (PyTorch 1.7 or later), static_graph=True (1.11), no_sync() "
        "while gradients accumulate, broadcast_buffers=False where no layer needs them, and a "
        "bf16_compress_hook (1.10) for half the bytes. FSDP: MixedPrecision(reduce_dtype=bfloat16) "
        "(1.12). DeepSpeed: overlap_comm=true. Megatron: --overlap-grad-reduce. JAX: "
        "--xla_gpu_enable_latency_hiding_scheduler=true in XLA_FLAGS."
    ),
    verify=(
        "Record all ranks and look at them together: exposed reductions shrink. If one rank "
        "arrives late everywhere, its cause comes first."
    ),
    refuted_by="the traces of the other ranks show that this one only waits for them",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for reductions that run alone on their streams."""
    here = collectives(facts, *REDUCING, on_compute_lanes=False, least=limits["compute_lane"])
    found = exposed(facts, here)
    if not len(found.rows):
        return DIAGNOSIS.quiet("No reductions on streams of their own.")
    share = share_of(facts, found.time_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Reductions are exposed for {share:.1%} of the time.")
    most, proof = heaviest(facts, here)
    unsplit = leaf_ns(facts, "collective_unsplit").any()
    doubt = " (may include waiting for other ranks)" if unsplit else ""
    why = (
        f"Reductions run for {spell(per_step(facts, found.time_ns))} of a step ({share:.0%}) "
        f"while nothing computes{doubt}. {most}"
    )
    fewer = limits["fewer_bytes"] * (1.0 - _in_half(facts, found.rows))
    high = found.hideable + (1.0 - found.hideable) * fewer
    return DIAGNOSIS.fires(why, [found.claim(limits["hidden"] * found.hideable, high)], [proof])


def _in_half(facts: RankFacts, rows: Int64s) -> float:
    """Share of the reductions' time that is known to carry 16 bits a number or fewer already."""
    half = facts.model.work.dtype.map(lambda name: name.lower() in HALF, np.bool_)[rows]
    length = facts.length_ns[rows]
    return float(length[half].sum() / max(1, length.sum()))
