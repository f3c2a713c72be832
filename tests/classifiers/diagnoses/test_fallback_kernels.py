"""Slow kernels of last resort."""

from contextlib import ExitStack
from typing import Any

import pytest
from examples.fallback_kernels import PATCHES
from kineto_builder import GEMM, KinetoBuilder

ME = "fallback_kernels"
ADD_SORTED = "void at::native::indexing_backward_kernel<float, 4>(long const*, long const*)"
FILL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
)


def job(kernel: str, *ops: str) -> KinetoBuilder:
    """Steps of nested operators around a kernel of 400 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with ExitStack() as around:
                for op in ops:
                    around.enter_context(b.op(op))
                b.launch(kernel, 400)
            b.sync()
    return b


@pytest.mark.parametrize(
    ("kernel", "ops"),
    [
        (PATCHES, ("aten::conv2d", "aten::_slow_conv2d_forward")),
        (GEMM, ("aten::conv_transpose2d", "aten::slow_conv_transpose2d")),
        ("Im2d2Col", ("aten::miopen_convolution",)),
        ("void cudnn::cnn::im2col4d_kernel<float, long>(int)", ("aten::cudnn_convolution",)),
        (ADD_SORTED, ("aten::index_add_", "aten::index_put_", "aten::_index_put_impl_")),
        (ADD_SORTED, ("IndexSelectBackward0", "aten::index_add_", "aten::_index_put_impl_")),
        (FILL, ("aten::empty", "aten::fill_")),
    ],
)
def test_fallbacks(examine: Any, kernel: str, ops: tuple[str, ...]) -> None:
    """Written-out patches and detours for determinism; what they gain is not sure."""
    assert examine(job(kernel, *ops)).savings_us(ME) == (0, 190, 380)


@pytest.mark.parametrize(
    ("kernel", "ops"),
    [
        (PATCHES, ("aten::unfold", "aten::im2col")),
        (GEMM, ("aten::conv2d", "aten::cudnn_convolution")),
        (ADD_SORTED, ("IndexBackward0", "aten::index_put_", "aten::_index_put_impl_")),
        (FILL, ("aten::zeros", "aten::zero_", "aten::fill_")),
    ],
)
def test_what_is_wanted_is_none(examine: Any, kernel: str, ops: tuple[str, ...]) -> None:
    """Unfolding on purpose, usual convolutions, gradients of indexing, and zeros."""
    assert examine(job(kernel, *ops)).status(ME) == "quiet"
