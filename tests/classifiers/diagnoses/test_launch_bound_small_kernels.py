"""Kernels that run shorter than their launch takes."""

from typing import Any

from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder


def job(kernel_us: float, dispatch_us: float = 9) -> KinetoBuilder:
    """Twenty kernels a step; each costs the host 4 us and the dispatch."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(20):
                with b.op("aten::add", dispatch_us):
                    b.launch(ELEMENTWISE, kernel_us)
    return b


def test_gaps_between_small_kernels_are_the_cost(examine: Any) -> None:
    """Every 13 us a kernel of 2 us: 40 gaps of 11 us, the first 4 us longer, over two steps.

    A graph leaves 0.5 us of each: (40 * 10.5 + 4) / 2 = 212 us; half of it is the least.
    """
    assert examine(job(2)).savings_us("launch_bound_small_kernels") == (106, 159, 212)


def test_kernels_dearer_to_launch_than_to_run_are_small(examine: Any) -> None:
    """Kernels of 12 us that wait 41 us each are too small for the host, if not by the clock."""
    assert examine(job(12, dispatch_us=49)).status("launch_bound_small_kernels") == "fires"


def test_a_full_queue_hides_launches(examine: Any) -> None:
    """Kernels of 20 us every 13 us of the host leave no gaps."""
    assert examine(job(20)).status("launch_bound_small_kernels") == "quiet"


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


def test_the_evidence_can_be_asked_for(examine: Any) -> None:
    """The queries return median and number of the kernels."""
    answers = examine(job(2)).answers("launch_bound_small_kernels")
    assert answers == [(2000, 2000), (40, 40)]
