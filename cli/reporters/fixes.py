"""Fixes for people: by the layer that owns them, those that save most first."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters import fix_text
from perfdiag.cli.reporters.summary import fix_groups
from perfdiag.cli.reporters.units import sentence, shorten
from perfdiag.trace_schemas.report import Fix, Report

__all__ = ["groups"]


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


def _fix(fix: Fix, report: Report, verbose: bool) -> RenderableType:
    head = Table.grid(expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    title = Text(shorten(fix.title, 200), "bold").append(f"  {shorten(fix.id, 40)}", "not bold dim")
    head.add_row(title, _saving(fix, report))
    body = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    body.add_column(min_width=7, no_wrap=True)
    body.add_column(overflow="fold")
    rows = [*fix_text.explanation(fix, report), *(fix_text.proof(fix) if verbose else ())]
    for key, text in rows:
        body.add_row(Text(f"  {key}", "dim"), Text(sentence(text)))
    return Group(head, body)


def _saving(fix: Fix, report: Report) -> Text:
    time, share = fix_text.saving(fix, report)
    if not time:
        return Text("saving not known", "dim")
    return Text(time, "bold green").append(f"  {share}", "green")
