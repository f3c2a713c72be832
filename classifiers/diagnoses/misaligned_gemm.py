"""Matrix products whose dimensions do not fit the matrix units.

What it finds:
    Matrix products in half precision or TF32 whose kernels load one, two or four numbers at a time,
    because a dimension is no multiple of 16 bytes: 8 numbers of 16 bits, 4 of 32.

Why it costs time:
    A row that does not start at a multiple of 16 bytes cannot be loaded 16 bytes at a time. The
    library falls back to a kernel with narrow loads, often one for an older architecture, that
    keeps the matrix units waiting.

How it is told apart:
    CUTLASS, cuBLAS and TensorRT write the alignment into the names of such kernels: `align1`,
    `aligna2_alignc2`, `ldg4`. Kernels without matrix units are named `align1` in any case and
    are not meant. Convolutions pad their channels themselves. ROCm's names do not tell.

Example:
    Attention over 5185 patches (72 x 72 and a class token) in bfloat16: `align1`, 51 TFLOPS on a
    H100. A vocabulary of 50257.

What to do:
    Pad the dimension: vocabulary, hidden size, experts, sequence length. A load of `a` of the 16
    bytes that fit takes 16/a loads for the same data, so at most 1 - a/16 of the time is saved;
    less where arithmetic or memory bounds the kernel, and where the padding must be copied.

References:
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
    https://github.com/pytorch/pytorch/blob/main/torch/profiler/_pattern_matcher.py
    https://github.com/NVIDIA/cutlass/issues/506
"""

import re

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief, by_name, is_half, is_tf32
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

ALIGNMENT = re.compile(
    r"tensorop_\w*gemm\w*_align(\d+)|xmma_gemm_\w*tensor\d\w*_aligna(\d+)_alignc(\d+)|"
    r"\d{3,}gemm_\w*_ldg(\d)"
)

FULL = Threshold(
    16, "bytes", "NVIDIA, Matrix Multiplication Background: tensor cores like multiples of 16 bytes"
)
SURE = Threshold(
    0.25, "share of the bound", "a choice: padding costs copies, and memory may bound the product"
)

PRODUCING = ("compute_kernel", "memory_kernel")
"""Thin products are bound by memory, and loads that are too narrow slow those down as well."""

DIAGNOSIS = Diagnosis(
    id="misaligned_gemm",
    layer="kernels",
    title="Matrix products have dimensions that the matrix units cannot load at once",
    title_ok="Dimensions of matrix products fit the matrix units",
    needs=("device",),
    confidence=0.7,
    thresholds={"share": MATERIAL, "full": FULL, "sure": SURE},
    how=(
        "Pad dimensions to multiples of 8 in half precision, of 4 in TF32 (better 64): "
        "torch.nn.functional.pad, model.resize_token_embeddings(pad_to_multiple_of=64), "
        "collators with pad_to_multiple_of=8; Megatron-LM --make-vocab-size-divisible-by 128. For "
        "sequence lengths in attention scaled_dot_product_attention(...) (PyTorch 2.0 or later), "
        "whose fused kernels need no such padding. torch.compile pads where shape_padding=True."
    ),
    verify="Record again: `align8` (`align4` in TF32), `sm90_xmma` or `nvjet` kernels instead.",
    refuted_by="the product takes as long with the dimension rounded up",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kernels that load less than 16 bytes at once."""
    loads = by_name(facts, ("gemm",), loaded_bytes, np.int64)
    if not loads.any():
        return DIAGNOSIS.quiet("No kernel's name tells how much it loads at once.")
    narrow = (loads > 0) & (loads < limits["full"])
    time = leaf_in(facts, union_of(facts.model.work, narrow), *PRODUCING)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Matrix products with narrow loads take {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, narrow)
    why = (
        f"Matrix products that load less than {limits['full']:.0f} bytes at once take "
        f"{spell(per_step(facts, time))} of a step ({share:.0%}). The longest of them is "
        f"{brief(name)!r}, which loads {loaded_bytes(name)} bytes at once: "
        f"{count_of(count, 'kernel')}, {spell(total)} in all."
    )
    rows = np.flatnonzero(narrow)
    spans = (facts.model.work.ts_ns[rows], facts.model.work.end_ns[rows])
    high = 1.0 - loads[rows] / limits["full"]
    one = claim(spans, PRODUCING, low=limits["sure"] * high, high=high)
    return DIAGNOSIS.fires(why, [one], [proof])


def loaded_bytes(name: str) -> int:
    """How many bytes a matrix product loads at once; 0 where its name does not tell."""
    found = ALIGNMENT.search(name)
    size = 2 if is_half(name) else 4 if is_tf32(name) else 0
    return size * min(int(number) for number in found.groups() if number) if found else 0
