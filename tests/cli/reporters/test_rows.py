"""Rows of a query."""

import csv
import io
import json
from math import nan

import pytest
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters.rows import Row, as_csv, as_json, as_table
from perfdiag.trace_schemas.errors import UsageError

ROWS: list[Row] = [("gemm", 1200, 0.5, b"\x01\xff"), (None, None, nan, None)]
NAMES = ("name", "dur", "share", "blob")


def table(names: tuple[str, ...], rows: list[Row], width: int = 80) -> str:
    return as_table(names, rows, Console(file=io.StringIO(), width=width))


def test_json_values() -> None:
    """Bytes are hexadecimal; NULL and NaN are null."""
    assert json.loads(as_json(NAMES, ROWS)) == [
        {"name": "gemm", "dur": 1200, "share": 0.5, "blob": "01ff"},
        {"name": None, "dur": None, "share": None, "blob": None},
    ]


def test_json_keeps_64_bits() -> None:
    """Ids beyond 2**53 are exact."""
    assert as_json(("id",), [(2**63 - 1,)]) == b'[{"id":9223372036854775807}]\n'


def test_json_refuses_equal_names() -> None:
    """An object cannot hold two columns of one name."""
    with pytest.raises(UsageError, match="'a'"):
        as_json(("a", "a"), [(1, 2)])


def test_csv_reads_back() -> None:
    """Quotes, commas and newlines survive."""
    text = as_csv(("a", "b"), [('x,"y"\nz', 1)], for_terminal=False)
    assert list(csv.reader(io.StringIO(text))) == [["a", "b"], ['x,"y"\nz', "1"]]


def test_csv_on_a_terminal_is_safe() -> None:
    """On a terminal names cannot act; in a file they are as they are."""
    rows: list[Row] = [("\x1b[2Jevil\nname",)]
    assert as_csv(("a",), rows, for_terminal=True) == "a\nevil name\n"
    assert "\x1b[2J" in as_csv(("a",), rows, for_terminal=False)


def test_table_aligns_numbers_and_counts_rows() -> None:
    """Numbers end in one column, NULL is told from an empty text."""
    lines = table(("name", "dur"), [("gemm", 1200), ("", 7), (None, None)]).splitlines()
    assert len({len(line) for line in lines if line.endswith(("1200", "7", "NULL"))}) == 1
    assert lines[-1] == "(3 rows)"
    assert sum("NULL" in line for line in lines) == 1


def test_table_keeps_to_the_width_and_loses_nothing() -> None:
    """Long texts are folded, numbers stay whole."""
    name = "kernel<" + "x" * 200 + ">"
    text = table(("name", "dur"), [(name, 123_456_789)], width=40)
    assert max(map(cell_len, text.splitlines())) <= 40
    assert "123456789" in text
    assert text.count("x") == 200


def test_too_many_columns_are_stacked() -> None:
    """Where columns cannot stand side by side each row is a block."""
    names = tuple(f"column_{i}" for i in range(12))
    text = table(names, [tuple(range(10**9, 10**9 + 12))], width=60)
    assert "row 1" in text
    assert max(map(cell_len, text.splitlines())) <= 60
    assert all(str(10**9 + i) in text for i in range(12))


def test_long_tables_say_what_is_left_out() -> None:
    """A table for people stops at a thousand rows, and names the formats that do not."""
    text = table(("id",), [(i,) for i in range(1500)])
    assert text.endswith("(1,000 of 1,500 rows; --format csv and json have them all)\n")


def test_no_rows() -> None:
    """An empty answer still shows its columns."""
    text = table(("name", "dur"), [])
    assert "name" in text
    assert "(0 rows)" in text


def test_no_columns() -> None:
    """A statement that returns nothing is no error."""
    assert "(0 rows)" in table((), [])


def test_hostile_cells_have_no_effect() -> None:
    """Cells and names of columns come out of the trace."""
    text = table(("a\x1b[1m",), [("\x1b[2J[red]x\ny",)])
    assert "\x1b" not in text
    assert "[red]x y" in text
