"""What gates find in a report: pass, fail, or that the report cannot tell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from perfdiag.classifiers.gates import OPERATORS, SEVERITIES, Gate, Kind
from perfdiag.trace_schemas.counted_steps import counted_steps, steps_counted
from perfdiag.trace_schemas.report import LEAF_LABEL, Fix, Report

__all__ = ["Outcome", "Verdict", "judge_gate", "judge_gates", "worst"]

Outcome = Literal["pass", "fail", "inconclusive"]
OUTCOMES: tuple[Outcome, ...] = ("fail", "inconclusive", "pass")

_DOUBTED = 0.5
"""Share of the steps' time without a verdict from which on figures tell nothing; a choice."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a gate, and why, in a sentence."""

    gate: Gate
    outcome: Outcome
    why: str


def judge_gates(gates: Sequence[Gate], report: Report) -> list[Verdict]:
    """Hold a report against each gate."""
    return [judge_gate(gate, report) for gate in gates]


def judge_gate(gate: Gate, report: Report) -> Verdict:
    """Hold a report against a gate.

    A gate on notices or on `coverage` is about what is lacking, so it always passes or fails; one
    on `label=unknown` or `label!=unknown` likewise.
    """
    outcome, why = _JUDGES[gate.kind](gate, report)
    return Verdict(gate, outcome, why)


def worst(verdicts: Sequence[Verdict]) -> Outcome:
    """`fail` before `inconclusive` before `pass`."""
    return min((one.outcome for one in verdicts), key=OUTCOMES.index, default="pass")


_Judged = tuple[Outcome, str]


def _judge_notice(gate: Gate, report: Report) -> _Judged:
    bad: Sequence[str] = (gate.name,)
    if gate.name in SEVERITIES:
        bad = SEVERITIES[: SEVERITIES.index(gate.name) + 1]
    found = [row for row in report.notices if row.kind in bad or row.severity in bad]
    if not found:
        return "pass", "there is no such notice"
    kinds = [*dict.fromkeys(row.kind for row in found)]
    return "fail", f"{', '.join(kinds)}: {found[0].message}"


def _judge_label(gate: Gate, report: Report) -> _Judged:
    job = report.job
    said = f"the label is {job.label}, {job.confidence:.0%} sure"
    if job.label == "unknown" != gate.name:
        return "inconclusive", f"the label is unknown: {job.why}"
    holds = (job.label == gate.name) == (gate.operator == "=")
    return "fail" if holds else "pass", said


def _judge_culprit(gate: Gate, report: Report) -> _Judged:
    culprit = report.job.culprit_rank
    if culprit is not None:
        holds = not gate.name or int(gate.name) == culprit
        return "fail" if holds else "pass", f"the others wait for rank {culprit}"
    if doubt := _doubt(report) or _missing_ranks(report):
        return "inconclusive", doubt
    return "pass", "no rank comes late"


def _missing_ranks(report: Report) -> str:
    """What one cannot see without the other ranks."""
    worlds = {item.world_size for item in report.inputs}
    world = max((size for size in worlds if size is not None), default=None)
    here = len(report.ranks)
    if world is None:
        return "of how many ranks the job is the trace does not say" if here == 1 else ""
    return f"traces of {here} of {world} ranks are here" if here < world else ""


def _judge_fix(gate: Gate, report: Report) -> _Judged:
    fixes = [fix for fix in report.fixes if fix.id == gate.name]
    if not fixes:
        return _not_found(gate, report)
    if not gate.operator:
        return "fail", f"{fixes[0].title}: {fixes[0].why}"
    if doubt := _doubt(report):
        return "inconclusive", doubt
    return _compared(gate, sum(_saving_ns(fix, report) for fix in fixes), report, "it saves")


def _saving_ns(fix: Fix, report: Report) -> float:
    """Of a mean step of all ranks: a static bound is that of the ranks that it concerns."""
    if fix.basis == "replay":
        return fix.saving_ns_per_step
    ranks = [rank for rank in report.ranks if rank.rank in fix.ranks]
    steps = sum(len(counted_steps(rank)) for rank in ranks)
    return fix.saving_ns_per_step * steps / _steps(report)


