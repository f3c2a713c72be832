"""Biases of convolutions in front of norms."""

from typing import Any

import pytest
from examples.conv_bias_before_norm import job
from kineto_builder import ELEMENTWISE, KinetoBuilder

ME = "conv_bias_before_norm"
SUM = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, float> >(float*, int)"


def with_gradients(following: str) -> KinetoBuilder:
    """Steps as in the example, and one that sums the gradient of a bias."""
    b = job(following)
    with b.step():
        with b.op("aten::convolution_backward"), b.op("aten::sum"):
            b.launch(SUM, 400)
        b.sync()
    return b


def test_gradients_count_where_all_convolutions_have_norms(examine: Any) -> None:
    """Two additions of 50 us and a sum of 400 us in three steps."""
    savings = examine(with_gradients("aten::batch_norm")).savings_us(ME)
    assert savings[0] == pytest.approx(500 / 3, abs=0.001)


def test_gradients_of_other_convolutions_do_not_count(examine: Any) -> None:
    """Without a norm the bias has a gradient."""
    assert examine(with_gradients("aten::relu_")).status(ME) == "quiet"


def test_the_norm_must_come_next(examine: Any) -> None:
    """An activation between the convolution and the norm needs the bias."""
    b = job("aten::relu_")
    for _ in range(2):
        with b.step(), b.op("aten::batch_norm"):
            b.launch(SUM, 10)
    assert examine(b).status(ME) == "quiet"


def test_a_norm_in_training_counts_its_batches_first(examine: Any) -> None:
    """`num_batches_tracked.add_(1)` stands between the convolution and the norm."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.op("aten::conv2d"), b.op("aten::add_"):
                b.launch(ELEMENTWISE, 50)
            with b.op("aten::add_"):
                b.launch(ELEMENTWISE, 2)
            with b.op("aten::batch_norm"):
                b.launch(SUM, 50)
            b.sync()
    assert examine(b).status(ME) == "fires"
