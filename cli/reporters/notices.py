"""Notices for people: what limits or biases the verdict."""

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.units import clean, plural, sentence, shorten
from perfdiag.trace_schemas.notices import Severity
from perfdiag.trace_schemas.report import NoticeRow, Report

__all__ = ["lines", "note", "table"]

_STYLE: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "info": "dim"}
_ORDER = tuple(_STYLE)


def note(report: Report) -> str:
    """How many there are of each severity."""
    by_severity = Counter(row.severity for row in report.notices)
    return ", ".join(plural(by_severity[s], s) for s in _ORDER if by_severity[s])


def table(report: Report, *, verbose: bool) -> Table:
    """Errors and warnings, and with `verbose` the rest."""
    rows = _shown(report, verbose=verbose)
    grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(overflow="fold")
    for row in rows:
        message = Text(sentence(row.message)).append(f"  {_about(report, row)}", "dim")
        grid.add_row(Text(row.severity, _STYLE[row.severity]), f"{row.count:,}", message)
    hidden = len(report.notices) - len(rows)
    if hidden:
        grid.add_row(Text("info", "dim"), "", Text(f"{hidden} more with -v", "dim"))
    return grid


def lines(report: Report, *, verbose: bool) -> Iterator[str]:
    """One line a notice, for standard error."""
    for row in _shown(report, verbose=verbose):
        yield f"{row.severity}: {sentence(row.message)} ({_about(report, row)}, count {row.count})"


def _shown(report: Report, *, verbose: bool) -> list[NoticeRow]:
    rows = [row for row in report.notices if verbose or row.severity != "info"]
    return sorted(rows, key=lambda row: _ORDER.index(row.severity))


def _about(report: Report, row: NoticeRow) -> str:
    if row.input is None or len(report.inputs) < 2:
        return clean(row.kind)
    return f"{clean(row.kind)}, {shorten(PurePath(row.input).name, 40)}"
