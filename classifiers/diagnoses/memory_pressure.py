"""The job runs at the limit of the device's memory.

What it finds:
    Allocations that fail at first: the allocator gives back all that it keeps, waits for the
    device meanwhile, and tries again. PyTorch counts them as `num_alloc_retries`.

Why it costs time:
    Each release waits until the device has finished what was launched. After a retry nothing is
    kept, so that the next operators allocate from the driver again, until memory is full again.

How it is told apart:
    By the order of the calls: within one operator an allocation, releases, and another
    allocation, with no launch between, in at least two steps after the first. An
    `empty_cache()` in the loop releases as well, but outside an operator.

Example:
    In each step a `cudaMalloc` fails, thirty `cudaFree` follow, and a second `cudaMalloc` succeeds.

What to do:
    Need less memory, or lose less of it between segments: headroom of a few per cent of the
    device is enough. What the steps allocate beside the retries is saved as well.

References:
    https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
    https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    https://docs.pytorch.org/docs/stable/checkpoint.html
"""

import numpy as np

from perfdiag.classifiers.diagnoses._allocation import (
    REPEATED,
    allocating,
    retries,
    steps_at_the_limit,
)
from perfdiag.classifiers.diagnoses._calls import stalls
from perfdiag.classifiers.diagnoses._figures import longest_call
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

REMAINS = Threshold(
    0.5, "share", "a choice: with little headroom half of the allocations still reach the driver"
)

DIAGNOSIS = Diagnosis(
    id="memory_pressure",
    layer="hardware",
    title="The allocator runs at the limit of device memory",
    title_ok="No allocation is tried twice in steps",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "repeated": REPEATED, "remains": REMAINS},
    how=(
        "First PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PyTorch 2.1 or later), which "
        "loses less between segments. Then need less: a smaller micro-batch with accumulation, "
        "torch.utils.checkpoint.checkpoint(..., use_reentrant=False) (1.11 or later), "
        "fully_shard(model) (2.6 or later). DeepSpeed: ZeRO stage 2 or 3; Megatron-LM: "
        "--recompute-activations, --use-distributed-optimizer; JAX: jax.checkpoint()."
    ),
    verify=(
        "torch.cuda.memory_stats()['num_alloc_retries'] stays at 0; recorded again, no release "
        "lies in a step."
    ),
    refuted_by="'num_alloc_retries' does not grow: something else releases memory in the operator",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for steps in which allocations are tried again."""
    steps = steps_at_the_limit(facts, limits["repeated"])
    if not steps.any():
        return DIAGNOSIS.quiet("No allocation is tried again in steps after the first.")
    chosen, retried = allocating(facts), retries(facts)
    found = stalls(facts, union_of(facts.model.calls, chosen), steps)
    share = share_of(facts, found.lost_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Allocations hold up the device for {share:.1%} of the time.")
    name, total, count, proof = longest_call(facts, np.asarray(chosen & retried))
    why = (
        f"In {count_of(int(steps.sum()), 'step')} of {len(steps)} an allocation is tried again "
        f"after memory was given back, and the device is idle for "
        f"{spell(per_step(facts, found.lost_ns))} of a step ({share:.0%}) under and after such "
        f"calls; most of their time is {name}: {count_of(count, 'call')}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, found.claims(1.0 - limits["remains"]), [proof])
