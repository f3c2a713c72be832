"""Calls that wait for the device and leave it idle."""

from typing import Any

import pytest
from examples.draining_sync import fires
from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.verdicts import judge_rank


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


def drained_by(call: str) -> KinetoBuilder:
    """The device runs dry under a call after each kernel, and the host works for 100 us."""
    b = KinetoBuilder()
    for _ in range(4):
        with b.step():
            for _ in range(4):
                b.launch(GEMM, 300)
                if call in ("HtoD", "DtoH"):
                    b.copy(call, 1 << 14, 3, pageable=True)
                else:
                    with b.op("aten::item", 2):
                        b.sync(COMPUTE_STREAM)
                b.idle(100)
    for event in b.clock.events:
        if event["name"] == "cudaMemcpyAsync":
            event["name"] = "hipMemcpyWithStream"
    return b


def fires_on(b: KinetoBuilder) -> set[str]:
    """What is found in a trace."""
    facts = facts_of(b)
    found = diagnose_rank(facts, all_diagnoses(), judge_rank(facts).unknown).findings
    return {one.diagnosis.id for one in found if one.status == "fires"}


@pytest.mark.parametrize("read", ["item", "DtoH"])
def test_a_read_after_which_the_host_works_drains_the_device(read: str) -> None:
    """So does a copy to the host, whose values are wanted there."""
    assert "draining_sync" in fires_on(drained_by(read))


def test_a_copy_to_the_device_is_left_to_its_own_finding() -> None:
    """Idle times after those that block are no refills after reads."""
    found = fires_on(drained_by("HtoD"))
    assert "pageable_copy" in found
    assert "draining_sync" not in found
