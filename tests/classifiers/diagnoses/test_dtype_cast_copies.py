"""Kernels that only convert types."""

from typing import Any

import pytest
from examples.dtype_cast_copies import STRIDED
from examples.unfused_norm import TO_FLOAT
from kineto_builder import GEMM, KinetoBuilder

CONVERTING = STRIDED.replace("impl_nocast", "impl")
INDUCTOR = "triton_poi_fused__to_copy_3"


def job(kernel: str, *ops: str) -> KinetoBuilder:
    """A product of 400 us, then a kernel of 100 us launched by the last of some operators."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            with b.op(ops[0] if ops else "user::op"), b.op(ops[-1] if ops else "user::op"):
                b.launch(kernel, 100)
            b.sync()
    return b


@pytest.mark.parametrize(
    "made",
    [
        job(TO_FLOAT),
        job(INDUCTOR),
        job(CONVERTING, "aten::to", "aten::copy_"),
    ],
)
def test_casts_show_by_their_kernel_or_their_operator(examine: Any, made: KinetoBuilder) -> None:
    """PyTorch's copies name the conversion or are launched by `aten::to`; Inductor's are alone."""
    assert examine(made).savings_us("dtype_cast_copies") == (50, 75, 100)


@pytest.mark.parametrize(
    "made",
    [
        job(CONVERTING, "aten::contiguous", "aten::copy_"),
        job("triton_poi_fused__to_copy_add_mul_3"),
        job("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(int)", "aten::cat"),
    ],
)
def test_other_copies_are_no_casts(examine: Any, made: KinetoBuilder) -> None:
    """Copies into other strides, kernels that do more than convert, and concatenations."""
    assert examine(made).status("dtype_cast_copies") == "quiet"
