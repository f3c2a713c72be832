"""Norms of gradients one by one, and norms that are none of gradients."""

from typing import Any

from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

NORM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >()"


def test_casts_between_norms_are_passed_over(examine: Any) -> None:
    """Gradients in bfloat16 are cast one by one, and their norms added up: still clipping."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            for _ in range(20):
                for op, kernel in (("_to_copy", ELEMENTWISE), ("norm", NORM), ("add", ELEMENTWISE)):
                    with b.op(f"aten::{op}"):
                        b.launch(kernel, 4)
            b.annotation("Optimizer.step#SGD.step")
            b.sync()
    assert examine(b).status("gradient_clipping_per_tensor") == "fires"


def test_trust_ratios_are_no_clipping(examine: Any) -> None:
    """LAMB takes two norms for each parameter between its updates."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step(), b.annotation("Optimizer.step#Lamb.step"):
            for _ in range(20):
                for op in ("mul_", "add_", "addcmul_", "addcdiv", "norm", "norm", "div", "add_"):
                    with b.op(f"aten::{op}"):
                        b.launch(ELEMENTWISE if op != "norm" else NORM, 4)
            b.sync()
    assert examine(b).status("gradient_clipping_per_tensor") == "quiet"
