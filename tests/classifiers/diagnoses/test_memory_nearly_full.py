"""`memory_nearly_full` beside its example."""

from collections.abc import Callable
from typing import Any

from counter_tables import counter_table
from examples.memory_nearly_full import job
from kineto_builder import GEMM, KinetoBuilder

Examine = Callable[[KinetoBuilder], Any]


def test_without_counters_nothing_is_known(examine: Examine) -> None:
    """The calls alone have many causes."""
    assert examine(job()).status("memory_nearly_full") == "not applicable"


def test_full_memory_alone_costs_nothing(examine: Examine) -> None:
    """An allocator that keeps what it has may fill the device."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 500)
            b.sync()
    rows = [{"memory.used [MiB]": 81_000, "memory.total [MiB]": 81_559}] * 20
    b.counters = counter_table(100, rows)
    assert examine(b).status("memory_nearly_full") == "quiet"


def test_the_size_of_the_device_may_come_from_the_trace(examine: Examine) -> None:
    """Most tables hold what is in use, and not what there is."""
    b = job()
    b.counters = counter_table(100, [{"memory.used [MiB]": 80_000}] * 20)
    assert examine(b).status("memory_nearly_full") == "fires"
