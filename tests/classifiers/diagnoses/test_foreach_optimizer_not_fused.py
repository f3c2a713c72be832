"""Optimizers over lists of tensors, with and without a fused kernel to replace them."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder

PASS = "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<2> >()"


def job(optimizer: str, *passes: str) -> KinetoBuilder:
    """Each pass takes 100 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 300)
            with b.annotation(f"Optimizer.step#{optimizer}.step"):
                for name in passes:
                    with b.op(f"aten::_foreach_{name}"):
                        b.launch(PASS, 100)
            b.sync()
    return b


def test_momentum_saves_three_of_eight_parts(examine: Any) -> None:
    """SGD has fewer passes: 37.5 % of 300 us."""
    found = examine(job("SGD", "mul_", "add_", "add_"))
    assert found.savings_us("foreach_optimizer_not_fused") == (56.25, 112.5, 112.5)


@pytest.mark.parametrize(
    ("optimizer", "passes"),
    [
        ("SGD", ("add_",)),
        ("NAdam", ("lerp_", "mul_", "addcmul_", "addcdiv_")),
        ("Shampoo", ("mul_", "add_")),
    ],
)
def test_what_has_no_better_kernel_is_fine(
    examine: Any, optimizer: str, passes: tuple[str, ...]
) -> None:
    """One pass is the least; of others PyTorch has no fused implementation."""
    assert examine(job(optimizer, *passes)).status("foreach_optimizer_not_fused") == "quiet"
