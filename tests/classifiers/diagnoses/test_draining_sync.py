"""Calls that wait for the device and leave it idle."""

from typing import Any

from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder


def job() -> KinetoBuilder:
    """Two kernels of 100 us; between them the result is read, and Python takes 50 us."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 100)
            with b.op("aten::item", 2), b.op("aten::_local_scalar_dense", 2):
                b.sync(COMPUTE_STREAM)
            b.idle(50)
            b.launch(GEMM, 100)
            b.sync()
    return b


def test_the_refill_is_the_cost(examine: Any) -> None:
    """Idle after the reads 50 + 4 + 2 us a step, and 4 + 2 us after the first step: mean 59 us.

    The host waits longer than that, so that half of it is the least and all of it the most.
    """
    assert examine(job()).savings_us("draining_sync") == (29.5, 44.25, 59)


def test_the_operator_is_named(examine: Any) -> None:
    """The sentence names the operator that a user calls, and how often."""
    assert "aten::item (cudaStreamSynchronize): 2 calls" in examine(job()).why("draining_sync")


def test_a_host_that_waits_little_gains_little(examine: Any) -> None:
    """Where the host is busy for 300 us after a wait of 18, half of 18 us is sure to be saved.

    In each step but the first, the device idles for 306 us after the last read.
    """
    b = KinetoBuilder()
    for _ in range(20):
        with b.step():
            b.idle(300)
            b.launch(GEMM, 20)
            with b.op("aten::item", 2), b.op("aten::_local_scalar_dense", 2):
                b.sync(COMPUTE_STREAM)
    low, _, high = examine(b).savings_us("draining_sync")
    assert (low, high) == (19 * 9 / 20, 19 * 306 / 20)


def test_a_long_wait_for_a_busy_device_is_free(examine: Any) -> None:
    """One wait of 1 ms at the end of a step, after which the device idles for 6 us, is none."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for _ in range(5):
                b.launch(GEMM, 200)
            b.sync()
    assert examine(b).status("draining_sync") == "quiet"


def test_the_evidence_can_be_asked_for(examine: Any) -> None:
    """The query counts the calls of the operator."""
    assert examine(job()).answers("draining_sync") == [(2, 2)]
