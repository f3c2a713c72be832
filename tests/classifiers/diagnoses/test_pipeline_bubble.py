"""Stages that wait for each other."""

from typing import Any

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def stage(stream: int, compute_us: float = 0) -> KinetoBuilder:
    """Receive in 200 us, under a kernel or not; compute for 100 us; send in 20 us."""
    b = KinetoBuilder(world_size=2)
    for _ in range(2):
        with b.step():
            b.collective("recv", 1 << 20, 200, stream=stream)
            if compute_us:
                b.launch(GEMM, compute_us)
            b.wait_event(COMPUTE_STREAM, on=stream)
            b.launch(GEMM, 100)
            b.collective("send", 1 << 20, 20, stream=stream)
            b.sync()
    return b


@pytest.mark.parametrize("stream", [COMM_STREAM, COMPUTE_STREAM])
def test_waiting_counts_on_any_stream(examine: Any, stream: int) -> None:
    """180 of 200 us are waiting, and no other stream would shorten it."""
    found = examine(stage(stream))
    assert found.savings_us("pipeline_bubble") == (0, 90, 180)
    assert found.status("collective_on_compute_stream") == "quiet"
    assert found.status("exposed_all_reduce") == "quiet"


def test_waiting_under_a_kernel_is_free(examine: Any) -> None:
    """A receive that the micro-batch before it hides costs nothing."""
    assert examine(stage(COMM_STREAM, compute_us=250)).status("pipeline_bubble") == "quiet"
