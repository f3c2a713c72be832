"""Waiting for the workers of a data loader."""

from typing import Any

import pytest
from examples.loader_workers_starved import QUEUE
from fleet import meet
from kineto_builder import GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.job import gather


def job(*waits_us: float, queue: str = QUEUE) -> KinetoBuilder:
    """Steps that wait this long for the queue, then 206 us for a kernel."""
    b = KinetoBuilder()
    for wait_us in waits_us:
        with b.step():
            b.annotation(queue, wait_us)
            b.launch(GEMM, 200)
            b.sync()
    return b


def test_workers_that_deliver_together_are_waited_for_together(examine: Any) -> None:
    """Two workers that need two steps for a batch each stall every second step."""
    found = examine(job(400, 1, 400, 1, 400, 1))
    assert found.status("loader_workers_starved") == "fires"


def test_a_loader_in_line_is_something_else(examine: Any) -> None:
    """Without workers it is the finding `loader_stall`."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.loader(400)
            b.launch(GEMM, 200)
            b.sync()
    assert examine(b).status("loader_workers_starved") == "quiet"


def test_a_queue_that_is_read_under_a_busy_device_is_free(examine: Any) -> None:
    """A wait for workers that a kernel outlasts costs nothing."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 1000)
            b.annotation(QUEUE, 600)
            b.sync()
    assert examine(b).status("loader_workers_starved") == "quiet"


@pytest.mark.parametrize("queue", ["Iterator::Root::Prefetch", "DALIGenericIterator.__next__"])
def test_other_loaders_work_ahead_too(examine: Any, queue: str) -> None:
    """tf.data and DALI fill queues of their own."""
    found = examine(job(400, 400, 400, queue=queue))
    assert found.status("loader_workers_starved") == "fires"


def test_steps_that_wait_by_turns_are_even_on_average(examine: Any) -> None:
    """Steps of 606 and 207 us: twice the workers leave 206, for which they need 203 a batch."""
    found = examine(job(400, 1, 400, 1, 400, 1, 400, 1))
    assert found.savings_us("loader_workers_starved") == (0, 200.5, 200.5)


def test_workers_that_start_within_the_trace_are_left_out(examine: Any) -> None:
    """One step waits 900 us, longer than two others take."""
    assert examine(job(1, 1, 1, 900, 1, 1)).status("loader_workers_starved") == "quiet"


def test_a_queue_that_runs_dry_once_is_no_start(examine: Any) -> None:
    """One step waits 390 us, which is less than two others take: all of it counts."""
    found = examine(job(1, 1, 1, 390, 1, 1))
    assert found.savings_us("loader_workers_starved")[2] == pytest.approx(395 / 6, abs=0.001)


def test_the_first_step_waits_for_the_start_sooner(examine: Any) -> None:
    """390 us are twice what any other step waits; with 300 us in another they are not."""
    assert examine(job(390, 1, 1, 1, 1, 1)).status("loader_workers_starved") == "quiet"
    found = examine(job(390, 1, 1, 300, 1, 1))
    assert found.savings_us("loader_workers_starved")[2] == pytest.approx(694 / 6, abs=0.001)


def in_bursts(wait_us: float) -> list[KinetoBuilder]:
    """Two ranks, of which by turns one waits for its loader, and the other one for that rank."""
    builders = [KinetoBuilder(rank, 2) for rank in range(2)]
    for number in range(8):
        opened = [b.step() for b in builders]
        for b, one in zip(builders, opened, strict=True):
            one.__enter__()
            b.annotation(QUEUE, wait_us if number % 2 == b.rank else 5)
            b.launch(GEMM, 1000)
        meet(builders, 100)
        for b, one in zip(builders, opened, strict=True):
            b.sync()
            one.__exit__(None, None, None)
    return builders


def test_ranks_that_wait_by_turns_need_twice_the_workers_each() -> None:
    """A batch takes two steps of 1.7 ms; twice as many workers make one in less than two of 1.1.

    So no rank waits, though each of them waits in half of the steps only.
    """
    found = replayed(in_bursts(600))
    ready = gather([grouped_facts_of(b) for b in in_bursts(5)])
    real = found.step_ns - mean_step_ns(ready)
    saving = found.savings["loader_workers_starved"]
    assert real > 0.3 * found.step_ns
    assert saving.likely_ns == pytest.approx(real, abs=0.03 * found.step_ns)
    assert saving.low_ns <= real <= saving.high_ns
