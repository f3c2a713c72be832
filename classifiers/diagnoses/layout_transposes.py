"""Kernels that only change the layout of a tensor.

What it finds:
    Transposes that a library of convolutions puts around its kernels (NCHW to NHWC and back), and
    copies of tensors whose strides do not suit the next operator.

Why it costs time:
    A transpose reads the tensor and writes it again, without a result that was not there before.
    Tensor cores want channels last: a model that keeps channels first pays at each convolution.

How it is told apart:
    By kernels whose names say that they transpose, and by copy kernels of `aten::contiguous`,
    `aten::clone`, `aten::reshape`, `aten::matmul` and the like: a copy of equal strides would be a
    memcpy. Casts are none, nor transposes that low precision needs. Only time in which no kernel
    bound by arithmetic runs is claimed.

Example:
    A ResNet in channels_first, whose convolutions run as NHWC kernels between two transposes.

What to do:
    Keep the whole network in the layout of its kernels. For copies, choose the order of dimensions
    (of an einsum, of the heads in attention) so that the next operator takes what there is. All of
    a library's transposes go but for layers that it supports in one layout only; copies may be
    needed by another operator, so that at worst nothing of them is saved.

References:
    https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
    https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html
    https://docs.mosaicml.com/projects/composer/en/stable/method_cards/channels_last.html
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._moving import strided_copies
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    idle_before,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

# Transposed copies of 8-bit operands (Hopper multiplies only one layout) and swizzled scales.
_NEEDED = ("transformer_engine", "fp8", "float8", "mxfp", "swizzle", "dequant")

ONE_LAYOUT = Threshold(
    0.5, "share", "a choice: half of the transposes are for layers with kernels in one layout only"
)

DIAGNOSIS = Diagnosis(
    id="layout_transposes",
    layer="compiler",
    title="Kernels that only change layouts",
    title_ok="Few kernels that only change layouts",
    needs=("device",),
    confidence=0.7,
    thresholds={"share": MATERIAL, "one_layout": ONE_LAYOUT},
    how=(
        "Convolutions: model.to(memory_format=torch.channels_last) and the same for the input "
        "(PyTorch 1.5 or later); on ROCm with PYTORCH_MIOPEN_SUGGEST_NHWC=1 and, for the norms, "
        "PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM=1. JAX: lax.conv_general_dilated("
        "dimension_numbers=('NHWC', 'HWIO', 'NHWC')). Copies: drop .contiguous() before operators "
        "that take strides (F.scaled_dot_product_attention(..., enable_gqa=True) from PyTorch "
        "2.5), and write einsums in the order in which their result is used."
    ),
    verify="Record again: no nchwToNhwc or batched_transpose kernels lie around the convolutions.",
    refuted_by="the convolutions get slower in channels_last by more than the transposes take",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for time in kernels that only change layouts."""
    work = facts.model.work
    transposes, copies = _transposes(facts), strided_copies(facts)
    chosen = transposes | copies
    time = leaf_in(facts, union_of(work, chosen), "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Kernels that only change layouts take {share:.1%} of the time.")
    name, total, number, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(int(transposes.sum()), 'transpose')} and "
        f"{count_of(int(copies.sum()), 'copy', 'copies')} into other strides take "
        f"{spell(per_step(facts, time))} of a step ({share:.0%}): the longest is {brief(name)!r}, "
        f"which runs {count_of(number, 'time')} for {spell(total)} in the trace."
    )
    gone = 1.0 - limits["one_layout"]
    claims = [
        claim(union_of(work, transposes), ["memory_kernel"], low=gone, high=1.0),
        claim(union_of(work, copies), ["memory_kernel"], low=0.0, high=1.0),
        claim(idle_before(facts, copies), ["launch"], low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _transposes(facts: RankFacts) -> NDArray[np.bool_]:
    """(work,) the transposes of libraries and of code, but for those that low precision needs."""
    work = facts.model.work
    needed = work.name.map(lambda name: any(part in name.lower() for part in _NEEDED), np.bool_)
    return np.asarray(facts.kernels & work.family.where("layout") & ~needed, np.bool_)
