"""Events that are recorded and queried while the device waits."""

from typing import Any

from kineto_builder import ELEMENTWISE, KinetoBuilder


def test_a_watchdog_costs_no_launch(examine: Any) -> None:
    """Queries of a thread that launches nothing hold up nobody."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(20):
                b.clock.tid += 1
                for _ in range(3):
                    b.clock.call("cudaEventQuery", 4_000)
                b.clock.tid -= 1
                b.launch(ELEMENTWISE, 3)
            b.sync()
    assert examine(b).status("too_many_events") == "quiet"


def test_one_call_that_hangs_is_something_else(examine: Any) -> None:
    """A single call of 500 us is not too many events."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.clock.call("cudaEventQuery", 500_000)
            for _ in range(20):
                b.launch(ELEMENTWISE, 3)
            b.sync()
    assert examine(b).status("too_many_events") == "quiet"


def test_rocm_spells_them_alike(examine: Any) -> None:
    """`hipEventRecord` is one of them."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(20):
                for _ in range(3):
                    b.clock.call("hipEventRecord", 4_000)
                b.launch(ELEMENTWISE, 3, api="hipLaunchKernel")
            b.sync()
    found = examine(b)
    assert found.status("too_many_events") == "fires"
    assert "3.0 a kernel" in found.why("too_many_events")
