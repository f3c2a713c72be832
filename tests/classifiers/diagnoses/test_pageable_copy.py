"""Copies that block the host."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder
from plain_model import facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.job import gather


def job(*, pageable: bool) -> KinetoBuilder:
    """A copy of 500 us and a kernel of 100 us."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            with b.op("aten::copy_", 5):
                b.copy("HtoD", 3_000_000, 500, pageable=pageable)
            b.launch(GEMM, 100)
            b.sync()
    return b


def with_blocking_call(b: KinetoBuilder) -> KinetoBuilder:
    """As ROCm records it: the call blocks, and the name does not tell the kind of memory."""
    for event in b.clock.events:
        if event["name"] == "cudaMemcpyAsync":
            event["name"] = "hipMemcpyWithStream"
        if event["name"].startswith("Memcpy HtoD"):
            event["name"] = "Memcpy HtoD (Host -> Device)"
    return b


def test_a_blocking_call_costs_the_refill_too(examine: Any) -> None:
    """After a call that blocks, launch (4 us) and start (2 us) of the kernel come on top."""
    blocking = with_blocking_call(job(pageable=True))
    assert examine(blocking).savings_us("pageable_copy") == (250, 378, 506)


def test_a_pinned_copy_is_none(examine: Any) -> None:
    """An asynchronous copy from pinned memory blocks nobody."""
    assert examine(job(pageable=False)).status("pageable_copy") == "quiet"


def test_copies_by_a_blocking_call_can_be_asked_for(examine: Any) -> None:
    """The query returns the time of all three copies by the sign of their call as well."""
    blocking = with_blocking_call(job(pageable=True))
    assert examine(blocking).answers("pageable_copy") == [(1_500_000, 1_500_000)]


def behind(*, pageable: bool) -> KinetoBuilder:
    """Four launches of 100 us each; the host runs ahead, unless a copy makes it wait."""
    b = KinetoBuilder()
    for _ in range(6):
        with b.step():
            b.copy("HtoD", 3_000_000, 50, pageable=pageable)
            b.idle(300)
            b.launch(GEMM, 500)
    return b


def test_the_work_of_the_host_after_a_blocking_copy_may_be_hidden(examine: Any) -> None:
    """The device idles while the host works towards its launch, for it could not do so before."""
    found = replayed([behind(pageable=True)])
    real = found.step_ns - mean_step_ns(gather([facts_of(behind(pageable=False))]))
    assert real > 0.3 * found.step_ns
    assert found.savings["pageable_copy"].high_ns >= real


def test_a_copy_that_is_pinned_is_not_waited_for() -> None:
    """The host works on while the kernel before the copy runs.

    How much of its 50 us the copy still takes is a guess: by as much what is likely may be off.
    """
    found = replayed([behind(pageable=True)])
    real = found.step_ns - mean_step_ns(gather([facts_of(behind(pageable=False))]))
    assert found.savings["pageable_copy"].likely_ns == pytest.approx(real, abs=50_000)
