"""Streams that wait for each other."""

from typing import Any

from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def turns(side_us: float, *, copies: bool = False) -> KinetoBuilder:
    """Kernels of 40 us, and work on a second stream between them; an event takes 8 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(10):
                b.launch(GEMM, 40)
                b.wait_event(COMM_STREAM, on=COMPUTE_STREAM)
                b.clock.free[COMM_STREAM] += 8_000
                if copies:
                    b.copy("DtoD", 1 << 20, side_us, stream=COMM_STREAM)
                else:
                    b.launch(GEMM, side_us, stream=COMM_STREAM)
                b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
                b.clock.free[COMPUTE_STREAM] += 8_000
            b.sync()
    return b


def test_it_says_which_streams(examine: Any) -> None:
    """Both streams are named."""
    why = examine(turns(40)).why("serialised_streams")
    assert "stream 7" in why
    assert "stream 20" in why


def test_a_stream_of_few_kernels_is_no_stream_of_compute(examine: Any) -> None:
    """Streams with less than a tenth of the compute only help the other."""
    assert examine(turns(2)).status("serialised_streams") == "quiet"


def test_copies_are_another_finding(examine: Any) -> None:
    """Waiting for a copy is no lack of overlap of kernels."""
    assert examine(turns(40, copies=True)).status("serialised_streams") == "quiet"


def test_gaps_within_a_stream_are_not_meant(examine: Any) -> None:
    """A stream may be late by itself; no other stream's kernel ends there."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for stream in (COMPUTE_STREAM, COMM_STREAM):
                for _ in range(10):
                    b.launch(GEMM, 40, stream=stream)
                    b.clock.free[stream] += 8_000
                b.sync()
    assert examine(b).status("serialised_streams") == "quiet"
