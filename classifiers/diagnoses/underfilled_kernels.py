"""Kernels too small to fill the device.

What it finds:
    Short kernels that reach less than a tenth of either roof, compute and memory, and take a good
    part of the step together.

Why it costs time:
    A kernel takes some microseconds however little it does: blocks are started, the first bytes
    come from memory, the last block ends. With too few blocks most of the device stands by.

How it is told apart:
    By the operators' recorded sizes, which give FLOPs and bytes, and the kernels' durations. Longer
    kernels far below both roofs are slow rather than small. Sorting, indexing and the like move
    more than the least that a cost model counts, and are left out. The idle time between such
    kernels is `launch_bound_small_kernels`.

Example:
    Matrix products of 128 x 1024 x 1024 in 15 us: 2 % of what an H100 computes.

What to do:
    Give each kernel more to do. Twice the batch takes the same time while kernels are this far from
    their roofs, which halves the time of each sample; at best they become as good as a filled
    kernel, at 60 % of the nearer roof.

References:
    https://docs.nvidia.com/deeplearning/performance/dl-performance-gpu-background/index.html
    https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html
    https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._roofs import KERNEL_LEAVES, NO_ROOF, roofs_of
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

FAMILIES = (
    *("gemm", "gemv", "convolution", "depthwise_convolution", "attention", "attention_decode"),
    *("elementwise", "fused_elementwise", "fused_reduction", "norm", "softmax", "reduction"),
    *("copy", "fill", "layout", "loss", "pooling", "splitk_reduce"),
)
"""Whose cost models count what such a kernel has to do."""

PART = Threshold(
    0.1, "share of the steps", "a choice: every job has a few small kernels, which nobody can fill"
)
LONG = Threshold(
    50_000, "ns", "a choice: ten times the shortest kernels of public traces (2 to 5 us)"
)
TWOFOLD = Threshold(0.5, "share", "a choice: a batch twice as large, in the same time")
FILLED = Threshold(
    0.6, "share of the roof", "Nsight Compute: below 60 % of either roof latency bounds a kernel"
)

DIAGNOSIS = Diagnosis(
    id="underfilled_kernels",
    layer="framework",
    title="Kernels are too small to fill the device",
    title_ok="Few kernels are too small to fill the device",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={
        "share": MATERIAL,
        "part": PART,
        "long": LONG,
        "twofold": TWOFOLD,
        "filled": FILLED,
    },
    how=(
        "A larger batch (DataLoader(batch_size=...), fewer steps of gradient accumulation), "
        "requests served together (vLLM --max-num-seqs), several models or samples in one "
        "torch.vmap(...) or batched product (torch.bmm, PyTorch 2.0 or later), small products as "
        "one grouped product. JAX: jax.vmap(...)."
    ),
    verify="Record again: the same kernels take hardly longer for twice the samples.",
    refuted_by="twice the batch takes twice the time",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for short kernels far below both roofs."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    work = facts.model.work
    chosen = roofs.bound_by(Bound.UNDERFILLED) & work.family.where(*FAMILIES)
    chosen &= facts.length_ns <= limits["long"]
    time = leaf_in(facts, union_of(work, chosen), *KERNEL_LEAVES)
    part = share_of(facts, time)
    if part < max(limits["part"], limits["share"]):
        return DIAGNOSIS.quiet(f"Kernels too small for the device take {part:.1%} of the time.")
    rows = np.flatnonzero(chosen)
    reached = roofs.nearer[rows]
    mean = float(np.average(reached, weights=facts.length_ns[rows]))
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(len(rows), 'kernel')} far below both roofs take "
        f"{spell(per_step(facts, time))} of a step ({part:.0%}) and reach {mean:.1%} of the nearer "
        f"one. {brief(name)!r} alone runs {count_of(count, 'time')}, {spell(total)} in all."
    )
    high = np.maximum(1.0 - reached / limits["filled"], 0.0)
    spans = (work.ts_ns[rows], work.end_ns[rows])
    one = claim(spans, KERNEL_LEAVES, low=np.minimum(1.0 - limits["twofold"], high), high=high)
    return DIAGNOSIS.fires(why, [one], [proof])
