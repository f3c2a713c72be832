"""Kernels that are loaded in the middle of a step."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(steps: int, *, marked: bool = True) -> KinetoBuilder:
    """300 us of loading after a kernel of 100, in each step."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step() if marked else b.annotation("request"):
            b.launch(GEMM, 100)
            b.overhead(300, "Lazy Function Loading")
            b.launch(GEMM, 100)
            b.sync()
    return b


def test_calls_that_load_count_too(examine: Any) -> None:
    """A driver that is asked for a module holds up the launches like the ranges of the profiler."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            call = b.clock.call("cuModuleLoadData")
            b.clock.block(call, b.clock.now + 300_000)
            b.launch(GEMM, 100)
            b.sync()
    assert examine(b).status("module_loading") == "fires"


def test_the_only_step_lacks_warm_up(examine: Any) -> None:
    """A marked step that loads its kernels is not what the job usually does.

    198 us under the loading go, and half of the 6 until the next kernel starts.
    """
    assert examine(job(1)).savings_us("module_loading") == pytest.approx((99, 201, 204), abs=0.01)


def test_a_trace_without_steps_may_hold_the_start_up(examine: Any) -> None:
    """Nothing says that the job had begun its steps."""
    assert examine(job(1, marked=False)).status("module_loading") == "quiet"
