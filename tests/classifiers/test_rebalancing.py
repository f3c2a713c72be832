"""Where a late rank takes longer than the others, and what it saves that it no longer does."""

import numpy as np
import pytest
from fleet import meet
from kineto_builder import GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.job import Job, gather
from perfdiag.classifiers.rebalancing import Excess, Rebalancing
from perfdiag.classifiers.replay import replay_job

STEPS, PARTS, PART_US, MORE_US = 4, 4, 1000.0, 800.0
COMPUTE = LEAF["compute_kernel"]


def meeting_often(more_us: list[float]) -> Job:
    """Three ranks that meet after each part of a step; the last one computes some parts longer."""
    builders = [KinetoBuilder(rank, 3) for rank in range(3)]
    for _ in range(STEPS):
        opened = [b.step() for b in builders]
        for step in opened:
            step.__enter__()
        for more in more_us:
            for b in builders:
                b.launch(GEMM, PART_US + (more if b.rank == 2 else 0.0))
            meet(builders, 100.0)
        for b, step in zip(builders, opened, strict=True):
            b.sync()
            step.__exit__(None, None, None)
    return gather([facts_of(b) for b in builders])


def excess(job: Job, longer_us: float) -> Excess:
    """What the last rank takes longer than the others, if that is so much of a step."""
    program = replay_job(job).program
    assert program is not None
    longer = np.zeros((1, len(LEAF)))
    longer[0, COMPUTE] = STEPS * longer_us * 1000
    return Rebalancing(program, job.ranks).excess(2, (0, 1), longer)[0]


def test_time_goes_where_the_rank_takes_longer() -> None:
    """In the first part of each step it takes 1.8 ms, in the others 1 ms as all do."""
    found = excess(meeting_often([MORE_US, 0, 0, 0]), MORE_US)
    share = found.share[: STEPS * PARTS, COMPUTE].reshape(STEPS, PARTS)
    assert share[:, 0] == pytest.approx(MORE_US / (PART_US + MORE_US), abs=0.01)
    assert share[:, 1:].max() < 0.01


def test_a_rank_that_is_slow_everywhere_takes_less_everywhere() -> None:
    """As one with low clocks."""
    found = excess(meeting_often([MORE_US] * PARTS), PARTS * MORE_US)
    share = found.share[: STEPS * PARTS, COMPUTE]
    assert share == pytest.approx(MORE_US / (PART_US + MORE_US), abs=0.01)


def test_no_more_goes_than_the_rank_takes() -> None:
    """Nor than all of a stretch."""
    found = excess(meeting_often([MORE_US, 0, 0, 0]), 100 * PART_US)
    assert found.share.max() == 1.0


def test_a_moment_has_the_share_of_its_stretch() -> None:
    """What lies before the first stretch has that of the first."""
    shares = np.zeros((2, len(LEAF)))
    shares[:, COMPUTE] = 0.25, 0.5
    found = Excess(np.array([100, 200]), shares)
    assert found.of(COMPUTE, np.array([0, 100, 199, 200, 500])).tolist() == [
        0.25,
        0.25,
        0.25,
        0.5,
        0.5,
    ]
