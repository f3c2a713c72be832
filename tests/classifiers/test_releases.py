"""Releases of memory wait for the device, and take their time after it."""

import pytest
from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.job import gather

STEPS, EACH = 5, 6


def releasing(own_us: float, *, reads: bool) -> KinetoBuilder:
    """A kernel, a read of its value, and a release of memory that takes a while after it."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            for _ in range(EACH):
                b.launch(GEMM, 300)
                if reads:
                    with b.op("aten::item", 2):
                        b.sync(COMPUTE_STREAM)
                    b.idle(1)
                waits_ns = max(b.clock.now, *b.clock.free.values()) - b.clock.now
                b.clock.call("cudaFree", waits_ns + round(own_us * 1000))
                b.idle(100)
    return b


@pytest.mark.parametrize("own_us", [40, 60, 200])
def test_without_the_read_the_release_waits_instead(own_us: float) -> None:
    """However short it is: all that the read's fix saves is the read's own 1 us."""
    found = replayed([releasing(own_us, reads=True)])
    without = mean_step_ns(gather([grouped_facts_of(releasing(own_us, reads=False))]))
    saving = found.savings["draining_sync"]
    assert saving.likely_ns == pytest.approx(found.step_ns - without, abs=1000)


@pytest.mark.parametrize("returns_early", [True, False])
def test_a_copy_and_its_synchronisation_are_one(returns_early: bool) -> None:
    """A blocking `.to()` of PyTorch: with pinned memory neither of its calls waits."""
    b = KinetoBuilder()
    for _ in range(6):
        with b.step():
            with b.op("aten::to", 1), b.op("aten::copy_", 1):
                b.copy("HtoD", 3_000_000, 50, pageable=not returns_early)
                b.sync(COMPUTE_STREAM)
            b.idle(300)
            b.launch(GEMM, 500)
    for event in b.clock.events:
        event["name"] = event["name"].replace("Pinned", "Pageable")
    saving = replayed([b]).savings["pageable_copy"]
    assert saving.likely_ns == pytest.approx(300_000, rel=0.05)
