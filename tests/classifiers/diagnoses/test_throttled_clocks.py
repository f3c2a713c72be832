"""`throttled_clocks` beside its example."""

from collections.abc import Callable
from typing import Any

from counter_tables import counter_table
from examples.throttled_clocks import COOL, HOT, job
from kineto_builder import ELEMENTWISE, KinetoBuilder

Examine = Callable[[KinetoBuilder], Any]


def status(examine: Examine, rows: list[dict[str, object]], every_us: float = 10_000) -> str:
    b = job()
    b.counters = counter_table(every_us, rows)
    found: str = examine(b).status("throttled_clocks")
    return found


def test_without_counters_nothing_is_known(examine: Examine) -> None:
    """A trace alone does not tell a low clock from slow kernels."""
    assert examine(job()).status("throttled_clocks") == "not applicable"


def test_the_power_cap_alone_is_no_fault(examine: Examine) -> None:
    """A healthy device at full load runs into its power cap and lowers its clock."""
    capped = {"clocks.sm [MHz]": 1300, "clocks_event_reasons.active": "0x0000000000000004"}
    assert status(examine, [COOL] * 4 + [capped] * 5) == "quiet"


def test_a_slowdown_while_idle_costs_nothing(examine: Examine) -> None:
    """Clocks that are low before and after the kernels hold nothing up."""
    assert status(examine, [COOL] * 10 + [HOT] * 5) == "quiet"


def test_a_reason_without_a_lower_clock_costs_nothing(examine: Examine) -> None:
    """The driver may report a slowdown that does not show in the clock."""
    warm = {**HOT, "clocks.sm [MHz]": 1950}
    assert status(examine, [COOL] * 4 + [warm] * 5) == "quiet"


def test_without_reasons_the_clock_must_fall_with_the_temperature(examine: Examine) -> None:
    """A clock that gets lower sample by sample as the device gets hotter is throttled."""
    rows: list[dict[str, object]] = [
        {"clocks.sm [MHz]": 1980 - 50 * i, "temperature.gpu": 70 + i} for i in range(16)
    ]
    assert status(examine, rows, every_us=5_000) == "fires"


def test_kernels_bound_by_memory_do_not_follow_the_clock(examine: Examine) -> None:
    """What waits for memory takes as long at half the clock of multiprocessors."""
    b = KinetoBuilder()
    with b.step():
        b.launch(ELEMENTWISE, 80_000)
        b.sync()
    b.counters = counter_table(10_000, [COOL] * 4 + [HOT] * 5)
    assert examine(b).status("throttled_clocks") == "not applicable"


def test_the_limit_of_the_clock_is_what_it_is_compared_with(examine: Examine) -> None:
    """A device that is slow all the time shows it against its highest clock."""
    slow = {**HOT, "clocks.max.sm [MHz]": 1980}
    b = job()
    b.counters = counter_table(10_000, [slow] * 9)
    _, _, high = examine(b).savings_us("throttled_clocks")
    assert high == 20_000
