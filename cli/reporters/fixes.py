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


def groups(report: Report) -> RenderableType:
    """One block a layer."""
    blocks: list[RenderableType] = []
    for layer, fixes in fix_groups(report.fixes).items():
        blocks += ["", Text(layer, "underline"), *(_fix(fix, report) for fix in fixes)]
    return Group(*blocks[1:])


def _mean_step_ns(report: Report) -> float:
    return report.job.totals_ns.window / max(1, step_count(report))


def _fix(fix: Fix, report: Report) -> RenderableType:
    head = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    title = Text(shorten(fix.title, 200), "bold").append(f"  {shorten(fix.id, 40)}", "not bold dim")
    head.add_row(title, _saving(fix, _mean_step_ns(report)))
    body = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    body.add_column(min_width=7, no_wrap=True)
    for key, text in _explanation(fix, len(report.ranks)):
        body.add_row(Text(f"  {key}", "dim"), Text(sentence(text)))
    return Group(head, body)


def _saving(fix: Fix, step_ns: float) -> Text:
    if fix.saving_ns_per_step <= 0:
        return Text("saving not known", "dim")
    text = Text(f"{duration(fix.saving_ns_per_step)} a step", "bold green")
    return text.append(f"  {percent(fix.saving_ns_per_step, step_ns)}", "green")


def _explanation(fix: Fix, n_ranks: int) -> Iterator[tuple[str, str]]:
    yield "why", fix.why
    yield "how", fix.how
    if fix.saving_ns_per_step > 0:
        bounds = f"{duration(fix.saving_low_ns)} to {duration(fix.saving_high_ns)}"
        yield "saves", f"{bounds} a step, {fix.confidence:.0%} sure{_whose(fix, n_ranks)}"


def _whose(fix: Fix, n_ranks: int) -> str:
    ranks = [str(rank) for rank in fix.ranks if rank is not None]
    if not ranks or n_ranks < 2:
        return ""
    if len(ranks) == n_ranks:
        return ", on all ranks"
    some = ", ".join(ranks[:8]) + (", ..." if len(ranks) > 8 else "")
    return f", on rank {some}" if len(ranks) == 1 else f", on ranks {some}"
