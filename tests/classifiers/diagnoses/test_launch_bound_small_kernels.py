"""Kernels that run shorter than their launch takes."""

from typing import Any

from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder


def test_kernels_dearer_to_launch_than_to_run_are_small(examine: Any) -> None:
    """Kernels of 12 us that wait 41 us each are too small for the host, if not by the clock."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(20):
                with b.op("aten::add", 49):
                    b.launch(ELEMENTWISE, 12)
    assert examine(b).status("launch_bound_small_kernels") == "fires"


def test_named_work_of_the_host_is_something_else(examine: Any) -> None:
    """Gaps in which the host logs are no matter of launches."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for _ in range(8):
                b.launch(GEMM, 5)
                b.annotation("## logging ##", 200)
    assert examine(b).status("launch_bound_small_kernels") == "quiet"


def test_long_gaps_are_something_else(examine: Any) -> None:
    """A gap of more than 1 ms is not the time between two launches."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.idle(2000)
            for _ in range(8):
                b.launch(GEMM, 5)
    assert examine(b).status("launch_bound_small_kernels") == "quiet"
