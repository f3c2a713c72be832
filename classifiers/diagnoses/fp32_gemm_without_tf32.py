"""Matrix products and convolutions run in full float32.

What it finds:
    Kernels that multiply matrices in float32, or convolve, on a device whose matrix units take a
    coarser format: TF32 on A100 and later and on MI300, halves on V100, T4 and MI200.

Why it costs time:
    The matrix units of an A100 multiply TF32 at 156 TFLOPS; the cores that are left for float32
    make 19.5. PyTorch has kept matrix products in full float32 since 1.12.

How it is told apart:
    By the names of the kernels (`sgemm`, `simt`, `ffma`, `scudnn`, Tensile's `SB`), and the device
    by the architecture in any kernel's name. Where other products, or other convolutions, use TF32,
    it is switched on and float32 is the library's choice. Names of a Volta kernel prove no V100:
    an A100 runs them too.

Example:
    An A100 that spends 60 % of its step in `ampere_sgemm_128x64_nn`.

What to do:
    Allow TF32, or train in bfloat16. Products bound by arithmetic become up to eight times as fast;
    small tiles (32 rows or columns) are mostly bound by memory and may gain nothing, and a
    convolution may be one for which the library has no better kernel.

References:
    https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
    https://developer.nvidia.com/blog/accelerating-ai-training-with-tf32-tensor-cores/
    https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import (
    PRODUCTS,
    brief,
    by_name,
    is_fp32,
    is_half,
    is_tf32,
    of_half_device,
    of_tf32_device,
    tile,
)
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
from perfdiag.trace_schemas.recording import Int64s

FACTOR = Threshold(
    8.0, "times", "A100 datasheet: 156 TFLOPS in TF32, 19.5 in float32; V100: 125 and 15.7"
)
FACTOR_AMD = Threshold(
    4.0, "times", "MI300X datasheet: 653.7 TFLOPS in TF32, 163.4 in float32; MI250X: 383 and 95.7"
)
LEAST = Threshold(
    2.0, "times", "A10 and L4 datasheets: TF32 is twice as fast as float32 there (62.5, 31.2)"
)
SMALL = Threshold(32, "rows or columns", "a choice: cuBLAS takes such tiles for small products")

DIAGNOSIS = Diagnosis(
    id="fp32_gemm_without_tf32",
    layer="kernels",
    title="Matrix products run in full float32",
    title_ok="Matrix products use a format that the matrix units take",
    needs=("device",),
    confidence=0.7,
    thresholds={
        "share": MATERIAL,
        "factor": FACTOR,
        "factor_amd": FACTOR_AMD,
        "least": LEAST,
        "small": SMALL,
    },
    how=(
        "A100 and later: torch.set_float32_matmul_precision('high') (PyTorch 1.12 or later) and "
        "torch.backends.cudnn.allow_tf32=True; MI300: the same with HIPBLASLT_ALLOW_TF32=1. "
        "V100, T4, MI200: torch.autocast('cuda', dtype=torch.float16) with a GradScaler "
        "(bfloat16 on MI200). JAX: jax.default_matmul_precision('tensorfloat32')."
    ),
    verify="Record again: `tf32`, `s1688` or half-precision kernels stand for `sgemm` and `simt`.",
    refuted_by="the job needs full float32, or the device has no faster TF32 (GeForce 30 and 40)",
)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kernels that multiply in full float32 though the device has something faster."""
    full = by_name(facts, PRODUCTS, is_fp32, np.bool_)
    if not full.any():
        return DIAGNOSIS.quiet("No matrix product runs in full float32.")
    device = _device(facts)
    if not device:
        return DIAGNOSIS.not_applicable("The kernels' names do not tell what the device can do.")
    faster = by_name(facts, PRODUCTS, is_tf32 if device == "TF32" else is_half, np.bool_)
    convolution = _convolutions(facts)
    chosen = _where_it_is_off(full, faster, convolution)
    time = leaf_in(facts, union_of(facts.model.work, chosen), "compute_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Kernels in full float32 take {share:.1%} of the time where {device} is not in use."
        )
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"Kernels in full float32 take {spell(per_step(facts, time))} of a step ({share:.0%}) on a "
        f"device whose matrix units take {device}. The longest of them is {brief(name)!r}: "
        f"{count_of(count, 'kernel')}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, [_claim(facts, chosen, convolution, device, limits)], [proof])


def _device(facts: RankFacts) -> str:
    """What the matrix units take: by the device, else by any kernel's name; '' if neither tells."""
    if facts.peaks is not None and "fp16" in facts.peaks.matrix:
        return "TF32" if "tf32" in facts.peaks.matrix else "half precision"
    for answer, tells in (("TF32", of_tf32_device), ("half precision", of_half_device)):
        if by_name(facts, (*PRODUCTS, "attention"), tells, np.bool_).any():
            return answer
    return ""


def _convolutions(facts: RankFacts) -> Bools:
    """(work,) what a convolution launched; by the kernel's family where no operator is known."""
    by_op = facts.origins.op_is(lambda name: "conv" in name.lower())
    family = facts.model.work.family.where("convolution", "depthwise_convolution")
    return np.asarray(by_op | family, np.bool_)


def _where_it_is_off(full: Bools, faster: Bools, convolution: Bools) -> Bools:
    """(work,) products if none uses the faster format, and convolutions likewise."""
    off = full.copy()
    for kind in (convolution, ~convolution):
        off &= ~kind | ~(faster & kind).any()
    return off


def _claim(
    facts: RankFacts, chosen: Bools, convolution: Bools, device: str, limits: Limits
) -> Claim:
    work, rows = facts.model.work, np.flatnonzero(chosen)
    amd = by_name(facts, PRODUCTS, lambda name: name.startswith("Cijk"), np.bool_)[rows]
    side = by_name(facts, PRODUCTS, tile, np.int64)[rows]
    sure = ~convolution[rows] & ((side == 0) | (side > limits["small"]))
    low = sure * (1.0 - 1.0 / limits["least"])
    high = 1.0 - 1.0 / np.where(amd, limits["factor_amd"], limits["factor"])
    mid = _by_roofs(facts, rows, (low + high) / 2, device)
    bounds = (work.ts_ns[rows], work.end_ns[rows])
    return claim(bounds, ["compute_kernel"], low=np.minimum(low, mid), mid=mid, high=high)


def _by_roofs(facts: RankFacts, rows: Int64s, unknown: Floats, device: str) -> Floats:
    """(rows,) what is saved where arithmetic is as near to its new roof, up to that of memory.

    Args:
        facts: the rank.
        rows: of `Work`.
        unknown: (rows,) where a roof or the cost of a kernel is not known.
        device: what its matrix units take; operands in half precision are half as large.
    """
    tf32 = device == "TF32"
    roofline, costs, peaks = facts.roofline, facts.costs, facts.peaks
    if roofline is None or costs is None or peaks is None:
        return unknown
    full, faster = peaks.compute("fp32"), peaks.compute("tf32" if tf32 else "fp16")
    if full is None or faster is None:
        return unknown
    moved = roofline.memory_share[rows] * (1.0 if tf32 else 0.5)
    left = np.maximum(full.datasheet / faster.datasheet, moved)
    return np.where(costs.known[rows], np.maximum(1.0 - left, 0.0), unknown)
