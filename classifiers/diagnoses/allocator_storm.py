"""The allocator asks the driver for memory in every step.

What it finds:
    Idle time of the device under calls that allocate or release memory (`cudaMalloc`, `cudaFree`,
    `hipMalloc`, `cuMemCreate`, pinned memory of the host), in steps after the first, and the time
    until work arrives again after one under which the device ran dry.

Why it costs time:
    Such a call takes 10 us to some milliseconds on the host, and a release waits until the device
    has finished everything that was launched. An allocator that keeps its memory calls the driver
    in the first step only.

How it is told apart:
    By steps: what is allocated in the first step, or only in the first half of the trace, is
    start-up. Calls under a full queue cost nothing. Steps in which an allocation failed and was
    tried again lack memory, and are `memory_pressure`.

Example:
    `torch.cuda.empty_cache()` at the end of each step: ten `cudaFree` there, and ten `cudaMalloc`
    of 200 us in the next step.

What to do:
    Let the allocator keep what it has, and let it extend its segments instead of making new ones
    for each size. Where shapes change from step to step, pad them to a few sizes.

References:
    https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._allocation import (
    REPEATED,
    allocating,
    recurs,
    steps_at_the_limit,
)
from perfdiag.classifiers.diagnoses._calls import after_the_first, stalls
from perfdiag.classifiers.diagnoses._figures import longest_call
from perfdiag.classifiers.diagnoses._shared import (
    count_by_step,
    count_of,
    per_step,
    share_of,
    spell,
    union_of,
    windows,
    within,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

Bools = NDArray[np.bool_]

STARTS = 1.5
"""Times as long as in any later step that calls take in a first one which starts up; a choice."""

REMAINS = Threshold(
    0.5, "share", "a choice: half of the calls serve sizes that no kept memory fits, at worst"
)

DIAGNOSIS = Diagnosis(
    id="allocator_storm",
    layer="runtime",
    title="Memory is allocated from the driver in every step",
    title_ok="No allocation that the device waits for",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "repeated": REPEATED, "remains": REMAINS},
    how=(
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PyTorch 2.1 or later); take "
        "torch.cuda.empty_cache() and gc.collect() out of the loop; pad batches to a few fixed "
        "shapes; pin buffers of the host once, not in each step; TORCH_NCCL_AVOID_RECORD_STREAMS=1 "
        "(2.1 to 2.7, the default since) frees the memory of collectives sooner. Libraries that "
        "allocate for themselves: give them a workspace, or cudaMallocAsync (CUDA 11.2 or later). "
        "JAX: keep XLA_PYTHON_CLIENT_PREALLOCATE=true."
    ),
    verify=(
        "Record again: no allocating call lies in a step after the first, and "
        "torch.cuda.memory_stats()['num_device_alloc'] no longer grows."
    ),
    refuted_by="the calls vanish after more steps of warm-up: then it is start-up",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time under allocations that recur."""
    chosen = allocating(facts)
    if not chosen.any():
        return DIAGNOSIS.quiet("No allocation by a thread that launches work.")
    counts = count_by_step(facts, facts.model.calls, chosen)
    settled = _settled(facts, chosen) & ~steps_at_the_limit(facts, limits["repeated"])
    if not recurs(settled & (counts > 0), limits["repeated"]):
        return DIAGNOSIS.quiet(
            f"{count_of(int(chosen.sum()), 'call')} to allocate or release memory: no habit of the "
            "steps after the first that have memory left."
        )
    found = stalls(facts, union_of(facts.model.calls, chosen), settled)
    share = share_of(facts, found.lost_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Allocations hold up the device for {share:.1%} of the time.")
    name, total, count, proof = longest_call(facts, chosen)
    why = (
        f"The device is idle for {spell(per_step(facts, found.lost_ns))} of a step ({share:.0%}) "
        f"under and after calls that allocate or release memory, {per_step(facts, counts):.1f} a "
        f"step; most of their time is {name}: {count_of(count, 'call')}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, found.claims(1.0 - limits["remains"]), [proof])


def _settled(facts: RankFacts, chosen: Bools) -> Bools:
    """(steps,) all but a first one that starts up: in which such calls take longer than ever after.

    A trace that begins in the middle of a job has none.
    """
    settled = after_the_first(facts)
    time = within(union_of(facts.model.calls, chosen), windows(facts))
    settled[0] = len(time) > 1 and time[0] <= STARTS * time[1:].max()
    return settled
