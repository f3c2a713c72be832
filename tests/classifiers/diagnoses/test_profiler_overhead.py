"""Time that the profiler itself costs."""

from typing import Any

from kineto_builder import GEMM, KinetoBuilder


def job(gemm_us: float) -> KinetoBuilder:
    """Two kernels, and between their launches the profiler takes 400 us for its buffers."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, gemm_us)
            b.overhead(400)
            b.launch(GEMM, gemm_us)
            b.sync()
    return b


def test_idle_time_under_overhead_is_the_cost(examine: Any) -> None:
    """The kernel ends after 106 us, the overhead after 404: 298 us, half of which is sure."""
    assert examine(job(100)).savings_us("profiler_overhead") == (149, 223.5, 298)


def test_overhead_under_a_busy_device_is_free(examine: Any) -> None:
    """Overhead that a kernel hides costs nothing."""
    assert examine(job(1000)).status("profiler_overhead") == "quiet"


def test_it_says_that_the_job_does_not_pay(examine: Any) -> None:
    """Title and sentence say that the time is gone without the profiler."""
    (fix,) = [f for f in examine(job(100)).fixes if f.id == "profiler_overhead"]
    assert "no cost without it" in fix.title
    assert "Without recording this time is gone" in fix.why


def test_the_evidence_can_be_asked_for(examine: Any) -> None:
    """The query returns the time of the ranges."""
    assert examine(job(100)).answers("profiler_overhead") == [(800_000, 800_000)]
