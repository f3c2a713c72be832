"""Device memory is nearly full, and the allocator goes to the driver in every step.

What it finds:
    Idle time of the device under allocations and releases of memory that recur from step to step,
    while counters say that hardly any memory is free.

Why it costs time:
    An allocator that keeps what it has once got needs the driver no more after the first steps. If
    memory is short it cannot keep: it gives segments back, which waits for the device, and gets
    others, which takes longer than a launch.

How it is told apart:
    By counters sampled beside the trace (`--counters`): memory in use, of all processes, against
    that of the device. The same calls with memory to spare have another cause, such as an
    `empty_cache()` in the loop: `allocator_storm`. Full memory without such calls costs no time.

Example:
    78 of 79 GiB are in use, and each step allocates and releases for 400 us.

What to do:
    See whether another process holds memory of this device. Else need less, or lose less between
    segments.

References:
    https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
    https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
"""

from perfdiag.classifiers.diagnoses._allocation import REPEATED, allocating, recurs
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
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

FULL = Threshold(
    0.95, "share of the device's memory", "a choice: contexts and NCCL's buffers take 1 to 3 %"
)
REMAINS = Threshold(
    0.5, "share", "a choice: with little headroom half of the allocations still reach the driver"
)

DIAGNOSIS = Diagnosis(
    id="memory_nearly_full",
    layer="hardware",
    title="Device memory is nearly full",
    title_ok="Device memory has room",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "full": FULL, "repeated": REPEATED, "remains": REMAINS},
    how=(
        "nvidia-smi --query-compute-apps=pid,used_memory --format=csv: is it this job that holds "
        "the memory? Then PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PyTorch 2.1 or later); "
        "a smaller micro-batch with accumulation, torch.utils.checkpoint.checkpoint(), "
        "fully_shard(model) (2.6 or later). JAX: XLA_PYTHON_CLIENT_MEM_FRACTION= leaves room for "
        "others, jax.checkpoint() needs less."
    ),
    verify="Sample again: a twentieth of the memory is free, and no step asks the driver for more.",
    refuted_by="the calls stay when the batch is half as large",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for allocations in steps while hardly any memory is free."""
    part = _used_share(facts)
    if part is None:
        return DIAGNOSIS.not_applicable("No counters of memory in use: give them with --counters.")
    chosen = allocating(facts)
    steps = (count_by_step(facts, facts.model.calls, chosen) > 0) & after_the_first(facts)
    if part < limits["full"] or not recurs(steps, limits["repeated"]):
        return DIAGNOSIS.quiet(
            f"{part:.0%} of the device's memory is in use, and {count_of(int(steps.sum()), 'step')}"
            f" of {len(steps)} after the first allocate from the driver."
        )
    found = stalls(facts, union_of(facts.model.calls, chosen), steps)
    share = share_of(facts, found.lost_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Allocations hold up the device for {share:.1%} of the time.")
    name, total, count, proof = longest_call(facts, chosen)
    why = (
        f"{part:.0%} of the device's memory is in use, and the device is idle for "
        f"{spell(per_step(facts, found.lost_ns))} of a step ({share:.0%}) under and after "
        f"allocations and releases in {count_of(int(steps.sum()), 'step')} of {len(steps)}; most "
        f"of their time is {name}: {count_of(count, 'call')}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, found.claims(1.0 - limits["remains"]), [proof])


def _used_share(facts: RankFacts) -> float | None:
    """Memory in use, of all of the device: the largest decile in the steps; None without it."""
    counters = facts.counters
    if counters is None:
        return None
    told = counters.figure("memory_used_share", windows(facts))
    used = counters.figure("memory_used", windows(facts))
    whole = counters.most("memory_total") or facts.memory_bytes
    if used is not None and whole:
        return used.p90 / whole
    return None if told is None else told.p90
