"""Fixes for people: by the layer that owns them, those that save most first."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.summary import fix_groups, step_count
from perfdiag.cli.reporters.units import duration, percent, sentence, shorten
from perfdiag.trace_schemas.report import Fix, Report

__all__ = ["groups", "note"]


def note(report: Report) -> str:
    """What all fixes together are worth; what two of them share is counted once."""
    together = sum(fix.saving_after_previous_ns for fix in report.fixes)
    if not together:
        return ""
    share = percent(together, _mean_step_ns(report))
    return f"together {duration(together)} a step ({share}); what fixes share counts once"


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
    if fix.saving_ns_per_step <= 0:
        return Text("saving not known", "dim")
    saving_ns = _of_the_job(fix, report)
    text = Text(f"{duration(saving_ns)} a step", "bold green")
    return text.append(f"  {percent(saving_ns, _mean_step_ns(report))}", "green")


def _explanation(fix: Fix, report: Report) -> Iterator[tuple[str, str]]:
    yield "why", fix.why
    if fix.regions:
        yield "where", _where(fix)
    yield "how", fix.how
    if fix.saving_ns_per_step > 0:
        bounds = f"{duration(fix.saving_low_ns)} to {duration(fix.saving_high_ns)}"
        whose = _whose(fix, len(report.ranks)) + _when(fix, report)
        yield "saves", f"{bounds} a step, {fix.confidence:.0%} sure{whose}{_shared(fix, report)}"


def _shared(fix: Fix, report: Report) -> str:
    """What is left of it once better fixes are made, where they claim part of its time."""
    left = fix.saving_after_previous_ns
    if left >= 0.99 * _of_the_job(fix, report):
        return ""
    return f"; {duration(left)} beyond the better fixes"


def _of_the_job(fix: Fix, report: Report) -> float:
    """What it saves of a mean step over all ranks."""
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
