"""What a fix is worth, where and for whom, in words that every format of the report uses."""

from collections.abc import Iterator

from perfdiag.cli.reporters import replay
from perfdiag.cli.reporters.units import duration, percent, shorten
from perfdiag.trace_schemas.counted_steps import counted_steps, steps_counted
from perfdiag.trace_schemas.report import Fix, Report

__all__ = ["explanation", "mean_step_ns", "note", "proof", "saves", "saving"]

_PARTS = ("25%", "50%", "75%", "all")
"""Of a fix, what `curve_ns` is about."""


def note(report: Report) -> str:
    """What all fixes together are worth, time that they share counted once, and by what."""
    together = sum(fix.saving_after_previous_ns for fix in report.fixes)
    if not together:
        return ""
    share = percent(together, mean_step_ns(report))
    return f"together {duration(together)} a step ({share}); {_basis(report)}"


def _basis(report: Report) -> str:
    if any(fix.basis != "replay" for fix in report.fixes):
        return "static bounds, not replayed"
    return ", ".join(filter(None, ("replayed", replay.error(report.replay))))


def mean_step_ns(report: Report) -> float:
    """Window of a mean step of all ranks."""
    return report.job.totals_ns.window / max(1, steps_counted(report))


def saves(fix: Fix) -> bool:
    """Alone, or, where something else holds up the steps too, once that is mended."""
    return max(fix.saving_ns_per_step, fix.saving_after_previous_ns) > 0


def saving(fix: Fix, report: Report) -> tuple[str, str]:
    """Time of a mean step of all ranks, and its share; empty where it is not known.

    The total of `note` is of the same step; a fix may concern some ranks only.
    """
    if not saves(fix):
        return "", ""
    saving_ns = _of_the_job(fix, report)
    return f"{duration(saving_ns)} a step", percent(saving_ns, mean_step_ns(report))


def explanation(fix: Fix, report: Report) -> Iterator[tuple[str, str]]:
    """Why, where, how, and what it saves: headings and texts, which may quote names."""
    yield "why", fix.why
    if fix.regions:
        yield "where", _where(fix)
    yield "how", fix.how
    if saves(fix):
        whose = _whose(fix, len(report.ranks)) + _when(fix, report)
        sure = f"{fix.confidence:.0%} sure{whose}"
        yield "saves", f"{_interval(fix)}, {sure}{_shared(fix, report)}"


def proof(fix: Fix) -> Iterator[tuple[str, str]]:
    """What part of it saves how much, how to verify it, what refutes it, and its figures."""
    yield from _curve(fix)
    yield "verify", fix.verify
    yield "refuted", f"if {fix.refuted_by}."
    for one in fix.evidence:
        yield "sql", f"{one.sql}  -- {one.value:,.10g} {one.unit}"


def _interval(fix: Fix) -> str:
    """Between what it lies if it was replayed; else what it cannot exceed."""
    low, high = duration(fix.saving_low_ns), duration(fix.saving_high_ns)
    if fix.basis == "replay":
        return f"{low} to {high} a step"
    estimate = "" if low == high else f" (low estimate {low})"
    return f"at most {high} a step{estimate}"


def _shared(fix: Fix, report: Report) -> str:
    """What it saves once better fixes are made, where that is not what it saves alone.

    Less where they share time with it, more where they end what held the steps up as well.
    """
    left, alone = fix.saving_after_previous_ns, _of_the_job(fix, report)
    if left < 0.99 * alone:
        return f"; {duration(left)} beyond the better fixes"
    return f"; {duration(left)} after the better fixes" if left > 1.01 * alone else ""


def _curve(fix: Fix) -> Iterator[tuple[str, str]]:
    """What part of it saves: where that is nearly all, the rest of the work can be spared."""
    if fix.curve_ns and saves(fix):
        saved = zip(_PARTS, map(duration, fix.curve_ns), strict=True)
        parts = [f"{part} {time}" for part, time in saved]
        yield "curve", ", ".join(parts).replace(" ", " of it saves ", 1)


def _of_the_job(fix: Fix, report: Report) -> float:
    """What it saves of a mean step over all ranks.

    Replayed ranks wait for each other, so that the step of all is as much shorter as that of those
    that it concerns; in a static bound the others stay as they are.
    """
    if fix.basis == "replay":
        return fix.saving_ns_per_step
    steps = [len(counted_steps(rank)) for rank in report.ranks if rank.rank in fix.ranks]
    return fix.saving_ns_per_step * sum(steps) / max(1, steps_counted(report))


def _where(fix: Fix) -> str:
    """The parts of the step and of the model, each with its share of the saving."""
    kinds: dict[str, list[str]] = {"phase": [], "annotation": [], "module": []}
    for place in fix.regions:
        share = place.saving_ns_per_step / max(1, fix.saving_ns_per_step)
        kinds[place.kind].append(f"{shorten(place.name, 60)} {share:.0%}")
    return "; ".join(", ".join(names) for names in kinds.values() if names)


def _when(fix: Fix, report: Report) -> str:
    """In which steps, where it is not in all of them."""
    known = len({step.ordinal for rank in report.ranks for step in rank.steps})
    return f", in {len(fix.steps)} of {known} steps" if 0 < len(fix.steps) < known else ""


def _whose(fix: Fix, n_ranks: int) -> str:
    ranks = [str(rank) for rank in fix.ranks if rank is not None]
    if not ranks or n_ranks < 2:
        return ""
    if len(ranks) == n_ranks:
        return ", on all ranks"
    some = ", ".join(ranks[:8]) + (", ..." if len(ranks) > 8 else "")
    return f", on rank {some}" if len(ranks) == 1 else f", on ranks {some}"
