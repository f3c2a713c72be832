"""The self-test: what it says of single cases, and how it scores them."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from perfdiag.classifiers import judging, selftest, selftest_cases, verdicts
from perfdiag.classifiers.selftest import SelfTest, run_selftest, score
from perfdiag.classifiers.selftest_cases import Outcome, Problem, Said, run_case
from perfdiag.classifiers.selftest_plan import DAMAGES, DOSES, PROGRAMS, Case, plan
from perfdiag.profiler.simulator.corruptions import CORRUPTIONS
from perfdiag.profiler.simulator.faults import FAULTS
from perfdiag.trace_schemas.errors import EngineError

FEW = (
    Case("dense"),
    Case("recommendation"),
    Case("recommendation", "pageable_copies", 0.2),
    Case("recommendation", damage="durations_hour"),
)
LATE = Case("convolutional", "late_by_garbage", 0.1)


@cache
def outcome(case: Case) -> Outcome:
    return run_case(case)


def judged(case: Case, said: Said, *problems: Problem, truth: str = "compute-bound") -> Outcome:
    """An outcome by hand, with one label."""
    late = 1 if case.fault == "late_by_garbage" else None
    return Outcome(case, truth, late, said, ((truth, said.label),), problems)


RIGHT = Said("compute-bound")
UNFOUND = Problem("finding", "gc_pause", "nothing")


def test_a_healthy_program_is_called_healthy() -> None:
    """The label is the true one, and nothing is said to be wrong."""
    found = outcome(FEW[0])
    assert (found.truth, found.said.label) == ("compute-bound", "compute-bound")
    assert len(found.labels) >= 4
    assert found.problems == ()


def test_a_fault_is_found() -> None:
    """One of its findings fires, which did not fire before."""
    assert outcome(FEW[2]).problems == ()
    assert outcome(FEW[2]).said.fires & set(FAULTS["pageable_copies"].findings)
    assert not outcome(FEW[1]).said.fires & {"pageable_copy"}


def test_a_late_rank_is_named() -> None:
    """The last of the ranks has the fault."""
    assert (outcome(LATE).late, outcome(LATE).said.culprit) == (1, 1)
    assert outcome(LATE).found


def test_damage_is_noticed_and_the_verdict_stands() -> None:
    """Seven impossible durations change nothing, but are told of."""
    found = outcome(FEW[3])
    assert found.problems == ()
    assert "duration.impossible" in found.said.notices
    assert found.said.label == "memory-bound"


def test_a_verdict_without_records_is_withheld() -> None:
    """A third of the device records is lost."""
    found = outcome(Case("dense", damage="lost_device_share"))
    assert found.problems == ()
    assert found.said.label == "unknown"


def test_heat_is_found_in_counters() -> None:
    """A capped clock shows in no trace."""
    assert "throttled_clocks" in outcome(Case("dense", "capped_clock", 0.2)).said.fires


def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "plan", lambda *, quick: FEW)


def test_all_right_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases that are right one by one are right together, and progress is told."""
    few_cases(monkeypatch)
    told: list[float] = []
    found = run_selftest(progress=lambda _, done: told.append(done))
    assert found.ok
    assert found.wrong == ()
    assert told == [0.25, 0.5, 0.75, 1.0]


def test_a_judge_that_knows_one_label_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all verdicts turned into compute-bound, the self-test fails and says in what."""
    few_cases(monkeypatch)
    judge = verdicts.judge_rank

    def blind(*asked: Any) -> Any:
        found = judge(*asked)
        verdict = replace(found.verdict, label="compute-bound")
        steps = [msgspec.structs.replace(one, label="compute-bound") for one in found.steps]
        return replace(found, verdict=verdict, steps=tuple(steps))

    monkeypatch.setattr(judging, "judge_rank", blind)
    found = run_selftest()
    assert not found.ok
    assert {one.name for one in found.scores if not one.ok} >= {"memory-bound", "compute-bound"}
    assert [one.case.program for one in found.wrong] == ["recommendation"] * 3


def test_an_analysis_that_finds_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all findings quiet, each fault is missed."""
    few_cases(monkeypatch)
    of = selftest_cases.Said.of
    quiet = SimpleNamespace(of=lambda report: replace(of(report), fires=frozenset()))
    monkeypatch.setattr(selftest_cases.Said, "of", quiet.of)
    found = run_selftest()
    (missed,) = found.wrong
    assert missed.lacks("finding")
    assert [one.name for one in found.scores if not one.ok] == ["pageable_copies"]


