"""One process, several devices."""

from typing import Any

import pytest
from kineto_builder import GEMM, KinetoBuilder


def two_devices(name: str) -> KinetoBuilder:
    """A range in which a slow host launches a kernel for each of two devices."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            with b.annotation(name):
                b.idle(100)
                b.launch(GEMM, 100)
                b.launch(GEMM, 100, stream=8)
            b.sync()
    for event in (e for e in b.clock.events if e["pid"] == 0 and e["tid"] == 8):
        event["pid"] = 1
        event.get("args", {})["device"] = 1
    return b


def test_the_host_launches_for_both(examine: Any) -> None:
    """Of 106 us until the first kernel starts one process for each device saves half at best."""
    found = examine(two_devices("DataParallel.forward"))
    assert found.savings_us("data_parallel_module") == (0, 26.5, 53)


@pytest.mark.parametrize("name", ["DistributedDataParallel.forward", "forward"])
def test_several_devices_alone_are_no_fault(examine: Any, name: str) -> None:
    """A process may drive several devices in other ways."""
    assert examine(two_devices(name)).status("data_parallel_module") == "quiet"