def _not_found(gate: Gate, report: Report) -> _Judged:
    """There is no such fix: because it is not needed, or because nobody could tell."""
    findings = [finding for finding in report.findings if finding.id == gate.name]
    untold = [one for one in findings if one.status in ("not applicable", "failed")]
    if untold:
        return "inconclusive", f"the diagnosis cannot tell: {untold[0].why}"
    if doubt := _doubt(report):
        return "inconclusive", doubt
    if not findings:
        return "inconclusive", "the report does not say that the diagnosis was made"
    return "pass", findings[0].why


def _judge_figure(gate: Gate, report: Report) -> _Judged:
    if gate.name == "coverage":
        return _judge_coverage(gate, report)
    if doubt := _doubt(report):
        return "inconclusive", doubt
    if gate.name.startswith("step_time"):
        return _judge_step_time(gate, report)
    if gate.name == "saving":
        saved = sum(fix.saving_after_previous_ns for fix in report.fixes)
        static = any(fix.basis != "replay" for fix in report.fixes)
        known = " by static bounds" if static else ""
        return _compared(gate, saved, report, f"all fixes together save{known}")
    return _compared(gate, _time_ns(gate.name, report) / _steps(report), report, "it takes")


def _judge_coverage(gate: Gate, report: Report) -> _Judged:
    least = min((step.coverage for rank in report.ranks for step in rank.steps), default=0.0)
    holds = OPERATORS[gate.operator](least, gate.limit)
    said = f"the step with the fewest device records has them for {least:.1%} of its launches"
    return "fail" if holds else "pass", said


def _judge_step_time(gate: Gate, report: Report) -> _Judged:
    times = report.job.step_time_ns
    part = gate.name.removeprefix("step_time").removeprefix("_") or "median"
    value = {"median": times.median, "p10": times.p10, "p90": times.p90}[part]
    if value is None:
        return "inconclusive", "no step has a verdict"
    holds = OPERATORS[gate.operator](value, gate.limit)
    return "fail" if holds else "pass", f"it is {value / 1e6:.4g} ms over {times.n} steps"


def _time_ns(name: str, report: Report) -> int:
    """Time of all steps of all ranks in a leaf, in the leaves of a label, or in a total."""
    budget = report.job.budget_ns
    if name in LEAF_LABEL:
        return budget.get(name, 0)
    totals: dict[str, int] = structs.asdict(report.job.totals_ns)
    if name in totals:
        return totals[name]
    return sum(budget.get(leaf, 0) for leaf, label in LEAF_LABEL.items() if label == name)


def _compared(gate: Gate, ns_per_step: float, report: Report, what: str) -> _Judged:
    """Hold a time of a mean step against the limit, in the unit of the limit."""
    step_ns = report.job.totals_ns.window / _steps(report)
    share = ns_per_step / step_ns
    holds = OPERATORS[gate.operator](share if gate.unit == "share" else ns_per_step, gate.limit)
    said = f"{what} {ns_per_step / 1e6:.4g} ms of a step of {step_ns / 1e6:.4g} ms, {share:.1%}"
    return "fail" if holds else "pass", said


def _steps(report: Report) -> int:
    return max(1, steps_counted(report))


def _doubt(report: Report) -> str:
    """Why figures of this report tell nothing; empty where they do.

    An abstaining classifier is no reason: what was measured stays measured.
    """
    job = report.job
    if not job.totals_ns.window:
        return "no step takes any time"
    if job.label == "unknown" == job.by_rules:
        return f"there is no verdict: {job.why}"
    steps = [step for rank in report.ranks for step in rank.steps]
    lost = sum(step.dur_ns for step in steps if step.label == "unknown" == step.by_rules)
    whole = sum(step.dur_ns for step in steps)
    if lost > _DOUBTED * whole:
        return f"steps of {lost / 1e6:.4g} of {whole / 1e6:.4g} ms have no verdict"
    return ""


_JUDGES: dict[Kind, Callable[[Gate, Report], _Judged]] = {
    "figure": _judge_figure,
    "label": _judge_label,
    "culprit": _judge_culprit,
    "fix": _judge_fix,
    "notice": _judge_notice,
}
