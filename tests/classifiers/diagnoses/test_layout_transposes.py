"""Kernels that only change layouts."""

from typing import Any

import pytest
from examples.layout_transposes import STRIDED
from examples.unfused_norm import TO_BFLOAT16
from kineto_builder import GEMM, KinetoBuilder

MIOPEN = "batched_transpose_16x32_half"


def job(op: str, kernel: str) -> KinetoBuilder:
    """A product of 400 us, then a kernel of 100 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            with b.op(op), b.op("aten::copy_"):
                b.launch(kernel, 100)
            b.sync()
    return b


def test_transposes_of_miopen_count_without_operators(examine: Any) -> None:
    """ROCm's library transposes as cuDNN does; its kernels say so themselves."""
    assert examine(job("aten::conv2d", MIOPEN)).savings_us("layout_transposes") == (50, 75, 100)


@pytest.mark.parametrize("op", ["aten::contiguous", "aten::reshape", "aten::matmul"])
def test_copies_into_other_strides_may_be_needed(examine: Any, op: str) -> None:
    """Nothing is sure to be saved of a copy before the next operator."""
    assert examine(job(op, STRIDED)).savings_us("layout_transposes") == (0, 50, 100)


def test_a_cast_is_no_change_of_layout(examine: Any) -> None:
    """Copies that convert types belong to another diagnosis, whatever launches them."""
    assert examine(job("aten::contiguous", TO_BFLOAT16)).status("layout_transposes") == "quiet"
