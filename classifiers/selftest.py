"""The self-test: faults and damage of known cause go in, and what comes out is compared.

Jobs of known cause are simulated on this machine and their traces go through the whole analysis:
so the test is of all that is installed here, the trace processor included. Faults cost a known
share of a step, their dose. What is expected is in the simulator, not here: the true label of a job
(`profiler.simulator.truth`), the findings of a fault and its late rank
(`profiler.simulator.faults`), and whether a verdict on damaged traces stands
(`profiler.simulator.corruptions`).
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from perfdiag.classifiers.selftest_cases import Outcome, run_case
from perfdiag.classifiers.selftest_plan import Case, plan
from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.simulator.faults import FAULTS
from perfdiag.trace_schemas.errors import EngineError
from perfdiag.trace_schemas.report import LABELS

__all__ = ["LEAST_LABEL", "LEAST_OTHER", "Score", "SelfTest", "run_selftest", "score"]

LEAST_LABEL = 0.9
"""Precision and recall of each label that a sound installation reaches: labels of steps near the
border between two classes are a matter of degree, and of these a few may be said otherwise."""

LEAST_OTHER = 1.0
"""Precision and recall of all else at doses of a tenth and more."""

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Score:
    """How often a class was said rightly.

    Attributes:
        kind: `label`: of jobs and steps; `late rank`; `fault`: it is named by a finding; `damage`:
            the verdict stands or is withheld as it should.
        name: of the class.
        right: cases of the class that were said so; `missed`: that were not; `wrong`: others that
            were said to be of it.
        least: precision and recall that are enough.
    """

    kind: str
    name: str
    right: int
    missed: int
    wrong: int
    least: float

    @property
    def precision(self) -> float | None:
        """Share of what was said that is right; None where nothing was said."""
        said = self.right + self.wrong
        return self.right / said if said else None

    @property
    def recall(self) -> float | None:
        """Share of the cases that was said; None where there are none."""
        cases = self.right + self.missed
        return self.right / cases if cases else None

    @property
    def ok(self) -> bool:
        """Whether both are enough."""
        return all(share is None or share >= self.least for share in (self.precision, self.recall))


@dataclass(frozen=True, slots=True)
class SelfTest:
    """All cases, and the scores of those that are judged."""

    outcomes: tuple[Outcome, ...]
    scores: tuple[Score, ...]

    @property
    def ok(self) -> bool:
        """Whether the analysis does on this machine what it should."""
        return all(one.ok for one in self.scores)

    @property
    def tally(self) -> Mapping[str, Mapping[float | None, tuple[int, int]]]:
        """By what was done and dose: how many came out right, and of how many; labels apart."""
        found: dict[str, dict[float | None, tuple[int, int]]] = {}
        for one in self.outcomes:
            doses = found.setdefault(one.case.name, {})
            right, of = doses.get(one.case.dose, (0, 0))
            doses[one.case.dose] = right + one.found, of + 1
        return found

    @property
    def wrong(self) -> tuple[Outcome, ...]:
        """Cases in which something is wrong, those of small doses too."""
        return tuple(one for one in self.outcomes if one.problems)


def run_selftest(
    *,
    quick: bool = False,
    engine: EngineName = "wasm",
    jobs: int = 1,
    progress: Progress | None = None,
) -> SelfTest:
    """Run all cases.

    Args:
        quick: fewer of them.
        engine: trace processor to use.
        jobs: processes that run them; with more than 1 the caller's main module must be importable
            without running anything.
        progress: is told what has been done, and the share of it.

    Raises:
        EngineError: the trace processor cannot be used.
    """
    cases = plan(quick=quick)
    tell = progress or (lambda text, share: None)
    outcomes: list[Outcome] = []
    for outcome in _run(cases, partial(run_case, engine=engine), jobs):
        outcomes.append(outcome)
        tell(f"{len(outcomes)} of {len(cases)} jobs", len(outcomes) / len(cases))
    return score(outcomes)


def _run(cases: Sequence[Case], run: Callable[[Case], Outcome], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(run, cases)
        return
    # Started afresh, not forked: the trace processor runs threads. What a case leaves behind is
    # not worth the time of a collector.
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=gc.disable) as pool:
        try:
            yield from pool.map(run, cases)
        except BrokenProcessPool as error:
            msg = "a process of the self-test ended early, maybe for want of memory: try --jobs 1"
            raise EngineError(msg) from error


def score(outcomes: Iterable[Outcome]) -> SelfTest:
    """Judge the outcomes of cases, in whatever order they come."""
    found = tuple(outcomes)
    judged = [one for one in found if one.case.judged]
    scores = (*_labels(judged), _late(judged), *_faults(judged), *_damages(judged))
    return SelfTest(found, scores)


def _labels(judged: Sequence[Outcome]) -> Iterator[Score]:
    pairs = Counter(pair for one in judged for pair in one.labels)
    for label in LABELS:
        of, said = (
            sum(count for pair, count in pairs.items() if pair[at] == label) for at in (0, 1)
        )
        right = pairs[label, label]
        if of or (said and label != "unknown"):
            yield Score("label", label, right, of - right, said - right, LEAST_LABEL)


def _late(judged: Sequence[Outcome]) -> Score:
    late = [one for one in judged if one.late is not None]
    right = sum(one.said.culprit == one.late for one in late)
    wrong = sum(one.said.culprit not in (None, one.late) for one in judged)
    return Score("late rank", "late rank", right, len(late) - right, wrong, LEAST_OTHER)


def _faults(judged: Sequence[Outcome]) -> Iterator[Score]:
    """By fault: found where it is, and what names it quiet in jobs without any fault."""
    alarms = [_alarms(one) for one in judged if one.case.fault is None]
    for name in dict.fromkeys(one.case.fault for one in judged if one.case.fault is not None):
        cases = [one for one in judged if one.case.fault == name]
        missed = sum(one.lacks("finding") for one in cases)
        wrong = sum(not alarm.isdisjoint(FAULTS[name].findings) for alarm in alarms)
        yield Score("fault", name, len(cases) - missed, missed, wrong, LEAST_OTHER)


def _alarms(outcome: Outcome) -> set[str]:
    """Findings that should not fire."""
    said = [one.said for one in outcome.problems if one.aspect == "false alarm"]
    return {finding for listed in said for finding in listed.split(", ")}


def _damages(judged: Sequence[Outcome]) -> Iterator[Score]:
    for name in dict.fromkeys(one.case.damage for one in judged if one.case.damage is not None):
        cases = [one for one in judged if one.case.damage == name]
        missed = sum(one.lacks("label", "notice") for one in cases)
        yield Score("damage", name, len(cases) - missed, missed, 0, LEAST_OTHER)
