"""Barriers, on the device and on the host."""

from typing import Any

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def host(name: str, barriers: int = 2) -> KinetoBuilder:
    """Two steps; in the first ones the host stands in a barrier of 200 us after a kernel of 100."""
    b = KinetoBuilder(world_size=8)
    for number in range(2):
        with b.step():
            b.launch(GEMM, 100)
            b.idle(5)
            if number < barriers:
                b.annotation(name, 200)
            b.launch(GEMM, 100)
            b.sync()
    return b


@pytest.mark.parametrize(
    "name",
    [
        "gloo:barrier",
        "c10d::monitored_barrier",
        "torch.distributed.barrier()",
    ],
)
def test_a_barrier_on_the_host_leaves_the_device_idle(examine: Any, name: str) -> None:
    """The kernel hides 97 of 200 us: it starts 2 us after its launch, the barrier 5 us after."""
    found = examine(host(name))
    assert found.savings_us("synchronous_barrier") == (0, 51.5, 103)
    assert "2 times" in found.why("synchronous_barrier")


@pytest.mark.parametrize("name", ["_mm_memory_barrier_init", "no barriers", "rebarrier"])
def test_other_names_are_no_barriers(examine: Any, name: str) -> None:
    """The word alone is not enough."""
    assert examine(host(name)).status("synchronous_barrier") == "quiet"


def test_once_is_no_habit(examine: Any) -> None:
    """A barrier in one of two steps belongs to a checkpoint or to the start."""
    assert examine(host("gloo:barrier", barriers=1)).status("synchronous_barrier") == "quiet"


def test_one_element_is_a_barrier_without_a_name(examine: Any) -> None:
    """An all-reduce of one element for 60 us between two kernels: at best all of it is saved."""
    b = KinetoBuilder(world_size=8)
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            b.collective("allreduce", 1, 60)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.launch(GEMM, 100)
            b.sync()
    found = examine(b)
    assert found.savings_us("synchronous_barrier") == (0, 30, 60)
    assert found.answers("synchronous_barrier") == [(120_000, 120_000)]
