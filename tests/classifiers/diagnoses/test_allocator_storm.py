"""Memory that is allocated from the driver in every step."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(api: str, kernel_us: float, steps: int = 4) -> KinetoBuilder:
    """A call of 300 us behind a kernel, in each step."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step():
            b.launch(GEMM, kernel_us)
            b.clock.call(api, 300_000)
            b.launch(GEMM, 100)
            b.sync()
    return b


@pytest.mark.parametrize("api", ["cudaMalloc", "hipFree", "cuMemCreate", "cudaHostAlloc"])
def test_any_allocating_call_counts(examine: Any, api: str) -> None:
    """Device and pinned memory, allocated or released, by whatever driver."""
    found = examine(job(api, 100))
    assert found.status("allocator_storm") == "fires"
    assert api in found.why("allocator_storm")


def test_allocations_under_a_full_queue_are_free(examine: Any) -> None:
    """A kernel that outlasts the call hides it."""
    assert examine(job("cudaMalloc", 400)).status("allocator_storm") == "quiet"


def test_two_steps_make_no_habit(examine: Any) -> None:
    """What only one step after the first does may be start-up still."""
    assert examine(job("cudaMalloc", 100, steps=2)).status("allocator_storm") == "quiet"


def test_a_drained_device_is_refilled(examine: Any) -> None:
    """198 us under the call and 6 until the next kernel starts, in three of four steps."""
    low, mid, high = examine(job("cudaFree", 100)).savings_us("allocator_storm")
    assert (low, mid, high) == pytest.approx((99 * 0.75, 151.5 * 0.75, 204 * 0.75), abs=0.0011)
