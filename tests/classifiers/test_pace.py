"""How much longer the hosts of some ranks work than those of others."""

from collections.abc import Sequence

import pytest
from kineto_builder import GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.pace import longer_ns

USUAL_US = (1000, 1100, 900, 1050, 950)


def host(rank: int, steps_us: Sequence[float]) -> RankFacts:
    """Steps that take a host so long; it never waits for its device."""
    b = KinetoBuilder(rank, 2)
    for step_us in steps_us:
        with b.step(), b.op("aten::work", step_us):
            b.launch(GEMM, 10)
    return facts_of(b)


def test_a_host_that_works_longer_in_each_step_is_slower() -> None:
    """By what all its steps take longer, and not the other way round."""
    there_and_back = longer_ns([host(0, USUAL_US), host(1, [us + 300 for us in USUAL_US])])[0]
    assert there_and_back[0, 1] == pytest.approx(5 * 300_000, rel=0.02)
    assert there_and_back[1, 0] == 0


@pytest.mark.parametrize("steps_us", [(1000, 1000, 2500, 1000, 1000), (1500, 950, 1300, 900, 1100)])
def test_a_host_whose_steps_differ_as_much_is_not(steps_us: Sequence[float]) -> None:
    """One long step of five, or times that come and go, may be another rank's next time."""
    assert sum(steps_us) > sum(USUAL_US) + 700
    assert not longer_ns([host(0, USUAL_US), host(1, steps_us)])[0].any()
