"""The ranks of a job as a heat strip: one character a rank, so that hundreds fit on a screen."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.text import Text

from perfdiag.cli.reporters.summary import RankRow, rank_rows
from perfdiag.cli.reporters.units import duration
from perfdiag.trace_schemas.report import Report

__all__ = ["above"]

_LEAST_RANKS = 3
"""Two ranks are read off the table as fast."""

_SHADES, _ASCII_SHADES = " ░▒▓█", " .:=#"

_INDENT, _NAME, _FIGURES = 2, 10, 20
"""Cells that the section, the name of a row and its figures take of a line."""

_EVERY = 8
"""Ranks from one number to the next; a line holds a multiple of that."""

_MOST = 128
"""Ranks a line: more cannot be told apart by eye."""

_FLAT = 0.01
"""Of a step, the spread between ranks that a row is drawn with at least; a choice: less than that
is noise, and full contrast would make a pattern of it."""


class _Row(NamedTuple):
    """A name, a time for each rank, and the spread that the darkest shade stands for."""

    name: str
    times_ns: Sequence[float]
    spread_ns: float

    def levels(self) -> list[int]:
        """(ranks,) which shade each has."""
        lowest, most = min(self.times_ns), len(_SHADES) - 1
        spread = max(1.0, self.spread_ns)
        return [min(most, round((ns - lowest) / spread * most)) for ns in self.times_ns]

    def figures(self) -> str:
        """The lowest and the highest time."""
        lowest, highest = duration(min(self.times_ns)), duration(max(self.times_ns))
        return lowest if lowest == highest else f"{lowest} to {highest}"


def above(table: RenderableType, report: Report, console: Console) -> RenderableType:
    """The table of ranks, under a heat strip where there are ranks enough for one.

    Args:
        table: of the ranks.
        report: what to show.
        console: whose width and encoding it keeps to.
    """
    if len(report.ranks) < _LEAST_RANKS:
        return table
    return Group(*_lines(report, console), "", table)


def _lines(report: Report, console: Console) -> Iterator[Text]:
    ranks = rank_rows(report)
    rows = list(_rows(ranks))
    room = console.width - _INDENT - _NAME - _FIGURES
    cells = min(_MOST, max(_EVERY, room // _EVERY * _EVERY))
    culprits = [i for i, row in enumerate(ranks) if row.is_culprit]
    shades = _ASCII_SHADES if console.options.ascii_only else _SHADES
    for first in range(0, len(ranks), cells):
        shown = range(first, min(first + cells, len(ranks)))
        told = first == 0 and room >= _EVERY
        for row in rows:
            yield _line(row, shown, shades, culprits, told=told)
        if any(i in shown for i in culprits):
            yield _marks(shown, culprits)
        yield _numbers(ranks, shown)


def _rows(ranks: Sequence[RankRow]) -> Iterator[_Row]:
    """What the strip shows; nothing of waits where nobody waits."""
    times = {
        "step time": [row.step_ns for row in ranks],
        "waits": [row.waits_ns for row in ranks],
        "late": [row.late_ns for row in ranks],
    }
    least = _FLAT * sum(times["step time"]) / len(ranks)
    for name, ns in times.items():
        if any(ns):
            yield _Row(name, ns, max(least, max(ns) - min(ns)))


def _line(row: _Row, shown: range, shades: str, culprits: Sequence[int], *, told: bool) -> Text:
    """One row of a stretch of ranks, with its figures if they are to be told."""
    text = Text(f"{row.name:<{_NAME}}", "dim")
    levels = row.levels()
    for i in shown:
        text.append(shades[levels[i]], "not dim bold red" if i in culprits else "not dim")
    return text.append(f"  {row.figures()}", "not dim") if told else text


def _marks(shown: range, culprits: Sequence[int]) -> Text:
    marks = "".join("^" if i in culprits else " " for i in shown)
    return Text(f"{'culprit':<{_NAME}}", "dim").append(marks.rstrip(), "not dim bold red")


def _numbers(ranks: Sequence[RankRow], shown: range) -> Text:
    """Numbers of the ranks, each under the rank that it names."""
    names = ("?" if ranks[i].rank is None else str(ranks[i].rank) for i in shown[::_EVERY])
    return Text(f"{'rank':<{_NAME}}" + "".join(f"{name:<{_EVERY}}" for name in names), "dim")
