"""Calls that wait for the device and leave it idle."""

from typing import Any

from examples.draining_sync import fires
from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder


def test_the_operator_is_named(examine: Any) -> None:
    """The sentence names the operator that a user calls, and how often."""
    assert "aten::item (cudaStreamSynchronize): 2 calls" in examine(fires()).why("draining_sync")


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