def test_an_engine_that_is_missing_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no wrong answer that there is none."""
    few_cases(monkeypatch)

    def broken(*_: object) -> None:
        msg = "no engine"
        raise EngineError(msg)

    monkeypatch.setattr(selftest_cases, "analyze", broken)
    with pytest.raises(EngineError, match="no engine"):
        run_selftest()


def scored(*outcomes: Outcome) -> SelfTest:
    return score(outcomes)


def share_of(found: SelfTest, name: str) -> tuple[float | None, float | None]:
    (one,) = [one for one in found.scores if one.name == name]
    return one.precision, one.recall


def test_labels_are_scored_by_class() -> None:
    """One of two memory-bound jobs is called compute-bound, beside one that is."""
    wrong = judged(Case("dense"), RIGHT, truth="memory-bound")
    right = judged(Case("dense"), Said("memory-bound"), truth="memory-bound")
    found = scored(judged(Case("dense"), RIGHT), wrong, right)
    assert share_of(found, "compute-bound") == (0.5, 1.0)
    assert share_of(found, "memory-bound") == (1.0, 0.5)
    assert not found.ok


def test_small_doses_are_counted_but_not_judged() -> None:
    """A fault of a twentieth may be missed, one of a tenth may not."""
    small = judged(Case("dense", "garbage", 0.05), RIGHT, UNFOUND)
    large = judged(Case("dense", "garbage", 0.1), RIGHT, UNFOUND)
    assert scored(small).ok
    assert scored(small).wrong == (small,)
    assert not scored(large).ok
    assert scored(small, large).tally["garbage"] == {0.05: (0, 1), 0.1: (0, 1)}


def test_a_culprit_where_there_is_none_costs_precision() -> None:
    """As does the wrong one where there is another."""
    late = judged(LATE, Said("compute-bound", 1))
    alarm = judged(Case("dense"), Said("compute-bound", 0), Problem("culprit", "no", "rank 0"))
    assert share_of(scored(late), "late rank") == (1.0, 1.0)
    assert share_of(scored(late, alarm), "late rank") == (0.5, 1.0)
    missed = judged(LATE, Said("compute-bound", 0), Problem("culprit", "rank 1", "rank 0"))
    assert share_of(scored(missed), "late rank") == (0.0, 0.0)


def test_false_alarms_cost_precision() -> None:
    """What names a fault fires in a job that has none."""
    right = judged(Case("dense", "garbage", 0.1), RIGHT)
    alarm = judged(Case("dense"), RIGHT, Problem("false alarm", "none", "gc_pause, loader_stall"))
    assert share_of(scored(right, alarm), "garbage") == (0.5, 1.0)


def test_the_plan_has_what_it_should() -> None:
    """Twelve faults and damages at least, all four doses, programs with up to four ranks."""
    cases = plan(quick=False)
    assert len({one.name for one in cases}) - 1 >= 12
    assert {one.dose for one in cases} == {None, *DOSES}
    assert {one.fault for one in cases} - {None} <= set(FAULTS)
    assert set(DAMAGES) <= set(CORRUPTIONS)
    assert {PROGRAMS[one.program].spec.ranks for one in cases} == {1, 2, 4}
    assert len(set(cases)) == len(cases)
    assert len(plan(quick=True)) < len(cases) / 2
