"""Waiting for the workers of a data loader."""

from typing import Any

import pytest
from examples.loader_workers_starved import QUEUE
from kineto_builder import GEMM, KinetoBuilder


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
