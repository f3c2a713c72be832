"""Transposes and copies far slower than the memory allows.

What it finds:
    Kernels that copy, transpose or permute tensors and reach less than half of the bandwidth that
    other kernels of the same trace reach.

Why it costs time:
    A transpose that reads along one dimension and writes along another touches a whole sector of
    memory for a few bytes of it. A kernel that goes through a tile on the chip does not.

How it is told apart:
    By the operators' recorded sizes, which give the bytes, and the kernels' durations, against the
    kernels bound by memory that are no copies. Short kernels reach no bandwidth in any case and are
    not looked at. Whether the copies are needed at all is `layout_transposes`.

Example:
    A copy of 128 MiB into other strides in 400 us, a quarter of the bandwidth of the additions
    beside it.

What to do:
    Copy in an order in which one side is contiguous, or let a compiler write the kernel. Saved is
    the time down to the bandwidth that the other kernels reach; half of that at worst.

References:
    https://developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc/
    https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
    https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#coalesced-access-to-global-memory
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._roofs import NO_ROOF, roofs_of, weighted_quantile
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.roofline import Bound

MOVING = ("copy", "layout")
STREAMING = ("elementwise", "fused_elementwise", "norm", "optimizer")
"""Families whose kernels read and write in order."""

FAR = Threshold(
    0.5, "share of the others' bandwidth", "a choice: far outside of what sizes explain"
)
SHORT = Threshold(
    20_000, "ns", "a choice: ten times the shortest kernels of public traces, which fill no memory"
)
GOOD = Threshold(0.75, "quantile", "a choice: a quarter of the others' time runs at more")
SURE = Threshold(0.5, "share", "a choice: for some orders there is no kernel as fast")

DIAGNOSIS = Diagnosis(
    id="slow_layout_kernels",
    layer="kernels",
    title="Copies and transposes are far slower than the memory",
    title_ok="Copies and transposes are as fast as the memory",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={"share": MATERIAL, "far": FAR, "short": SHORT, "good": GOOD, "sure": SURE},
    how=(
        "torch.compile (PyTorch 2.0 or later) around the copy, or tensor.contiguous() with the "
        "innermost dimension kept in place; swap only outer dimensions (heads and sequence, not "
        "the head's size); memory_format=torch.channels_last from the input on. Triton or CUDA: "
        "transpose through shared memory. JAX: jnp.einsum(...) in the order that is stored."
    ),
    verify="Record again with record_shapes=True: the roofline shows the copies near the others.",
    refuted_by="a copy of the same tensor into the same strides is as slow alone",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for copies that other kernels' bandwidth leaves far behind."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    work, bandwidth = facts.model.work, roofs.line.memory_share
    long = facts.length_ns >= limits["short"]
    others = roofs.bound_by(Bound.MEMORY) & work.family.where(*STREAMING) & long
    reached = weighted_quantile(bandwidth[others], facts.length_ns[others], limits["good"])
    moving = roofs.bound_by(Bound.MEMORY, Bound.UNDERFILLED) & work.family.where(*MOVING) & long
    chosen = moving & (bandwidth < limits["far"] * reached)
    time = leaf_in(facts, union_of(work, chosen), "memory_kernel")
    part = share_of(facts, time)
    if part < limits["share"]:
        return DIAGNOSIS.quiet(f"Copies far slower than other kernels take {part:.1%} of the time.")
    rows = np.flatnonzero(chosen)
    mean = float(np.average(bandwidth[rows], weights=facts.length_ns[rows]))
    worst = longest_op(facts, chosen)
    why = (
        f"{count_of(len(rows), 'copy', 'copies')} take {spell(per_step(facts, time))} of a step "
        f"({part:.0%}) at {mean:.0%} of the memory's bandwidth; other kernels reach "
        f"{reached:.0%}. " + worst.launches()
    )
    high = 1.0 - bandwidth[rows] / reached
    spans = (work.ts_ns[rows], work.end_ns[rows])
    one = claim(spans, ["memory_kernel"], low=limits["sure"] * high, high=high)
    return DIAGNOSIS.fires(why, [one], [worst.proof])
