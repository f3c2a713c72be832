"""All ranks together: who comes late, and what it was doing."""

from dataclasses import replace
from typing import Any

import pytest
from fleet import Fault, fleet
from generate import straggler
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from plain_model import facts_of

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.job import Job, gather
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.trace_schemas.report import LEAVES


def job_of(builders: list[KinetoBuilder]) -> Job:
    return gather([facts_of(b) for b in builders])


def meshed(builders: list[KinetoBuilder]) -> Job:
    """A job of which the process groups are known."""
    return gather([grouped_facts_of(b) for b in builders])


def blamed(job: Job) -> str:
    """The leaf in which the culprit spent most of the time for which the others waited."""
    assert job.waits is not None
    assert job.culprit is not None
    return LEAVES[int(job.waits.charged_ns[:, job.culprit].sum(axis=0).argmax())]


def budgets(job: Job) -> list[dict[str, int]]:
    return [judge_rank(facts).budget_ns for facts in job.ranks]


CAUSES: dict[Fault, str] = {"loader": "input", "gc": "host_other", "kernels": "compute_kernel"}


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("fault", sorted(CAUSES))
@pytest.mark.parametrize("dose", [0.1, 0.2, 0.5])
def test_the_late_rank_is_named_with_its_cause(ranks: int, fault: Fault, dose: float) -> None:
    """From a tenth of a step on, whatever it is that makes one rank late."""
    job = job_of(fleet(ranks, fault, dose, late=ranks - 2))
    assert job.culprit == ranks - 2
    assert blamed(job) == CAUSES[fault]


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("fault", sorted(CAUSES))
def test_the_late_rank_is_named_on_a_mesh(ranks: int, fault: Fault) -> None:
    """Its waits reach it through the ranks that wait for those that wait for it."""
    job = meshed(fleet(ranks, fault, 0.1, late=ranks - 2, mesh=True))
    assert job.culprit == ranks - 2
    assert blamed(job) == CAUSES[fault]


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("dose", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("late", [1, -2])
def test_the_rank_with_a_slow_link_is_named(ranks: int, dose: float, late: int) -> None:
    """Not the neighbours, who come late to other groups since their common group is slow."""
    late %= ranks
    job = meshed(fleet(ranks, "link", dose, late=late))
    assert job.culprit == late
    why = job.verdict(job.charged(budgets(job))).why
    assert f"Rank {late}'s link is slow: collectives of its groups transfer" in why
    assert f", {dose * 12:.2g}" in why.split("as long as those of others")[1]


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("fault", [*sorted(CAUSES), "link"])
@pytest.mark.parametrize("mesh", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_small_fault_accuses_no_other(ranks: int, fault: Fault, mesh: bool, seed: int) -> None:
    """At a twentieth of a step the culprit is the right one or none."""
    assert meshed(fleet(ranks, fault, 0.05, seed=seed, mesh=mesh)).culprit in (1, None)


def test_waits_for_the_neighbours_of_a_slow_link_lead_to_its_rank() -> None:
    """Ranks of other rows and columns wait for it although they never meet it but at the end."""
    job = meshed(fleet(16, "link", 0.2, late=5))
    for rank in (0, 2, 10, 15):
        waits = job.ranks[rank].waits
        assert waits
        assert waits[0].late_rank == 5
        assert next(iter(waits[0].leaf_ns)) == "collective_transfer"
        assert waits[0].time_ns > 10 * sum(wait.time_ns for wait in waits[1:])


def test_the_larger_of_two_faults_is_named() -> None:
    """A rank that loads for half of a step costs more than a link that takes a tenth."""
    builders = fleet(4, "link", 0.1, late=1)
    late = fleet(4, "loader", 0.5, late=2, mesh=True)
    slow, loads = meshed(builders), meshed(late)
    assert (slow.culprit, loads.culprit) == (1, 2)
    both = replace(loads, links=slow.links)
    assert both.culprit == 2
    assert "Rank 2 comes late" in both.verdict(both.charged(budgets(both))).why


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_named_on_a_clean_mesh(ranks: int, seed: int) -> None:
    """Groups whose transfers differ by chance have no slow link."""
    assert meshed(fleet(ranks, seed=seed, mesh=True)).culprit is None


@pytest.mark.parametrize("ranks", [2, 4, 16])
@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_named_on_a_clean_job(ranks: int, seed: int) -> None:
    """Ranks that differ by chance are late by turns, and by little."""
    assert job_of(fleet(ranks, seed=seed)).culprit is None


def test_waits_and_transfers_are_told_apart(examine: Any) -> None:
    """The late rank only transfers; what the other's collective takes longer is waiting."""
    job = gather([examine(b).facts for b in fleet(2, "loader", 0.5)])
    waiting, late = budgets(job)
    assert late.get("collective_wait", 0) < 0.02 * sum(late.values())
    assert waiting["collective_wait"] == pytest.approx(4 * 0.5 * 12_000_000, rel=0.05)
    assert waiting["collective_transfer"] == pytest.approx(late["collective_transfer"], rel=0.02)
    assert "collective_unsplit" not in waiting | late


def test_charging_moves_time_and_loses_none() -> None:
    """The job's budget holds as much as those of its ranks; the wait lies where it came from."""
    job = job_of(fleet(4, "loader", 2.0))
    own = budgets(job)
    charged = job.charged(own)
    assert sum(charged.values()) == sum(sum(budget.values()) for budget in own)
    assert charged["input"] > sum(budget.get("input", 0) for budget in own)
    assert charged.get("collective_wait", 0) <= 4 * len(own)
    assert job.verdict(charged).label == "host-bound"


def test_the_cause_may_lie_before_the_collective() -> None:
    """Rank 1 loads first and computes while rank 0 waits: its loader is to blame."""
    job = job_of(list(straggler()))
    assert job.culprit == 1
    assert blamed(job) == "input"


def test_ranks_whose_traces_are_missing_leave_transfers_in_doubt() -> None:
    """What two of four ranks take together may still be waiting for the others."""
    job = job_of(fleet(4, "loader", 0.5)[:2])
    assert job.culprit == 1
    assert budgets(job)[1]["collective_unsplit"] > 0
    assert "collective_transfer" not in budgets(job)[1]


def test_ranks_that_meet_nowhere_are_alone() -> None:
    """Without a collective in common nothing is charged, and nobody is named."""
    builders = [KinetoBuilder(rank, 2) for rank in range(2)]
    for b in builders:
        with b.step():
            b.launch(GEMM, 100)
            b.sync()
    job = job_of(builders)
    assert (job.waits, job.clocks, job.culprit, job.notices) == (None, None, None, ())


def test_two_traces_of_one_rank_are_not_matched() -> None:
    """A rank that is there twice may be from two jobs: nobody waits for himself."""
    facts = [facts_of(b) for b in fleet(2, "loader", 0.5)]
    job = gather([facts[0], replace(facts[1], rank=0)])
    assert (job.waits, job.culprit) == (None, None)


def test_collectives_without_a_partner_are_counted() -> None:
    """What is in no other trace is said to be, not dropped in silence."""
    one, other = fleet(2, "loader", 0.5)
    with one.step():
        one.collective("broadcast", 1 << 20, 50)
        one.sync()
    job = job_of([one, other])
    assert job.waits is None
    found = [(n.kind, n.severity, n.count) for n in job.notices]
    assert found == [("collective.unmatched", "warning", 9)]


def stages() -> tuple[KinetoBuilder, KinetoBuilder]:
    """Two stages of a pipeline: the second waits for the first, which then waits in turn."""
    first, second = KinetoBuilder(0, 2), KinetoBuilder(1, 2)
    begin_us = first.now_us
    with first.step():
        first.launch(GEMM, 500)
        first.collective("send", 1 << 20, 50)
        first.collective("recv", 1 << 20, 1, until_us=begin_us + 1100)
        first.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
        first.launch(GEMM, 400)
        first.sync()
    with second.step():
        second.collective("recv", 1 << 20, 1, until_us=begin_us + 565)
        second.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
        second.launch(GEMM, 400)
        second.collective("send", 1 << 20, 50)
        second.sync()
    return first, second


def test_a_pipeline_bubble_is_nobodys_fault() -> None:
    """Stages wait for each other's share of the schedule: no culprit, and the wait stays."""
    job = job_of(list(stages()))
    assert job.culprit is None
    charged = job.charged(budgets(job))
    assert charged["collective_wait"] > 0.3 * sum(charged.values())
    assert "pipeline bubble" in job.verdict(charged).why


def shifted(facts: list[RankFacts], by_ns: int) -> Job:
    origin = 1_700_000_000_000_000_000
    moved = [replace(f, clock_unix_ns=origin + i * by_ns) for i, f in enumerate(facts)]
    return gather(moved)


def test_clocks_that_differ_are_set_right() -> None:
    """A clock that is 3 ms off changes nothing but the notice."""
    facts = [facts_of(b) for b in fleet(4, "loader", 0.5)]
    job = shifted(facts, 3_000_000)
    assert job.culprit == 1
    assert job.clocks is not None
    assert (job.clocks.offset_ns - job.clocks.offset_ns[0]).tolist() == [0, 3e6, 6e6, 9e6]
    assert job.notices[0].kind == "clock.offset"


def test_ends_that_do_not_agree_withhold_the_verdict() -> None:
    """Collectives that end far apart on ranks are not the same, or their times are not."""
    one, other = fleet(2, "loader", 0.1)
    kernels = [e for e in other.clock.events if "nccl" in e["name"] and e["cat"] == "kernel"]
    for index, event in enumerate(kernels):
        event["ts"] += 4_000_000 * (index % 3)
    job = job_of([one, other])
    assert job.waits is None
    assert job.culprit is None
    assert [(n.kind, n.severity) for n in job.notices] == [("clock.offset", "warning")]


LAG_US, PERIOD_US = 6_000, 10_000


def paced(rank: int, lag_us: float, works_us: float) -> KinetoBuilder:
    """Steps whose host launches after a lag, works for a time, and never waits for the device."""
    b = KinetoBuilder(rank, 2)
    begin_us = b.now_us
    for number in range(4):
        until_us = b.now_us + works_us
        meets_us = begin_us + number * PERIOD_US + LAG_US + 2_500
        with b.step():
            with b.op("aten::before", lag_us):
                b.launch(GEMM, 2_000)
                b.collective("allreduce", 1 << 20, 50, until_us=meets_us)
                b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            with b.op("aten::after", until_us - b.now_us):
                pass
    return b


@pytest.mark.parametrize(("works_us", "culprit"), [(PERIOD_US, None), (PERIOD_US / 2, 1)])
def test_a_rank_is_late_as_far_as_its_host_works_longer(
    works_us: float, culprit: int | None
) -> None:
    """The device of the other waits for it as long in either job; one host has fallen behind."""
    job = job_of([paced(0, 0, works_us), paced(1, LAG_US, PERIOD_US)])
    assert job.waits is not None
    assert job.waits.charged_ns[0, 1].sum() > 0.4 * 4 * PERIOD_US * 1000
    assert job.culprit == culprit


def reducing(rank: int, paused_us: float) -> KinetoBuilder:
    """Steps of four parts, each reduced beside the next one; the late rank pauses before all."""
    b = KinetoBuilder(rank, 2)
    begin_us = b.now_us
    for number in range(4):
        first_us = begin_us + number * PERIOD_US + LAG_US
        with b.step():
            if paused_us:
                b.annotation("gc", paused_us)
            for part in range(4):
                b.launch(GEMM, 500)
                b.collective("allreduce", 1 << 20, 50, until_us=first_us + 600 * (part + 1))
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
            b.idle(max(0.0, begin_us + (number + 1) * PERIOD_US - b.now_us))
    return b


def test_reductions_beside_other_work_do_not_hide_why_a_rank_is_late() -> None:
    """All that the others wait for it is due to its pause, not to what it computes after that."""
    job = job_of([reducing(0, 0), reducing(1, LAG_US)])
    assert job.waits is not None
    late = job.waits.charged_ns[0, 1]
    assert job.culprit == 1
    assert blamed(job) == "host_other"
    assert late[LEAVES.index("compute_kernel")] < 0.02 * late.sum()
