"""Waiting for a data loader in line with the step."""

from typing import Any

from examples.loader_workers_starved import QUEUE
from kineto_builder import GEMM, KinetoBuilder


def job(*loaders: str) -> KinetoBuilder:
    """Each loader takes 400 us of a step, then a kernel 200."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for loader in loaders:
                b.annotation(loader, 400)
            b.launch(GEMM, 200)
            b.sync()
    return b


def test_a_loader_that_works_ahead_is_something_else(examine: Any) -> None:
    """Where workers fill a queue, it is they who are too slow."""
    assert examine(job(QUEUE)).status("loader_stall") == "quiet"


def test_the_loader_that_is_waited_for_longer_decides(examine: Any) -> None:
    """Workers that a step waits for less than for work in line do not make the loader theirs."""
    found = examine(job(QUEUE, "load_batch", "get_batch"))
    assert found.status("loader_stall") == "fires"
    assert found.status("loader_workers_starved") == "quiet"


def test_a_name_may_hold_anything(examine: Any) -> None:
    """The query returns the time of the ranges, whatever their name holds."""
    answers = examine(job("it's loading: load_batch")).answers("loader_stall")
    assert answers == [(1_200_000, 1_200_000)]
