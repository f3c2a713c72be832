"""Collectives that no compute hides."""

from typing import Any

from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def job(gemm_us: float) -> KinetoBuilder:
    """A kernel, and an all-reduce of 300 us after it, on a stream of its own."""
    b = KinetoBuilder(world_size=2)
    for _ in range(3):
        with b.step():
            b.launch(GEMM, gemm_us)
            b.collective("allreduce", 1 << 20, 300)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
    return b


def test_no_more_is_hidden_than_there_is_compute(examine: Any) -> None:
    """100 us of compute hide 100 of 300 us; half the bytes save 100 more; half of 100 is sure."""
    assert examine(job(100)).savings_us("exposed_all_reduce") == (50, 125, 200)


def test_enough_compute_can_hide_all(examine: Any) -> None:
    """400 us of compute could hide all 300 us."""
    assert examine(job(400)).savings_us("exposed_all_reduce") == (150, 225, 300)


def test_operation_bytes_and_doubt_are_named(examine: Any) -> None:
    """The sentence names the operation, its bytes, and that one rank cannot tell waiting."""
    why = examine(job(100)).why("exposed_all_reduce")
    assert "all_reduce on stream 20" in why
    assert "6.291 MB" in why
    assert "may include waiting for other ranks" in why


def test_a_hidden_collective_is_free(examine: Any) -> None:
    """An all-reduce under the next kernel costs nothing."""
    b = KinetoBuilder(world_size=2)
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 500)
            b.collective("allreduce", 1 << 20, 300)
            b.launch(GEMM, 500)
            b.sync()
    assert examine(b).status("exposed_all_reduce") == "quiet"


def test_the_evidence_can_be_asked_for(examine: Any) -> None:
    """The query returns the time of the operation's kernels."""
    assert examine(job(100)).answers("exposed_all_reduce") == [(900_000, 900_000)]
