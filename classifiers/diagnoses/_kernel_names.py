"""What the names of kernels and of what launches them tell, asked once a name.

Names of products are `ampere_sgemm_128x64_nn`, `sm80_xmma_gemm_f32f32_f32f32_f32_..._ffma_...` and
`cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_nn_align1` in cuBLAS and cuDNN, and
`Cijk_Alik_Bljk_SB_..._MT64x64x16_..._ISA942_...` in Tensile and hipBLASLt.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts

__all__ = [
    "PRODUCTS",
    "brief",
    "by_name",
    "is_fp32",
    "is_half",
    "is_tf32",
    "launched_in",
    "of_half_device",
    "of_tf32_device",
    "tile",
]

PRODUCTS = ("gemm", "convolution")
"""Families of kernels that multiply matrices or convolve."""

_FP32 = re.compile(
    r"(?:maxwell|volta|turing|ampere)_(?:sgemm|scudnn)|simt_sgemm|f32f32_f32f32_f32_|"
    r"convolve_sgemm<float|^cijk_\w+?_s_?b_"
)
_TF32 = re.compile(r"tf32|tensorop_s\d+(?:gemm|fprop|dgrad|wgrad)|^cijk_\w+?_s_mx_")
_HALF = re.compile(r"f16|fp16|half|_h\d+gemm|hgemm|hcudnn|^cijk_\w+?_(?:bbs|hhs|b_?b|h_?h|bs|hs)_")
_TF32_DEVICE = re.compile(
    r"ampere|hopper|blackwell|sm(?:8|9|10|12)\d(?!\d)|cutlass_[89]\d_|nvjet|isa9[45]\d|gfx9[45]\d"
)
_HALF_DEVICE = re.compile(r"volta|turing|sm7\d(?!\d)|cutlass_7\d_|isa90|gfx90[8a]")
_TILE = re.compile(r"(\d+)x(\d+)")
_SAYS_LITTLE = re.compile(r"^void |\(anonymous namespace\)::|<unnamed>::")
_LONGEST = 90
_READ = 400
"""Characters of a name that are looked at: the rest repeats them, or lists parameters."""


def by_name(
    facts: RankFacts, families: tuple[str, ...], ask: Callable[[str], Any], dtype: type
) -> NDArray[Any]:
    """(work,) what a function says of the names of some families' kernels; 0 for other work.

    Args:
        facts: the rank; kernels on other devices count as other work.
        families: of kernels.
        ask: the function; it is called once for each distinct name.
        dtype: of what it returns.
    """
    work = facts.model.work
    rows = facts.kernels & work.family.where(*families)
    values: NDArray[Any] = np.zeros(len(work.name.texts) + 1, dtype)
    for code in np.unique(work.name.codes[rows]).tolist():
        values[code] = ask(work.name.texts[code])
    return np.where(rows, values[work.name.codes], values[-1])


def launched_in(facts: RankFacts, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(work,) what is launched inside some host ranges, on the device of the budget.

    Args:
        facts: the rank.
        chosen: (hosts,) the ranges.
    """
    if not chosen.any():
        return np.zeros(len(facts.here), np.bool_)
    inside = np.append(facts.origins.inside(chosen), [False])
    return np.asarray(facts.here & inside[facts.origins.around], np.bool_)


def _finds(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.search(name[:_READ].lower()) is not None


def is_half(name: str) -> bool:
    """Whether a product computes with float16 or bfloat16."""
    return _finds(_HALF, name)


def is_fp32(name: str) -> bool:
    """Whether a product multiplies in float32, and no coarser."""
    return _finds(_FP32, name) and not _finds(_HALF, name) and not _finds(_TF32, name)


def is_tf32(name: str) -> bool:
    """Whether a product multiplies float32 as TF32, or as XF32 on AMD."""
    return _finds(_TF32, name) and not _finds(_HALF, name)


def of_tf32_device(name: str) -> bool:
    """Whether only a device with matrix units for TF32 runs such a kernel (A100, MI300)."""
    return _finds(_TF32_DEVICE, name)


def of_half_device(name: str) -> bool:
    """Whether only a device with matrix units for halves runs such a kernel (V100, T4, MI200)."""
    return _finds(_HALF_DEVICE, name)


def tile(name: str) -> int:
    """The shorter side of the tile that a thread block computes; 0 where the name has none."""
    found = _TILE.search(name)
    return min(int(found[1]), int(found[2])) if found else 0


def brief(name: str) -> str:
    """The name of a kernel as it stands in a sentence: PyTorch's run to a thousand letters."""
    head = _SAYS_LITTLE.sub("", name).partition("(")[0] or name
    return head if len(head) <= _LONGEST else f"{head[:_LONGEST]}..."
