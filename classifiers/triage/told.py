"""What perfdiag itself says in a slice: the verdict, the fix and its proof, on own tracks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfdiag.classifiers.triage.cutting import LONGEST_NAME, Span
from perfdiag.classifiers.triage.figures import Figure, literal
from perfdiag.profiler.annotations import Arg, RawSlice, SliceTrack, TrackSlice
from perfdiag.trace_schemas.report import Evidence, Fix, Job, Report
from perfdiag.trace_schemas.texts import shortened

__all__ = [
    "Finding",
    "budget_figures",
    "finding_track",
    "fix_figures",
    "job_figures",
    "job_track",
    "length_figure",
]

_FIX = "perfdiag.fix"
_NS = {
    "saving_ns_per_step": "saves a step",
    "saving_low_ns": "saves a step at least",
    "saving_high_ns": "saves a step at most",
    "saving_after_previous_ns": "saves a step after the fixes that are worth more",
}


def job_track(report: Report, span: Span) -> SliceTrack:
    """The verdict on the job, over the whole slice."""
    args: dict[str, Arg] = {
        "scope": "job",
        "label": report.job.label,
        "confidence": report.job.confidence,
        "why": _short(report.job.why),
        **{f"step_time_{name}_ns": value for name, value in _step_time(report.job)},
        **{f"job_{leaf}_ns": ns for leaf, ns in report.job.budget_ns.items()},
    }
    name = f"job: {report.job.label}"
    one = TrackSlice(span[0], span[1] - span[0], name, "perfdiag.verdict", report.job.label, args)
    return SliceTrack("job", [one])


def _step_time(job: Job) -> Iterator[tuple[str, int]]:
    time = job.step_time_ns
    for name, value in (("median", time.median), ("p10", time.p10), ("p90", time.p90)):
        if value is not None:
            yield name, value


def job_figures(report: Report) -> Iterator[Figure]:
    """The verdict, and how long steps take."""
    yield _of_job("why", "verdict", report.job.why, "text")
    yield _of_job("confidence", "probability of the verdict", report.job.confidence, "share")
    for name, value in _step_time(report.job):
        yield _of_job(f"step_time_{name}_ns", _STEP_TIMES[name], value, "ns")


_STEP_TIMES = {
    "median": "median step",
    "p10": "a tenth of the steps takes at most",
    "p90": "nine tenths of the steps take at most",
}


def _of_job(arg: str, meaning: str, value: float | str, unit: str) -> Figure:
    sql = (
        f"SELECT extract_arg(arg_set_id, 'debug.{arg}') AS value FROM slice WHERE category = "
        "'perfdiag.verdict' AND extract_arg(arg_set_id, 'debug.scope') = 'job' LIMIT 1"
    )
    held = _short(value) if isinstance(value, str) else value
    return Figure(f"job.{arg}", meaning, sql, held, unit, "analysis")


@dataclass(frozen=True, slots=True)
class Finding:
    """A fix as a slice shows it.

    Attributes:
        fix: what to do.
        place: among the fixes of the job, from 1.
        leaf: of the time budget, in which it takes most.
        step: ordinal of the step that the slice shows.
        spots: the time in the slice that it is about, disjoint and in order.
        evidence: slices of the trace that prove it.
    """

    fix: Fix
    place: int
    leaf: str
    step: int
    spots: Sequence[Span]
    evidence: tuple[RawSlice, ...]


def finding_track(found: Finding, around: Span) -> SliceTrack:
    """A fix over the whole slice, and below it the time that it is about."""
    fix = found.fix
    args: dict[str, Arg] = {
        "fix": fix.id,
        "place": found.place,
        "layer": fix.layer,
        "title": fix.title,
        "step": found.step,
        **{name: getattr(fix, name) for name in _NS},
        "confidence": fix.confidence,
        "basis": fix.basis,
        "full": 1,
        "worst": 1,
        "leaf": found.leaf,
        "ranks": _short(_listed(fix.ranks)),
        "steps": _short(_listed(fix.steps)),
        "why": _short(fix.why),
        "how": _short(fix.how),
        "verify": _short(fix.verify),
        "refuted_by": _short(fix.refuted_by),
        **_evidence_args(fix.evidence),
    }
    length = around[1] - around[0]
    whole = TrackSlice(around[0], length, fix.title, _FIX, fix.layer, args, found.evidence)
    about: dict[str, Arg] = {"fix": fix.id, "leaf": found.leaf}
    parts = [
        TrackSlice(start, end - start, fix.id, "perfdiag.finding", fix.layer, about)
        for start, end in found.spots
    ]
    return SliceTrack(f"finding: {fix.id}", [whole, *parts])


def _evidence_args(evidence: Sequence[Evidence]) -> dict[str, Arg]:
    args: dict[str, Arg] = {}
    for i, one in enumerate(evidence):
        args |= {
            f"evidence_{i}_value": float(one.value),
            f"evidence_{i}_unit": one.unit,
            f"evidence_{i}_sql": _short(one.sql),
        }
    return args


def fix_figures(fix: Fix, step: int, taken_ns: int) -> Iterator[Figure]:
    """What a fix saves, how sure that is, why, where, and the figures that it rests on.

    Args:
        fix: as it was written into the slice.
        step: ordinal of the step that is shown.
        taken_ns: the time within the slice that it is about.
    """
    for name, meaning in _NS.items():
        yield _of_fix(fix, name, meaning, getattr(fix, name), "ns")
    yield _of_fix(fix, "confidence", "how sure the finding is", fix.confidence, "share")
    yield _of_fix(fix, "why", "why", _short(fix.why), "text")
    yield _of_fix(fix, "ranks", "ranks", _short(_listed(fix.ranks)), "text")
    yield _of_fix(fix, "steps", "steps", _short(_listed(fix.steps)), "text")
    yield _of_fix(fix, "step", "step that is shown", step, "number")
    yield _finding_time(fix, taken_ns)
    for i, one in enumerate(fix.evidence):
        yield _of_fix(fix, f"evidence_{i}_value", _proof(one), one.value, one.unit)


def _listed(numbers: Sequence[int | None]) -> str:
    return ", ".join("?" if number is None else str(number) for number in numbers)


def _proof(evidence: Evidence) -> str:
    return f"evidence, of the whole trace: {evidence.sql}"


def _of_fix(fix: Fix, arg: str, meaning: str, value: float | str, unit: str) -> Figure:
    sql = (
        f"SELECT extract_arg(arg_set_id, 'debug.{arg}') AS value FROM slice WHERE category = "
        f"'{_FIX}' AND extract_arg(arg_set_id, 'debug.fix') = {literal(fix.id)} LIMIT 1"
    )
    return Figure(f"{fix.id}.{arg}", meaning, sql, value, unit, "analysis")


def _finding_time(fix: Fix, taken_ns: int) -> Figure:
    sql = (
        "SELECT coalesce(sum(dur), 0) AS value FROM slice WHERE category = 'perfdiag.finding' AND "
        f"extract_arg(arg_set_id, 'debug.fix') = {literal(fix.id)}"
    )
    meaning = "time in this slice that it is about"
    return Figure(f"{fix.id}.taken", meaning, sql, taken_ns, "ns", "analysis")


def length_figure(span: Span) -> Figure:
    """How long the slice is."""
    sql = (
        "SELECT dur AS value FROM slice WHERE category = 'perfdiag.verdict' AND "
        "extract_arg(arg_set_id, 'debug.scope') = 'job'"
    )
    return Figure("slice.length", "length of the slice", sql, span[1] - span[0], "ns", "analysis")


def budget_figures(leaves: dict[str, int], where: str) -> Iterator[Figure]:
    """Where the time of the slice goes on the rank that it is about.

    Args:
        leaves: nanoseconds by leaf.
        where: what a query adds to ask for that rank alone.
    """
    for leaf, ns in leaves.items():
        sql = (
            "SELECT sum(dur) AS value FROM slice WHERE category = 'perfdiag.budget' AND name = "
            f"'{leaf}'{where}"
        )
        yield Figure(f"budget.{leaf}", f"time budget: {leaf}", sql, ns, "ns", "analysis")


def _short(text: str) -> str:
    return shortened(text, LONGEST_NAME)
