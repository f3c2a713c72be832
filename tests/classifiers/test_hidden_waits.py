"""Waits that other work hides, and what they cost later."""

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.job import Job, gather
from perfdiag.classifiers.labels import add_budgets
from perfdiag.classifiers.verdicts import judge_rank

STEPS, PARTS, PART_US = 4, 6, 500.0


def backward(
    rank: int, parts_us: list[float], transfer_us: float, ends_us: list[float]
) -> KinetoBuilder:
    """Steps of parts, each reduced beside the next ones; only their end waits for all of them.

    Args:
        rank: of two.
        parts_us: how long its device computes each.
        transfer_us: how long each reduction takes.
        ends_us: when the reductions of the late peer end; takes those of this rank if empty.
    """
    b, made = KinetoBuilder(rank, 2), []
    for step in range(STEPS):
        with b.step():
            for part, part_us in enumerate(parts_us):
                b.launch(GEMM, part_us)
                until = ends_us[step * PARTS + part] if ends_us else 0.0
                length = 1.0 if ends_us else transfer_us
                made.append(b.collective("allreduce", 1 << 20, length, until_us=until).end_us)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
    if not ends_us:
        ends_us += made
    return b


def job_of(late_us: list[float], transfer_us: float) -> Job:
    """A job whose rank 1 computes other lengths than rank 0, which does not come late."""
    ends: list[float] = []
    late = backward(1, late_us, transfer_us, ends)
    usual = backward(0, [PART_US] * PARTS, transfer_us, ends)
    return gather([facts_of(usual), facts_of(late)])


def costs_us(job: Job) -> tuple[float, float]:
    """What of a step rank 0 waits for rank 1 and nothing hides, and what that costs it."""
    assert job.waits is not None
    charged, cost = job.waits.charged_ns[0, 1].sum(), job.waits.cost_ns[0, 1].sum()
    return charged / STEPS / 1000, cost / STEPS / 1000


def test_a_rank_that_pushes_the_others_transfers_is_named() -> None:
    """Rank 0 waits beside its own work, but each of the reductions that queue ends later by it."""
    job = job_of([PART_US + 1000, *[PART_US] * (PARTS - 1)], 1000)
    charged, cost = costs_us(job)
    assert charged < 10
    assert cost == pytest.approx(1000, rel=0.03)
    assert job.culprit == 1
    why = job.verdict(add_budgets([judge_rank(facts).budget_ns for facts in job.ranks])).why
    assert "Rank 1 comes late, which costs the others 1" in why


@pytest.mark.parametrize(("transfer_us", "cost_us"), [(1000, 1000), (450, 750), (320, 100)])
def test_what_is_not_ready_does_not_begin_earlier(transfer_us: float, cost_us: float) -> None:
    """Without the wait the last reduction still waits for the last part: at 3 ms of the step.

    Of six the first ends after 1.5 ms and its transfer, and the last after six transfers: that is
    later by 1 ms, or than the last part and one transfer.
    """
    job = job_of([PART_US + 1000, *[PART_US - 200] * (PARTS - 1)], transfer_us)
    charged, cost = costs_us(job)
    assert charged < 15
    assert cost == pytest.approx(cost_us, abs=40)


def test_a_wait_that_pushes_nothing_costs_nothing() -> None:
    """Short reductions are done before the next part is: the last one is as early as ever."""
    charged, cost = costs_us(job_of([PART_US + 1000, *[PART_US - 200] * (PARTS - 1)], 50))
    assert charged < 15
    assert cost < 15


def test_a_rank_that_only_comes_later_is_not_named_for_what_it_pushes() -> None:
    """It pushes the others' transfers, but its device works no longer than theirs in a step."""
    job = job_of([PART_US + 1000, *[PART_US - 200] * (PARTS - 1)], 1000)
    assert costs_us(job)[1] > 900
    assert job.culprit is None


def test_costs_hold_what_is_charged() -> None:
    """A wait that nothing hides costs what the budget says of it, and little beside."""
    job = job_of([PART_US * 3] * PARTS, 100)
    charged, cost = costs_us(job)
    assert charged > 5000
    assert charged <= cost < 1.05 * charged + 200
