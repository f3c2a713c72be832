"""Findings become fixes: ranked, merged over ranks, and never worth more than the budget."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.claims import Pieces
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnosis import Limits
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.fixes import rank_fixes
from perfdiag.classifiers.verdicts import judge_rank

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHARED = Path(__file__).parents[2] / "../shared"
KINETO = SHARED / "traces/kineto"


def loader_job(rank: int, loader_us: float, world_size: int = 2) -> KinetoBuilder:
    """Two steps: load, then 1006 us for a kernel."""
    b = KinetoBuilder(rank=rank, world_size=world_size)
    for _ in range(2):
        with b.step():
            b.loader(loader_us)
            b.launch(GEMM, 1000)
            b.sync()
    return b


def broken(facts: RankFacts, limits: Limits) -> Any:
    msg = "division by nought"
    raise ZeroDivisionError(msg)


def test_a_broken_diagnosis_costs_only_itself(examine: Any) -> None:
    """It yields a finding that says so, and the others still come."""
    facts, known = examine(loader_job(0, 400)).facts, all_diagnoses()
    found = diagnose_rank(facts, [(known[0][0], broken), *known[1:]], judge_rank(facts).unknown)
    assert found.findings[0].status == "failed"
    assert found.findings[0].why == "ZeroDivisionError: division by nought"
    assert [fix.id for fix in rank_fixes([found])] == ["loader_stall"]


def test_no_verdict_no_fix(examine: Any) -> None:
    """Where no step has a verdict no diagnosis applies."""
    found = examine(loader_job(0, 400)).distrusted()
    assert {f.status for f in found.diagnosed.findings} == {"not applicable"}
    assert found.fixes == []


def test_only_steps_with_a_verdict_are_claimed(examine: Any) -> None:
    """A step without a verdict appears in no fix, and does not thin the mean."""
    found = examine(loader_job(0, 400))
    found.facts.trusted[0] = False
    (fix,) = found.fixes
    assert fix.steps == [1]
    assert fix.saving_high_ns == 400_000


def test_a_trace_without_device_has_no_fix(examine_path: Callable[[Path], Any]) -> None:
    """What a host does alone is no finding about device time."""
    found = examine_path(FIXTURES / "ddp_cpu/rank0.json.gz")
    assert {f.status for f in found.diagnosed.findings} == {"not applicable"}
    assert found.fixes == []


def test_savings_too_small_to_measure_are_left_out(examine: Any) -> None:
    """A wait of 1.9 % is a fix, one of 0.5 % is none."""
    assert [fix.id for fix in examine(loader_job(0, 20)).fixes] == ["loader_stall"]
    assert examine(loader_job(0, 5)).fixes == []


def test_ranks_are_merged(examine: Any) -> None:
    """One fix names the ranks where it is material; its mean is over their steps alone."""
    ranks = [examine(loader_job(rank, us)).diagnosed for rank, us in enumerate((400, 1, 600, 1))]
    (fix,) = rank_fixes(ranks)
    assert fix.ranks == [0, 2]
    assert fix.steps == [0, 1]
    assert fix.saving_high_ns == 500_000
    assert fix.why.startswith("Rank 2: ")


def test_what_is_left_may_be_added_up_over_fixes(examine: Any) -> None:
    """After others a fix is worth its mean over the steps of all ranks: half, on half of them."""
    ranks = [examine(loader_job(rank, us)).diagnosed for rank, us in enumerate((400, 1))]
    (fix,) = rank_fixes(ranks)
    assert fix.saving_ns_per_step == 400_000
    assert fix.saving_after_previous_ns == 200_000


def test_the_same_time_is_saved_once(examine: Any) -> None:
    """A blocking copy and Python after it: the second fix is worth what the first leaves."""
    b = KinetoBuilder()
    for _ in range(6):
        with b.step():
            with b.op("aten::to", 2), b.op("aten::copy_", 2):
                b.copy("HtoD", 3_000_000, 50, pageable=True)
            b.idle(300)
            b.launch(GEMM, 500)
    first, second = examine(b).fixes
    assert (first.id, second.id) == ("pageable_copy", "python_overhead")
    assert first.saving_after_previous_ns == first.saving_ns_per_step
    assert 0 <= second.saving_after_previous_ns < second.saving_ns_per_step


def random_job(seed: int) -> KinetoBuilder:
    """A program of a few steps, in which anything may follow anything."""
    chance = Random(seed)
    b = KinetoBuilder(world_size=2, latency_us=chance.choice([2, 9]))
    acts: list[Callable[[], object]] = [
        lambda: b.loader(chance.randint(1, 400)),
        lambda: b.launch(GEMM, chance.randint(2, 300)),
        lambda: b.launch(ELEMENTWISE, chance.randint(1, 90)),
        lambda: b.launch(ELEMENTWISE, chance.randint(1, 9), stream=COMM_STREAM),
        lambda: b.copy("HtoD", 1 << 20, chance.randint(5, 200), pageable=chance.random() < 0.5),
        lambda: b.copy("DtoH", 4, 2, pageable=True, stream=21),
        lambda: b.collective("allreduce", 1 << 20, chance.randint(5, 300)),
        lambda: b.collective("allreduce", 1 << 20, 80, stream=COMPUTE_STREAM),
        lambda: b.wait_event(COMPUTE_STREAM, on=COMM_STREAM),
        lambda: b.overhead(chance.randint(5, 200)),
        lambda: b.idle(chance.randint(5, 300)),
        lambda: b.sync(chance.choice([None, COMPUTE_STREAM])),
    ]
    for _ in range(chance.randint(1, 4)):
        with b.step():
            for act in chance.choices(acts, k=chance.randint(5, 60)):
                act()
    return b


@pytest.mark.parametrize("seed", range(8))
def test_no_finding_takes_more_than_its_leaves_hold(examine: Any, seed: int) -> None:
    """Step by step, what a finding may save is at most what the leaves that it names hold."""
    found = examine(random_job(seed))
    facts, unknown = found.facts, judge_rank(found.facts).unknown
    for finding in found.diagnosed.findings:
        assert finding.status != "failed", finding.why
        pieces = Pieces.of(facts, finding.claims, unknown)
        take = pieces.take(finding.claims)
        assert (take.low <= take.mid + 1e-12).all()
        assert (take.mid <= take.high + 1e-12).all()
        leaves = {leaf for one in finding.claims for leaf in one.leaves}
        saved = pieces.saved(take.high, take.taken).tolist()
        steps = facts.model.steps
        for start, end, ns in zip(steps.ts_ns, steps.end_ns, saved, strict=True):
            budget = facts.timeline.budget(int(start), int(end))
            assert ns <= sum(budget.get(leaf, 0) for leaf in leaves) + 1e-6


@pytest.mark.parametrize("seed", range(8, 16))
def test_fixes_together_save_no_more_than_the_budget(examine: Any, seed: int) -> None:
    """In ranking order each is worth what is left, and all of them at most the claimable time."""
    found = examine(random_job(seed))
    facts, ranked = found.facts, found.fixes
    steps = len(facts.model.steps.ts_ns)
    left = [fix.saving_after_previous_ns for fix in ranked]
    named = {f.diagnosis.id: f for f in found.diagnosed.findings}
    leaves = {leaf for fix in ranked for one in named[fix.id].claims for leaf in one.leaves}
    budget = facts.timeline.budget(*facts.span_ns)
    assert sum(left) * steps <= sum(budget.get(leaf, 0) for leaf in leaves)
    for fix in ranked:
        assert 0 <= fix.saving_after_previous_ns <= fix.saving_ns_per_step
        assert 0 <= fix.saving_low_ns <= fix.saving_ns_per_step <= fix.saving_high_ns
    assert ranked == sorted(ranked, key=lambda f: -f.saving_after_previous_ns * f.confidence)


@pytest.mark.skipif(not KINETO.is_dir(), reason="needs the collection of real traces")
@pytest.mark.parametrize(
    ("trace", "first"),
    [
        ("training/mi300_8rank_resnet_act_checkpoint", "exposed_all_reduce"),
        ("nvidia/h100_owlv2", "loader_stall"),
        ("nvidia/h100_bert_small", "launch_bound_small_kernels"),
        ("nvidia/a100_nccl_metadata", "launch_bound_small_kernels"),
    ],
)
def test_real_traces(examine_path: Callable[[Path], Any], trace: str, first: str) -> None:
    """What is known to bound a real trace comes first."""
    found = examine_path(KINETO / f"{trace}.json.gz")
    assert found.fixes[0].id == first
