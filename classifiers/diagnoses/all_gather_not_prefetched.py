"""All-gathers of parameters that no compute hides: they are not fetched ahead.

What it finds:
    Time in which an all-gather runs, on another stream than the kernels, and no kernel runs.

Why it costs time:
    FSDP and ZeRO-3 collect the parameters of a layer just before it computes. Where the gather of
    the next layer is issued only when this one is done, every layer waits for its parameters.

How it is told apart:
    By the operation and its stream; what lies under kernels is not counted. What runs before the
    first kernel of a step that is bound by arithmetic has nothing to hide behind and is left out.
    The trace of one rank cannot tell transfer from waiting for a late rank, nor parameters from
    activations that tensor parallelism gathers.

Example:
    Four layers, each an all-gather of 100 us and then 150 us of kernels, one after the other.

What to do:
    Issue the gather of the next layer before this one computes, in forward and in backward, which
    costs the memory of one more layer. Compute that hides none yet can hide at most its length.

References:
    https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
    https://docs.pytorch.org/docs/stable/fsdp.html
    https://www.deepspeed.ai/docs/config-json/
"""

import numpy as np

from perfdiag.classifiers.diagnoses._overlap import (
    COMPUTE_LANE,
    HIDDEN,
    Bools,
    collectives,
    exposed,
    heaviest,
)
from perfdiag.classifiers.diagnoses._shared import per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits
from perfdiag.classifiers.facts import RankFacts

DIAGNOSIS = Diagnosis(
    id="all_gather_not_prefetched",
    layer="collectives",
    title="Parameters are gathered while nothing computes",
    title_ok="Compute hides the all-gathers",
    needs=("device",),
    confidence=0.6,
    thresholds={"share": MATERIAL, "hidden": HIDDEN, "compute_lane": COMPUTE_LANE},
    how=(
        "FSDP: backward_prefetch=BackwardPrefetch.BACKWARD_PRE (PyTorch 1.12), "
        "forward_prefetch=True (1.13) and limit_all_gathers=False where memory allows. FSDP2: "
        "set_modules_to_forward_prefetch() and set_modules_to_backward_prefetch() (2.6), one "
        "fully_shard() a block, reshard_after_forward=False where memory allows. DeepSpeed ZeRO-3: "
        "overlap_comm=true, a larger stage3_prefetch_bucket_size and stage3_max_live_parameters. "
        "Megatron: --overlap-param-gather, for sequence parallelism --tp-comm-overlap. JAX: "
        "--xla_gpu_enable_latency_hiding_scheduler=true in XLA_FLAGS."
    ),
    verify="Record again: each all-gather starts while the layer before it computes.",
    refuted_by="the traces of the other ranks show that this one only waits for them",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for all-gathers that run alone on their streams."""
    gathers = collectives(facts, "all_gather", on_compute_lanes=False, least=limits["compute_lane"])
    here = gathers & ~_before_compute(facts)
    found = exposed(facts, here)
    if not len(found.rows):
        return DIAGNOSIS.quiet("No all-gather, on a stream of its own, that compute could hide.")
    share = share_of(facts, found.time_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"All-gathers are exposed for {share:.1%} of the time.")
    most, proof = heaviest(facts, here)
    why = (
        f"All-gathers run for {spell(per_step(facts, found.time_ns))} of a step ({share:.0%}) "
        f"while nothing computes (may include waiting for other ranks). {most}"
    )
    low = limits["hidden"] * found.hideable
    return DIAGNOSIS.fires(why, [found.claim(low, found.hideable, found.hideable)], [proof])


def _before_compute(facts: RankFacts) -> Bools:
    """(work,) what starts before the first kernel of its step that arithmetic bounds."""
    work, steps = facts.model.work, facts.model.steps
    bound = facts.kernels & work.bound.where("compute")
    first = np.append(work.ts_ns[bound if bound.any() else facts.kernels], steps.end_ns[-1])
    step = np.searchsorted(steps.ts_ns, work.ts_ns, "right") - 1
    begun = np.sort(first)[np.searchsorted(np.sort(first), steps.ts_ns).clip(max=len(first) - 1)]
    return np.asarray(work.ts_ns < begun[np.maximum(step, 0)], np.bool_)
