"""One case of the self-test: a job is simulated, its traces analysed, and the report judged."""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from perfdiag.classifiers.analysis import analyze
from perfdiag.classifiers.options import Options
from perfdiag.classifiers.selftest_clocks import clock_table
from perfdiag.classifiers.selftest_plan import PROGRAMS, Case, Program
from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.simulator.corruptions import CORRUPTIONS, REFUSED, Corruption
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.events import JobEvents
from perfdiag.profiler.simulator.faults import FAULTS, Fault, inject
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import TraceOptions, kineto_json
from perfdiag.profiler.simulator.program import Job
from perfdiag.profiler.simulator.truth import find_truth
from perfdiag.profiler.simulator.truth_types import Truth
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.report import Report

__all__ = ["Outcome", "Problem", "Said", "run_case"]

SEED = 1

_CLOCKS = ("capped_clock", "late_by_clock")
"""Faults that no trace shows: their jobs come with counters."""

Aspect = Literal["label", "culprit", "finding", "notice", "false alarm"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that came out wrong: in what, and what it should have been."""

    aspect: Aspect
    expected: str
    said: str


@dataclass(frozen=True, slots=True)
class Said:
    """What the report says.

    Attributes:
        label: of the job; `culprit`: its late rank.
        fires: ids of diagnoses that fire.
        notices: their kinds, or `REFUSED`.
        steps: label of each step by rank.
    """

    label: str
    culprit: int | None = None
    fires: frozenset[str] = frozenset()
    notices: frozenset[str] = frozenset()
    steps: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, report: Report) -> "Said":
        """What matters of a report."""
        return cls(
            report.job.label,
            report.job.culprit_rank,
            frozenset(one.id for one in report.findings if one.status == "fires"),
            frozenset(one.kind for one in report.notices),
            tuple(tuple(step.label for step in rank.steps) for rank in report.ranks),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case and what came of it.

    Attributes:
        case: what was tried.
        truth: label of the job, None where it is ambiguous.
        late: the rank that is late, None for none.
        said: what the report says.
        labels: pairs of the true label and the one that was said, of the job and its steps; none
            of ambiguous ones, of the first step and of damaged traces.
        problems: what is wrong.
    """

    case: Case
    truth: str | None
    late: int | None
    said: Said
    labels: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()

    def lacks(self, *aspects: Aspect) -> bool:
        """Whether one of these came out wrong."""
        return any(one.aspect in aspects for one in self.problems)

    @property
    def found(self) -> bool:
        """Whether the report names the fault and its rank, or says of damage what it should."""
        return not self.lacks("finding", "culprit", "notice", "false alarm") and (
            self.case.damage is None or not self.lacks("label")
        )


def run_case(case: Case, engine: EngineName = "wasm") -> Outcome:
    """Simulate, write, analyse and judge.

    Raises:
        EngineError: the trace processor cannot be used.
    """
    program = PROGRAMS[case.program]
    job = _job(case, program)
    events = simulate(job, program.platform, SEED)
    truth = find_truth(job, program.platform, SEED, events)
    said = _analysed(case, program, job, events, engine)
    late = _culprit(case, job)
    labels = _labels(truth, said) if case.damage is None else ()
    found = Outcome(case, _known(truth), late, said, labels)
    return replace(found, problems=tuple(_problems(found, program)))


def _job(case: Case, program: Program) -> Job:
    if case.fault is None:
        return build_job(program.spec)
    return inject(case.fault, program.spec, program.platform, case.dose or 0.0, case.ranks)


def _culprit(case: Case, job: Job) -> int | None:
    """The rank that has the fault, where others have not: they wait for it, or for its link."""
    if case.ranks:
        return case.ranks[0]
    one_rank = case.fault is not None and FAULTS[case.fault].one_rank
    return len(job.ranks) - 1 if one_rank else None


def _analysed(
    case: Case, program: Program, job: Job, events: JobEvents, engine: EngineName
) -> Said:
    options = TraceOptions()
    traces = [kineto_json(one, job, program.platform, options) for one in events.ranks]
    if case.damage is not None:
        traces = CORRUPTIONS[case.damage].change(traces)
    with tempfile.TemporaryDirectory(prefix="perfdiag-selftest-") as folder:
        paths = [Path(folder) / f"rank{rank}.json" for rank in range(len(traces))]
        for path, trace in zip(paths, traces, strict=True):
            path.write_bytes(trace)
        counters = Path(folder) / "clocks.csv"
        if case.fault in _CLOCKS:
            counters.write_text(clock_table(job, events, options), encoding="utf-8")
        beside = (str(counters),) if case.fault in _CLOCKS else ()
        settings = Options(engine=engine, counters=beside, counters_utc_offset_s=0)
        try:
            return Said.of(analyze([str(path) for path in paths], settings))
        except InputError:
            return Said("unknown", notices=frozenset((REFUSED,)))


def _known(truth: Truth) -> str | None:
    return None if truth.verdict.ambiguous else truth.verdict.label


def _labels(truth: Truth, said: Said) -> tuple[tuple[str, str], ...]:
    pairs = [
        (step.verdict.label, label)
        for rank, labels in zip(truth.ranks, said.steps, strict=True)
        for step, label in zip(rank.steps, labels, strict=True)
        if not step.warm_up and not step.verdict.ambiguous
    ]
    job = _known(truth)
    return ((job, said.label), *pairs) if job is not None else tuple(pairs)


def _problems(found: Outcome, program: Program) -> Iterable[Problem]:
    case, said = found.case, found.said
    damage = None if case.damage is None else CORRUPTIONS[case.damage]
    withheld = damage is not None and damage.expected == "withheld"
    expected = "unknown" if withheld else found.truth
    if expected is not None and said.label != expected:
        yield Problem("label", expected, said.label)
    if said.culprit != found.late:
        yield Problem("culprit", _rank(found.late), _rank(said.culprit))
    if damage is not None:
        yield from _unsaid(damage, said)
    if case.fault is not None:
        yield from _unfound(FAULTS[case.fault], program, said)
    else:
        yield from _false_alarms(program, said)


def _rank(rank: int | None) -> str:
    return "no late rank" if rank is None else f"rank {rank} late"


def _unsaid(damage: Corruption, said: Said) -> Iterable[Problem]:
    """A damage of which no notice speaks."""
    if damage.notices and not said.notices.intersection(damage.notices):
        yield Problem("notice", _one_of(damage.notices), _listed(said.notices))


def _unfound(fault: Fault, program: Program, said: Said) -> Iterable[Problem]:
    """A fault that no finding names but those which the program has without it."""
    able = [one for one in fault.findings if one not in program.own]
    if not said.fires.intersection(able):
        yield Problem("finding", _one_of(able), _listed(said.fires))


def _false_alarms(program: Program, said: Said) -> Iterable[Problem]:
    named = {finding for fault in FAULTS.values() for finding in fault.findings}
    wrong = said.fires & named - set(program.own)
    if wrong:
        yield Problem("false alarm", "none", _listed(wrong))


def _one_of(kinds: Sequence[str]) -> str:
    return " or ".join(kinds)


def _listed(kinds: Iterable[str]) -> str:
    return ", ".join(sorted(kinds)) or "nothing"
