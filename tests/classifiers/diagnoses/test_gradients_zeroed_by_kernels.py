"""Gradients that are set to zero, with and without a range that says so."""

from typing import Any

from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

NODE = "autograd::engine::evaluate_function: "
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >()"


def job(fills: int, adds: int) -> KinetoBuilder:
    """A loop of zero_(), then backward, which adds to each gradient."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 500)
            for _ in range(fills):
                with b.op("aten::zero_"):
                    b.memset(1 << 20, 10)
            for _ in range(adds):
                with b.op(NODE + "torch::autograd::AccumulateGrad"), b.op("aten::add_"):
                    b.launch(ELEMENTWISE, 15)
            b.sync()
    return b


def test_the_first_addition_to_a_gradient_goes_too(examine: Any) -> None:
    """20 memsets of 10 us, and of 40 additions of 15 us at best half: two micro-batches."""
    assert examine(job(20, 40)).savings_us("gradients_zeroed_by_kernels") == (200, 350, 500)


def test_a_few_buffers_are_no_gradients(examine: Any) -> None:
    """Contiguous gradients are set to zero in three pieces, and have to be."""
    assert examine(job(3, 40)).status("gradients_zeroed_by_kernels") == "quiet"


def test_zeros_without_autograd_are_no_gradients(examine: Any) -> None:
    """An inference engine may clear as many buffers."""
    assert examine(job(20, 0)).status("gradients_zeroed_by_kernels") == "quiet"


def test_lists_of_gradients_are_zeroed_too(examine: Any) -> None:
    """Optimizers with foreach=True set all gradients to zero with one kernel."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 500)
            zero_grad = b.annotation("Optimizer.zero_grad#SGD.zero_grad")
            with zero_grad, b.op("aten::_foreach_zero_"):
                b.launch(FILL, 100)
            b.sync()
    assert examine(b).savings_us("gradients_zeroed_by_kernels") == (100, 100, 100)
