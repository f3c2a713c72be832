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


def test_enough_compute_can_hide_all(examine: Any) -> None:
    """400 us of compute could hide all 300 us."""
    assert examine(job(400)).savings_us("exposed_all_reduce") == (150, 225, 300)


def test_operation_bytes_and_doubt_are_named(examine: Any) -> None:
    """The sentence names the operation, its bytes, and that one rank cannot tell waiting."""
    why = examine(job(100)).why("exposed_all_reduce")
    assert "all_reduce on stream 20" in why
    assert "6.291 MB" in why
    assert "may include waiting for other ranks" in why


def test_the_slices_of_the_figure_are_named(examine: Any) -> None:
    """All three all-reduces can be looked at."""
    (proof,) = examine(job(100)).finding("exposed_all_reduce").evidence
    assert [spot.end_ns - spot.ts_ns for spot in proof.spots] == [300_000] * 3
