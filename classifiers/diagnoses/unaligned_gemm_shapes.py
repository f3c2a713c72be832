"""Matrix products of sizes that leave rows unaligned, whatever kernel runs them.

What it finds:
    Matrix products in 16 or 8 bits with a dimension along memory that is no multiple of 16 bytes: 8
    numbers of 16 bits, 16 of 8 bits.

Why it costs time:
    A row that does not start at a multiple of 16 bytes cannot be loaded 16 bytes at a time, nor by
    the copy engine of Hopper and later (TMA). The library takes an older kernel with narrow loads.

How it is told apart:
    By the operators' recorded sizes and strides. Only dimensions along which a matrix lies in
    memory count: a number of tokens may be odd. Products whose kernels' names tell how they load
    are left to `misaligned_gemm`. Where aligned products of this trace with no more arithmetic are
    no nearer to their roof, nothing is found.

Example:
    The output layer of a vocabulary of 50257, padded to 50304.

What to do:
    Pad the dimension. Saved is the time down to what aligned products of this trace reach, with the
    padding multiplied as well; where there are none, what padding has saved in a published
    measurement. A quarter of it at worst, as copies into padded tensors cost time.

References:
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
    https://github.com/pytorch/pytorch/pull/196992
    https://developer.nvidia.com/blog/optimizing-gpu-performance-tensor-cores/
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.costs import Shapes
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._kernel_names import by_name
from perfdiag.classifiers.diagnoses._products import (
    aligned_bytes,
    best_comparable,
    products,
    row_bytes,
)
from perfdiag.classifiers.diagnoses._roofs import KERNEL_LEAVES, NO_ROOF, Roofs, asked, roofs_of
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_in,
    mask_of,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnoses.misaligned_gemm import loaded_bytes
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

NARROW_TYPES = ("fp16", "bf16", "fp8", "int8")

FULL = Threshold(
    16, "bytes", "NVIDIA, Matrix Multiplication Background: tensor cores like multiples of 16 bytes"
)
PENALTY = Threshold(
    0.384,
    "share of the time",
    "https://github.com/pytorch/pytorch/pull/196992: 99.08 us become 61.01 on a B200, "
    "1157 x 4096 by 4096 x 1157 padded",
)
SIMILAR = Threshold(
    1.25, "times the arithmetic", "a choice: what an aligned product may have more to be compared"
)
OFTEN = Threshold(3, "launches", "a choice: what a product reaches once may be chance")
SURE = Threshold(0.25, "share of the bound", "a choice: padding costs copies")

DIAGNOSIS = Diagnosis(
    id="unaligned_gemm_shapes",
    layer="kernels",
    title="Sizes of matrix products leave rows unaligned",
    title_ok="Sizes of matrix products keep rows aligned",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "full": FULL,
        "penalty": PENALTY,
        "similar": SIMILAR,
        "often": OFTEN,
        "sure": SURE,
    },
    how=(
        "Pad the dimension to a multiple of 8 (16-bit) or 16 (fp8), better 64: "
        "model.resize_token_embeddings(pad_to_multiple_of=64), Megatron-LM "
        "--make-vocab-size-divisible-by 128, collators with pad_to_multiple_of=8, or "
        "torch.compile (PyTorch 2.0 or later) with torch._inductor.config.shape_padding=True."
    ),
    verify="Record again with record_shapes=True: the sizes in `Input Dims` are padded.",
    refuted_by="the product takes as long with the dimension rounded up",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for products with unaligned rows."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    rows = products(facts, roofs)
    odd = _unaligned(facts, roofs, rows, limits["full"])
    saved = np.where(odd, _saved(facts, roofs, rows, limits), 0.0)
    mine, high = rows[saved > 0], saved[saved > 0]
    chosen = mask_of(mine, len(facts.here))
    time = leaf_in(facts, union_of(facts.model.work, chosen), *KERNEL_LEAVES)
    part = share_of(facts, time)
    if part < limits["share"]:
        return DIAGNOSIS.quiet(f"Products that padding would help take {part:.1%} of the time.")
    worst = longest_op(facts, chosen)
    longest = int(mine[np.argmax(facts.length_ns[mine])])
    shapes = roofs.costs.inputs[int(roofs.costs.owner[longest])]
    why = (
        f"{count_of(len(mine), 'matrix product')} whose rows do not start at multiples of "
        f"{limits['full']:.0f} bytes take {spell(per_step(facts, time))} of a step ({part:.0%}); "
        f"the longest multiplies {_sizes(shapes)}. " + worst.launches()
    )
    spans = (facts.model.work.ts_ns[mine], facts.model.work.end_ns[mine])
    one = claim(spans, KERNEL_LEAVES, low=limits["sure"] * high, high=high)
    return DIAGNOSIS.fires(why, [one], [worst.proof])


def _unaligned(facts: RankFacts, roofs: Roofs, rows: Int64s, full: float) -> NDArray[np.bool_]:
    """(n,) products of narrow types with unaligned rows, whose kernels do not say how they load."""
    aligned = asked(roofs.costs, rows, aligned_bytes, np.int64)
    told = by_name(facts, ("gemm",), loaded_bytes, np.int64)[rows] > 0
    return np.asarray(roofs.in_type(*NARROW_TYPES)[rows] & (aligned < full) & ~told, np.bool_)


def _saved(facts: RankFacts, roofs: Roofs, rows: Int64s, limits: Limits) -> NDArray[np.float64]:
    """(n,) share of the time that padding saves, by aligned products of the trace if it has any."""
    aligned = asked(roofs.costs, rows, aligned_bytes, np.int64) >= limits["full"]
    best = best_comparable(facts, roofs, rows, aligned, limits)
    padded = asked(roofs.costs, rows, lambda shapes: _padded(shapes, limits["full"]), np.float64)
    needed = padded * roofs.line.compute_share[rows] / np.where(best > 0, best, 1.0)
    return np.where(best > 0, np.maximum(1.0 - needed, 0.0), limits["penalty"])


def _padded(shapes: Shapes, full: float) -> float:
    """How many times as much a product has to do with its rows rounded up, at most."""
    return max((-(-length // full) * full / length for length in row_bytes(shapes)), default=1.0)


def _sizes(shapes: Shapes) -> str:
    matrices = [t.dims for t in shapes.tensors if len(t.dims) > 1][:2]
    return " by ".join(" x ".join(map(str, dims)) for dims in matrices)
