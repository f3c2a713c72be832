"""Kernels that take longer from step to step."""

from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

OTHER = GEMM.replace("128x128", "256x128")


def job(factors: list[float], *, others: bool = True, control: int = 20) -> KinetoBuilder:
    """Twenty products of two kinds a step, whose times follow the factors; one kind may not."""
    b = KinetoBuilder()
    for factor in factors:
        with b.step():
            for number in range(20):
                b.launch(GEMM, 100 * factor)
                b.launch(OTHER, 100 * factor if others else 100)
                if number < control:
                    b.launch(ELEMENTWISE, 50)
            b.sync()
    return b


def test_a_rise_that_stays_counts(examine: Any) -> None:
    """The clock falls once and does not recover."""
    found = examine(job([1, 1, 1.1, 1.1]))
    assert found.savings_us("slowing_kernels") == pytest.approx((200, 200, 200), abs=0.0011)


@pytest.mark.parametrize("factors", [[1.1, 1, 1, 1], [1, 1.1, 1, 1.1, 1, 1.1], [1, 1.2, 1.05]])
def test_what_falls_back_is_no_trend(examine: Any, factors: list[float]) -> None:
    """A slow first step is warm-up; what comes and goes is noise."""
    assert examine(job(factors)).status("slowing_kernels") == "quiet"


def test_only_some_kernels_are_not_the_clock(examine: Any) -> None:
    """Half of the kernels slow down: their data or their neighbours are the reason."""
    assert examine(job([1, 1.1, 1.2], others=False)).status("slowing_kernels") == "quiet"


def test_without_a_control_nothing_is_said(examine: Any) -> None:
    """Where no kernel is bound by memory the batches may grow."""
    assert examine(job([1, 1.1, 1.2], control=0)).status("slowing_kernels") == "quiet"


def test_two_steps_are_no_trend(examine: Any) -> None:
    """One step that takes longer than the other proves nothing."""
    assert examine(job([1, 1.2])).status("slowing_kernels") == "not applicable"
