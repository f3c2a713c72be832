"""Allocations that are made again after memory was given back."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def job(*apis: str, steps: int = 4) -> KinetoBuilder:
    """Calls of 100 us within one operator of each step."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step():
            b.launch(GEMM, 50)
            with b.op("aten::empty"):
                for api in apis:
                    b.launch(GEMM, 5) if api == "launch" else b.clock.call(api, 100_000)
            b.launch(GEMM, 50)
            b.sync()
    return b


@pytest.mark.parametrize(
    "apis",
    [
        ("cudaMalloc", "cudaEventSynchronize", "cudaFree", "cudaFree", "cudaMalloc"),
        ("hipMalloc", "hipFree", "hipMalloc"),
        ("cuMemCreate", "cuMemUnmap", "cuMemRelease", "cuMemCreate", "cuMemMap", "cuMemSetAccess"),
    ],
)
def test_retries_of_all_allocators(examine: Any, apis: tuple[str, ...]) -> None:
    """CUDA, HIP and expandable segments; what waits between the calls does not matter."""
    found = examine(job(*apis))
    assert found.status("memory_pressure") == "fires"
    assert found.status("allocator_storm") == "quiet"


@pytest.mark.parametrize(
    "apis",
    [
        ("cudaMalloc", "launch", "cudaFree", "cudaMalloc"),
        ("cudaFree", "cudaMalloc", "cudaMalloc"),
        ("cudaMalloc", "cudaFreeAsync", "cudaMalloc"),
        ("cudaMalloc", "cudaFree"),
    ],
)
def test_other_orders_are_no_retry(examine: Any, apis: tuple[str, ...]) -> None:
    """A library that times its algorithms launches between; a pool gives nothing back."""
    found = examine(job(*apis))
    assert found.status("memory_pressure") == "quiet"
    assert found.status("allocator_storm") == "fires"


def test_a_retry_at_start_up_is_none(examine: Any) -> None:
    """One step after the first is no habit."""
    found = examine(job("cudaMalloc", "cudaFree", "cudaMalloc", steps=2))
    assert found.status("memory_pressure") == "quiet"
