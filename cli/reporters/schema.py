"""The tables that SQL can use, for people and as rows."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.units import clean

__all__ = ["NAMES", "ColumnDoc", "TableDoc", "as_text", "rows"]

NAMES = ("module", "table", "column", "type", "description")
"""Columns of `rows`."""


class ColumnDoc(Protocol):
    """What is said of a column."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> str:
        """Its PerfettoSQL type."""

    @property
    def description(self) -> str:
        """What it holds."""


class TableDoc(Protocol):
    """What is said of a table."""

    @property
    def module(self) -> str:
        """The PerfettoSQL module that creates it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def description(self) -> str:
        """What a row is."""

    @property
    def columns(self) -> Sequence[ColumnDoc]:
        """Its columns, in order."""


def rows(docs: Iterable[TableDoc]) -> list[tuple[str, str, str, str, str]]:
    """One row a table, with empty `column` and `type`, and one a column; see `NAMES`."""
    found = []
    for doc in docs:
        found.append((doc.module, doc.name, "", "", doc.description))
        found += [(doc.module, doc.name, c.name, c.type, c.description) for c in doc.columns]
    return found


def as_text(docs: Iterable[TableDoc], console: Console) -> str:
    """One block a table."""
    with console.capture() as captured:
        for doc in docs:
            console.print(Text.assemble((doc.name, "bold"), (f"  {doc.module}", "dim")))
            console.print(Padding(Text(clean(doc.description)), (0, 0, 0, 2)))
            console.print(Padding(_columns(doc.columns), (0, 0, 1, 2)))
    lines = captured.get().rstrip().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _columns(columns: Sequence[ColumnDoc]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for column in columns:
        table.add_row(Text(column.name), Text(column.type), Text(clean(column.description)))
    return table
