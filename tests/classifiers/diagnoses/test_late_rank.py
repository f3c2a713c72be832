"""`late_rank` beyond its example."""

from collections.abc import Callable
from typing import Any

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder

Examine = Callable[[list[KinetoBuilder]], Any]


def exchanging(experts_us: float, loads_us: float = 10, name: str = "all_to_all") -> list[Any]:
    """Two ranks that exchange twice a step; the second computes for so long in between."""
    builders = [KinetoBuilder(rank, 2) for rank in range(2)]
    for _ in range(3):
        opened = [b.step() for b in builders]
        for step in opened:
            step.__enter__()
        for b, compute_us, load_us in zip(builders, (500, experts_us), (10, loads_us), strict=True):
            b.loader(load_us)
            b.launch(GEMM, compute_us)
        end_us = max(b.clock.free[COMPUTE_STREAM] / 1000 for b in builders) + 100
        for b, step in zip(builders, opened, strict=True):
            b.collective(name, 1 << 20, 1, until_us=end_us)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
            step.__exit__(None, None, None)
    return builders


def test_experts_that_get_more_tokens_are_uneven_work(examine: Examine) -> None:
    """The busiest rank computes for 800 us longer than the first before they exchange."""
    why = examine(exchanging(1300)).why("late_rank")
    assert "100% of that is in exchanges" in why
    assert "unevenly spread" in why
    longer = float(why.split("Rank 1 computes ")[1].split(" us of a step longer")[0])
    assert longer == pytest.approx(800, rel=0.02)


def test_a_rank_that_loads_before_an_exchange_is_late(examine: Examine) -> None:
    """Its work is that of the others: nothing is spread unevenly."""
    why = examine(exchanging(500, loads_us=800)).why("late_rank")
    assert "unevenly" not in why
    assert "is for rank 1" in why


def test_a_rank_that_computes_before_a_reduction_is_late(examine: Examine) -> None:
    """Nobody sends it more of the work."""
    why = examine(exchanging(1300, name="allreduce")).why("late_rank")
    assert "unevenly" not in why
    assert "is for rank 1" in why
