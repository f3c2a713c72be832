"""Fixes for people: by the layer that owns them, those that save most first."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters import replay
from perfdiag.cli.reporters.summary import fix_groups, step_count
from perfdiag.cli.reporters.units import duration, percent, sentence, shorten
from perfdiag.trace_schemas.report import Fix, Report

__all__ = ["groups", "note"]


def note(report: Report) -> str:
    """What all fixes together are worth, time that they share counted once, and by what."""
    together = sum(fix.saving_after_previous_ns for fix in report.fixes)
    if not together:
        return ""
    share = percent(together, _mean_step_ns(report))
    return f"together {duration(together)} a step ({share}); {_basis(report)}"


def _basis(report: Report) -> str:
    if any(fix.basis != "replay" for fix in report.fixes):
        return "static bounds, not replayed"
    return ", ".join(filter(None, ("replayed", replay.error(report.replay))))


def groups(report: Report, *, verbose: bool = False) -> RenderableType:
    """One block a layer.

    Args:
        report: has fixes.
        verbose: also how to verify each, what would refute it, and the SQL of its figures.
    """
    blocks: list[RenderableType] = []
    for layer, fixes in fix_groups(report.fixes).items():
        blocks += ["", Text(layer, "underline"), *(_fix(fix, report, verbose) for fix in fixes)]
    return Group(*blocks[1:])


def _mean_step_ns(report: Report) -> float:
    return report.job.totals_ns.window / max(1, step_count(report))


def _fix(fix: Fix, report: Report, verbose: bool) -> RenderableType:
    head = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    title = Text(shorten(fix.title, 200), "bold").append(f"  {shorten(fix.id, 40)}", "not bold dim")
    head.add_row(title, _saving(fix, report))
    body = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    body.add_column(min_width=7, no_wrap=True)
    body.add_column(overflow="fold")
    rows = [*_explanation(fix, report), *(_proof(fix) if verbose else ())]
    for key, text in rows:
        body.add_row(Text(f"  {key}", "dim"), Text(sentence(text)))
    return Group(head, body)


def _saving(fix: Fix, report: Report) -> Text:
    """Of a mean step of all ranks, like the total above; a fix may concern some of them only."""
    if not _saves(fix):
        return Text("saving not known", "dim")
    saving_ns = _of_the_job(fix, report)
    text = Text(f"{duration(saving_ns)} a step", "bold green")
    return text.append(f"  {percent(saving_ns, _mean_step_ns(report))}", "green")


def _saves(fix: Fix) -> bool:
    """Alone, or, where something else holds up the steps too, once that is mended."""
    return max(fix.saving_ns_per_step, fix.saving_after_previous_ns) > 0


def _explanation(fix: Fix, report: Report) -> Iterator[tuple[str, str]]:
    yield "why", fix.why
    if fix.regions:
        yield "where", _where(fix)
    yield "how", fix.how
    if _saves(fix):
        whose = _whose(fix, len(report.ranks)) + _when(fix, report)
        sure = f"{fix.confidence:.0%} sure{whose}"
        yield "saves", f"{_interval(fix)}, {sure}{_shared(fix, report)}"


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


PARTS = ("25%", "50%", "75%", "all")
"""Of a fix, what `curve_ns` is about."""


def _curve(fix: Fix) -> Iterator[tuple[str, str]]:
    """What part of it saves: where that is nearly all, the rest of the work can be spared."""
    if fix.curve_ns and _saves(fix):
        saved = zip(PARTS, map(duration, fix.curve_ns), strict=True)
        parts = [f"{part} {time}" for part, time in saved]
        yield "curve", ", ".join(parts).replace(" ", " of it saves ", 1)


def _of_the_job(fix: Fix, report: Report) -> float:
    """What it saves of a mean step over all ranks.

    Replayed ranks wait for each other, so that the step of all is as much shorter as that of those
    that it concerns; in a static bound the others stay as they are.
    """
    if fix.basis == "replay":
        return fix.saving_ns_per_step
    steps = [len(rank.steps) for rank in report.ranks if rank.rank in fix.ranks]
    return fix.saving_ns_per_step * sum(steps) / max(1, step_count(report))


def _where(fix: Fix) -> str:
    """The parts of the step and of the model, each with its share of the saving."""
    kinds: dict[str, list[str]] = {"phase": [], "annotation": [], "module": []}
    for place in fix.regions:
        share = place.saving_ns_per_step / max(1, fix.saving_ns_per_step)
        kinds[place.kind].append(f"{shorten(place.name, 60)} {share:.0%}")
    return "; ".join(", ".join(names) for names in kinds.values() if names)


def _proof(fix: Fix) -> Iterator[tuple[str, str]]:
    yield from _curve(fix)
    yield "verify", fix.verify
    yield "refuted", f"if {fix.refuted_by}."
    for one in fix.evidence:
        yield "sql", f"{one.sql}  -- {one.value:,.10g} {one.unit}"


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
