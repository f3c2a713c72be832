"""Norms and softmaxes made of single kernels."""

from typing import Any

import pytest
from examples.unfused_norm import MEAN, POW, RSQRT
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

EXP = "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda>(int)"
QUOTIENT = (
    "void at::native::elementwise_kernel<128, 2, at::native::binary_internal::DivFunctor>(int)"
)
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<at::native::sum_functor> >(int)"
FUSED_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)"
INDUCTOR = "triton_red_fused_add_mean_mul_pow_rsqrt_0"


def job(*kernels: str, fill: bool = False) -> KinetoBuilder:
    """A product of 400 us that hides all launches, then kernels of 50 us each."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            for number, kernel in enumerate(kernels):
                if fill and number == 1:
                    b.memset(16, 1)
                b.launch(kernel, 50)
            b.launch(GEMM, 400)
            b.sync()
    return b


@pytest.mark.parametrize(
    "kernels",
    [
        (POW, MEAN, RSQRT, ELEMENTWISE),
        (MEAN, ELEMENTWISE, POW, MEAN, RSQRT, ELEMENTWISE),
        (MEAN, RSQRT, QUOTIENT, ELEMENTWISE, ELEMENTWISE),
        (SUM, ELEMENTWISE, EXP, SUM, QUOTIENT),
        (EXP, SUM, QUOTIENT),
    ],
)
def test_all_kernels_of_a_sequence_but_one_may_go(examine: Any, kernels: tuple[str, ...]) -> None:
    """RMS and layer norms, with and without weights, and softmaxes: each is one sequence."""
    saved = 50 * (len(kernels) - 1)
    assert examine(job(*kernels)).savings_us("unfused_norm") == (saved / 2, saved * 3 / 4, saved)


def test_a_fill_does_not_part_a_sequence(examine: Any) -> None:
    """A reduction over many blocks clears its semaphores first."""
    found = examine(job(POW, MEAN, RSQRT, ELEMENTWISE, fill=True))
    assert found.savings_us("unfused_norm") == (75, 112.5, 150)


@pytest.mark.parametrize(
    "kernels",
    [
        (FUSED_NORM, ELEMENTWISE),
        (INDUCTOR, ELEMENTWISE),
        (MEAN, GEMM, RSQRT, ELEMENTWISE),
        (ELEMENTWISE, RSQRT, QUOTIENT, ELEMENTWISE),
        (MEAN, MEAN, QUOTIENT),
    ],
)
def test_what_is_no_sequence_is_no_norm(examine: Any, kernels: tuple[str, ...]) -> None:
    """Fused kernels, an optimiser's root, and means that are divided."""
    assert examine(job(*kernels)).status("unfused_norm") == "quiet"
