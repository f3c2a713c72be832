"""Asynchronous copies between the kernels of a stream."""

from contextlib import nullcontext
from typing import Any

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder


def job(kind: str, *, around: str = "", stream: int = COMPUTE_STREAM) -> KinetoBuilder:
    """A copy of 100 us between kernels of 400 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            with b.op(around) if around else nullcontext():
                b.wait_event(stream, on=COMPUTE_STREAM)
                b.copy(kind, 1 << 22, 100, stream=stream)
            b.launch(GEMM, 400)
            b.sync()
    return b


def test_what_the_backward_pass_fetches_counts(examine: Any) -> None:
    """Offloaded activations come back on the stream of the kernels."""
    found = examine(job("HtoD", around="autograd::engine::evaluate_function: OffloadBackward"))
    assert found.savings_us("copies_on_compute_stream") == pytest.approx((50, 75, 100), abs=0.0011)


def test_the_input_of_a_step_is_another_finding(examine: Any) -> None:
    """Copies to the device in the forward pass are `exposed_input_copy`."""
    assert examine(job("HtoD")).status("copies_on_compute_stream") == "quiet"


def test_copies_within_the_device_are_not_meant(examine: Any) -> None:
    """They take bandwidth of its memory, wherever they run."""
    assert examine(job("DtoD")).status("copies_on_compute_stream") == "quiet"


def test_a_stream_of_its_own_stops_no_kernel(examine: Any) -> None:
    """The next kernel runs beside the copy."""
    assert examine(job("DtoH", stream=COMM_STREAM)).status("copies_on_compute_stream") == "quiet"


def test_copies_that_block_the_host_are_another_finding(examine: Any) -> None:
    """To pageable memory the call returns when all is done."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 400)
            b.copy("DtoH", 1 << 22, 100)
            b.clock.events[-3]["name"] = "Memcpy DtoH (Device -> Pageable)"
            b.launch(GEMM, 400)
            b.sync()
    assert examine(b).status("copies_on_compute_stream") == "quiet"
