"""Rows of a query for people and programs: a table, JSON or CSV."""

import csv
import io
from collections.abc import Sequence

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from perfdiag.cli.reporters.units import clean, plural, valid
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["Cell", "Row", "as_csv", "as_json", "as_table"]

Cell = int | float | str | bytes | None
Row = Sequence[Cell]

_MOST_ROWS = 1000
"""Rows of a table for people; JSON and CSV have them all."""
_NARROW = 12
"""Cells that a text column must at least have; longer text is folded."""


def as_json(names: Sequence[str], rows: Sequence[Row]) -> bytes:
    """A JSON array with one object a row; bytes as hexadecimal, NaN and infinity as null.

    Raises:
        UsageError: two columns have the same name.
    """
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        msg = f"two columns are called {twice!r}: name one of them with AS, or use --format csv"
        raise UsageError(msg)
    objects = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
    return msgspec.json.encode(objects) + b"\n"


def _plain(cell: Cell) -> int | float | str | None:
    if isinstance(cell, str):
        return valid(cell)
    return cell.hex() if isinstance(cell, bytes) else cell


def as_csv(names: Sequence[str], rows: Sequence[Row], *, for_terminal: bool) -> str:
    """CSV with a header (RFC 4180, bare line feeds); NULL is an empty field, bytes hexadecimal.

    Args:
        names: of the columns.
        rows: the cells.
        for_terminal: take out of names and texts what a terminal would act upon.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (names, *rows):
        cells = [_plain(cell) for cell in row]
        writer.writerow([_safe(cell) for cell in cells] if for_terminal else cells)
    return text.getvalue()


def _safe(cell: int | float | str | None) -> int | float | str | None:
    return clean(cell) if isinstance(cell, str) else cell


def as_table(names: Sequence[str], rows: Sequence[Row], console: Console) -> str:
    """A table for people as wide as `console`; one block a row when it has too many columns."""
    shown = [[_shown(cell) for cell in row] for row in rows[:_MOST_ROWS]]
    heads = [clean(name) for name in names]
    numeric = [_is_numeric(column) for column in zip(*rows[:_MOST_ROWS], strict=True)]
    numeric = numeric or [False] * len(heads)
    body: RenderableType = _side_by_side(heads, shown, numeric)
    if _least_width(heads, shown, numeric) > console.width:
        body = _stacked(heads, shown)
    some = f"{len(shown):,} of " if len(shown) < len(rows) else ""
    rest = "; --format csv and json have them all" if some else ""
    footer = Text(f"({some}{plural(len(rows), 'row')}{rest})", "dim")
    with console.capture() as captured:
        console.print(body, footer, highlight=False, markup=False, sep="\n")
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines()) + "\n"


def _shown(cell: Cell) -> Text:
    if cell is None:
        return Text("NULL", "dim")
    return Text(clean(str(_plain(cell))))


def _is_numeric(column: Sequence[Cell]) -> bool:
    return all(isinstance(cell, (int, float, type(None))) for cell in column)


def _least_width(
    heads: Sequence[str], rows: Sequence[Sequence[Text]], numeric: Sequence[bool]
) -> int:
    columns = zip(
        heads, numeric, zip(*rows, strict=True) if rows else [()] * len(heads), strict=True
    )
    widths = [
        (max(cell_len(head), *(cell.cell_len for cell in cells), 0), is_number)
        for head, is_number, cells in columns
    ]
    return sum(2 + (width if is_number else min(width, _NARROW)) for width, is_number in widths)


def _side_by_side(
    heads: Sequence[str], rows: Sequence[Sequence[Text]], numeric: Sequence[bool]
) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for head, is_number in zip(heads, numeric, strict=True):
        justify, overflow = ("right", "ellipsis") if is_number else ("left", "fold")
        table.add_column(Text(head), justify=justify, overflow=overflow, no_wrap=is_number)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    return table


def _stacked(heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True, max_width=30)
    grid.add_column(overflow="fold")
    for number, row in enumerate(rows, 1):
        grid.add_row(Text(f"row {number:,}", "bold"), "")
        for head, cell in zip(heads, row, strict=True):
            grid.add_row(Text(f"  {head}", "dim"), cell)
    return grid
