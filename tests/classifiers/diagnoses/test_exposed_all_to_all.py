"""Exchanges, and how they are told from sends and receives."""

from typing import Any

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder

GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"


def job() -> KinetoBuilder:
    """A kernel, and an exchange of 100 us after it."""
    b = KinetoBuilder(world_size=8)
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 150)
            b.collective("all_to_all", 1 << 20, 100)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
    return b


def without_arguments(b: KinetoBuilder, kernel: str = "") -> KinetoBuilder:
    """As older releases of PyTorch write it: nothing about the collective but its range."""
    for event in b.clock.events:
        event.get("args", {}).pop("Collective name", None)
        if kernel and event["name"].startswith("nccl") and event.get("cat") == "kernel":
            event["name"] = kernel
    return b


@pytest.mark.parametrize("kernel", ["", GENERIC])
def test_the_range_tells_what_the_kernel_does(examine: Any, kernel: str) -> None:
    """A kernel for sends, or for everything, under `nccl:all_to_all` is an exchange."""
    found = examine(without_arguments(job(), kernel))
    assert found.savings_us("exposed_all_to_all") == (50, 75, 100)
    assert found.status("pipeline_bubble") == "quiet"
    assert found.status("exposed_all_reduce") == "quiet"


def test_without_its_launch_the_lane_tells(examine: Any) -> None:
    """A send whose launch is not in the trace is an exchange where its stream carries exchanges."""
    b = without_arguments(job())
    first = next(e for e in b.clock.events if e["name"] == "nccl:all_to_all")
    call = next(e for e in b.clock.events if e["name"] == "cudaLaunchKernelExC")
    for event in (first, call):
        b.clock.events.remove(event)
    assert examine(b).savings_us("exposed_all_to_all") == (50, 75, 100)


def test_the_range_around_the_launch_names_the_operation(examine: Any) -> None:
    """The kernel only says that it sends and receives; SQL reads the range too."""
    found = examine(without_arguments(job()))
    assert "Kernels of all_to_all on stream 20" in found.why("exposed_all_to_all")
    assert found.answers("exposed_all_to_all") == [(200_000, 200_000)]
