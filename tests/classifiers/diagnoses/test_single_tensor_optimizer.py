"""Optimizers that update one tensor after the other, and what looks like them."""

from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_model import facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.job import gather

NORM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >()"


def updates(b: KinetoBuilder, parameters: int = 40) -> None:
    """What SGD with momentum launches for each parameter."""
    for _ in range(parameters):
        for op in ("aten::mul_", "aten::add_", "aten::add_"):
            with b.op(op):
                b.launch(ELEMENTWISE, 4)


def test_a_closure_that_runs_the_model_is_no_update(examine: Any) -> None:
    """Lightning has forward inside of the step: many small kernels before a product are not it."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step(), b.annotation("Optimizer.step#SGD.step"):
            updates(b)
            b.launch(GEMM, 100)
            with b.op("aten::_fused_sgd_"):
                b.launch(ELEMENTWISE, 10)
            b.sync()
    assert examine(b).status("single_tensor_optimizer") == "quiet"


def test_sgd_saves_less_than_adam(examine: Any) -> None:
    """Behind a kernel no idle time is left: 120 times 2 us of 4 go, and 37.5 % of the rest too.

    At least the 240 us.
    """
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 1000)
            with b.annotation("Optimizer.step#SGD.step"):
                updates(b)
            b.sync()
    saved = examine(b).savings_us("single_tensor_optimizer")
    assert saved == pytest.approx((240, 330, 330), abs=1)  # the first launch may be waited for


def test_few_parameters_are_no_finding(examine: Any) -> None:
    """Ten parameters need no list of tensors."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step(), b.annotation("Optimizer.step#SGD.step"):
            updates(b, 10)
            b.sync()
    assert examine(b).status("single_tensor_optimizer") == "quiet"


def clipped(inside: bool) -> KinetoBuilder:
    """A wrapper's step clips gradients before it calls an optimizer."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step(), b.annotation("Optimizer.step#Wrapper.step" if inside else "wrapper"):
            b.launch(GEMM, 100)
            for op, kernel in (("aten::linalg_vector_norm", NORM), ("aten::mul_", ELEMENTWISE)):
                for _ in range(110):
                    with b.op(op):
                        b.launch(kernel, 4)
            b.annotation("Optimizer.step#SGD.step")
            b.sync()
    return b


@pytest.mark.parametrize("inside", [True, False])
def test_clipping_is_not_the_optimizer(examine: Any, inside: bool) -> None:
    """Norms and scalings before an optimizer, or inside of a wrapper's step, are clipping."""
    found = examine(clipped(inside))
    assert found.status("single_tensor_optimizer") == "quiet"
    assert found.status("gradient_clipping_per_tensor") == "fires"


def updated(*, fused: bool) -> KinetoBuilder:
    """The host launches the updates, or one that takes 62.5 % of half of 600 times 4 us."""
    b = KinetoBuilder()
    for _ in range(5):
        with b.step():
            b.idle(500)
            b.launch(GEMM, 1_000)
            with b.annotation("Optimizer.step#SGD.step"):
                if fused:
                    b.launch(ELEMENTWISE, 750)
                else:
                    updates(b, 200)
    return b


def test_launches_that_the_device_hides_go_too() -> None:
    """When the kernels are fewer the host would hold up the device, but for its own launches."""
    found = replayed([updated(fused=False)])
    real = found.step_ns - mean_step_ns(gather([facts_of(updated(fused=True))]))
    assert found.savings["single_tensor_optimizer"].high_ns >= 0.95 * real
