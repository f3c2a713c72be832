"""Chains of kernels that only move memory."""

from typing import Any

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder


def job(*chain_us: float) -> KinetoBuilder:
    """A matrix product of 100 us, then elementwise kernels back to back."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 100)
            for kernel_us in chain_us:
                b.launch(ELEMENTWISE, kernel_us)
    return b


@pytest.mark.parametrize(
    ("chain_us", "most_us"),
    [
        ((100, 100, 100, 100), 300),
        ((300, 50, 50), 100),
        ((100,) * 8, 600),
    ],
)
def test_one_kernel_stands_for_the_chain(
    examine: Any, chain_us: tuple[float, ...], most_us: float
) -> None:
    """(k-1)/k of k like kernels, never the longest one, and no more than four in one."""
    savings = examine(job(*chain_us)).savings_us("unfused_elementwise_chain")
    assert savings == (most_us / 2, most_us * 3 / 4, most_us)


def test_a_pair_is_no_chain(examine: Any) -> None:
    """Two kernels between matrix products are left alone."""
    assert examine(job(100, 100)).status("unfused_elementwise_chain") == "quiet"


def test_gaps_break_the_chain(examine: Any) -> None:
    """Kernels with 40 us between them belong to something slower than a chain."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for _ in range(4):
                b.launch(ELEMENTWISE, 100)
                b.idle(140)
    assert examine(b).status("unfused_elementwise_chain") == "quiet"
