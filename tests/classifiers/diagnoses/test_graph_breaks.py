"""Graph breaks."""

from typing import Any

from kineto_builder import GEMM, KinetoBuilder


def job(kernel_us: float, between: str) -> KinetoBuilder:
    """Two graphs in one call, with a range of 300 us between them."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.op("Torch-Compiled Region: 0/0"):
                for _ in range(2):
                    with b.op("CompiledFunction"):
                        b.launch(GEMM, kernel_us)
                    b.annotation(between, 300)
            b.sync()
    return b


def test_breaks_under_a_full_queue_cost_nothing(examine: Any) -> None:
    """The first graph's kernel outlasts the Python that follows it."""
    found = examine(job(1000, "python"))
    assert found.status("graph_breaks") == "quiet"
    assert "2 graph breaks" in found.why("graph_breaks")


def test_compiling_what_follows_is_another_matter(examine: Any) -> None:
    """The compiler runs between the graphs: the time is lost to it."""
    assert examine(job(50, "python")).status("graph_breaks") == "fires"
    assert examine(job(50, "entire_frame_compile")).status("graph_breaks") == "quiet"


def test_eager_jobs_have_no_breaks(examine: Any) -> None:
    """Without a compiled region there is nothing to break."""
    b = KinetoBuilder()
    with b.step():
        b.launch(GEMM, 100)
        b.idle(300)
        b.launch(GEMM, 100)
        b.sync()
    assert examine(b).status("graph_breaks") == "quiet"
