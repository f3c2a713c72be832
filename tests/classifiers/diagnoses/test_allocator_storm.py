"""Memory that is allocated from the driver in every step."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(api: str, kernel_us: float, steps: int = 4, first_us: float = 300) -> KinetoBuilder:
    """A call of 300 us behind a kernel, in each step; in the first one it may take longer."""
    b = KinetoBuilder()
    for number in range(steps):
        with b.step():
            b.launch(GEMM, kernel_us)
            b.clock.call(api, round(1000 * (300 if number else first_us)))
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
    """198 us under the call go, or half of them; of 6 until the next kernel starts half, or all."""
    saved = examine(job("cudaFree", 100)).savings_us("allocator_storm")
    assert saved == pytest.approx((99, 201, 204), abs=0.0011)


def test_a_first_step_that_starts_up_does_not_count(examine: Any) -> None:
    """It takes longer for its calls than one and a half times any later step."""
    found = examine(job("cudaFree", 100, first_us=500)).savings_us("allocator_storm")
    assert found == pytest.approx((99 * 0.75, 201 * 0.75, 204 * 0.75), abs=0.0011)


def test_a_first_step_like_the_others_counts(examine: Any) -> None:
    """A trace that begins in the middle of a job: 400 us are less than one and a half times 300."""
    found = examine(job("cudaFree", 100, first_us=400)).savings_us("allocator_storm")
    assert found == pytest.approx((99 + 12.5, 201 + 25, 204 + 25), abs=0.0011)


def test_the_longest_later_step_decides(examine: Any) -> None:
    """Steps may allocate by turns: the first one is like the third."""
    b = KinetoBuilder()
    for number in range(6):
        with b.step():
            b.launch(GEMM, 100)
            b.clock.call("cudaMalloc", 100_000 if number % 2 else 400_000)
            b.launch(GEMM, 100)
            b.sync()
    low, _, _ = examine(b).savings_us("allocator_storm")
    assert low == pytest.approx(298 / 2 / 2, abs=0.0011)
