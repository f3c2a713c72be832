"""Attention made of separate kernels."""

from typing import Any

from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

ME = "attention_not_fused"
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_{}<float, float, float, 10, false, false>(float*)"
)
FORWARD, BACKWARD = SOFTMAX.format("forward"), SOFTMAX.format("backward")


def job(*kernels: tuple[str, str, int]) -> KinetoBuilder:
    """Steps of operators that launch a kernel of 100 us each on some stream."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for op, kernel, stream in kernels:
                with b.op(op):
                    b.launch(kernel, 100, stream=stream)
            b.sync()
    return b


BMM = ("aten::bmm", GEMM, 7)


def test_the_backward_pass_counts(examine: Any) -> None:
    """Four products, and between the second and third what softmax and dropout launch.

    That goes, 200 us, and three eighths of the 200 us of two products.
    """
    found = examine(
        job(
            BMM,
            BMM,
            ("aten::native_dropout_backward", ELEMENTWISE, 7),
            ("aten::_softmax_backward_data", BACKWARD, 7),
            BMM,
            BMM,
        )
    )
    assert found.savings_us(ME) == (100, 275, 350)


def test_compiled_softmaxes_count(examine: Any) -> None:
    """Inductor fuses what lies between the products, and still writes the scores.

    The 100 us of that go, and three eighths of the 200 us of the products.
    """
    found = examine(job(BMM, ("", "triton_per_fused__softmax_add_mul_2", 7), BMM))
    assert found.savings_us(ME) == (50, 175, 250)


def test_another_product_between_is_no_attention(examine: Any) -> None:
    """A linear layer between the softmax and a batched product breaks the run."""
    softmax = ("aten::_softmax", FORWARD, 7)
    assert examine(job(BMM, softmax, ("aten::addmm", GEMM, 7), BMM)).status(ME) == "quiet"


def test_products_of_another_stream_do_not_count(examine: Any) -> None:
    """The softmax must lie between the products on its own stream."""
    elsewhere = ("aten::bmm", GEMM, 9)
    found = examine(job(elsewhere, ("aten::_softmax", FORWARD, 7), elsewhere))
    assert found.status(ME) == "quiet"


def test_long_runs_are_something_else(examine: Any) -> None:
    """With thirteen kernels between the products there is more than a mask."""
    mul = ("aten::mul", ELEMENTWISE, 7)
    assert examine(job(BMM, *[mul] * 12, ("aten::_softmax", FORWARD, 7), BMM)).status(ME) == "quiet"
