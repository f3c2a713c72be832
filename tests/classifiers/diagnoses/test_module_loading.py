"""Kernels that are loaded in the middle of a step."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(steps: int, api: str = "", *, marked: bool = True) -> KinetoBuilder:
    """300 us of loading after a kernel of 100, in each step."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step() if marked else b.annotation("request"):
            b.launch(GEMM, 100)
            b.clock.call(api, 300_000) if api else b.overhead(300, "Lazy Function Loading")
            b.launch(GEMM, 100)
            b.sync()
    return b


@pytest.mark.parametrize("api", ["cuModuleLoadData", "cuLibraryLoadData", "hipModuleLoadDataEx"])
def test_calls_that_load_count_as_ranges_do(examine: Any, api: str) -> None:
    """The driver's calls, where no overhead is recorded."""
    found = examine(job(3, api))
    assert found.status("module_loading") == "fires"
    assert found.savings_us("module_loading") == pytest.approx((66, 101, 136), abs=0.0011)


def test_launching_a_module_kernel_loads_nothing(examine: Any) -> None:
    """`hipModuleLaunchKernel` only has a similar name."""
    assert examine(job(3, "hipModuleLaunchKernel")).status("module_loading") == "quiet"


def test_the_only_step_lacks_warm_up(examine: Any) -> None:
    """A marked step that loads its kernels is not what the job usually does."""
    assert examine(job(1)).savings_us("module_loading") == pytest.approx((99, 151.5, 204), abs=0.01)


def test_a_trace_without_steps_may_hold_the_start_up(examine: Any) -> None:
    """Nothing says that the job had begun its steps."""
    assert examine(job(1, marked=False)).status("module_loading") == "quiet"
