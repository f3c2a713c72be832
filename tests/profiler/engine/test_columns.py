"""Tests of perfdiag.profiler.engine.columns and table."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

from perfdiag.profiler.engine import Table
from perfdiag.profiler.engine.columns import decode
from perfdiag.trace_schemas.errors import EngineError

PROTOS = ProtoFactory(PlatformDelegate())
Value = int | float | str | bytes | None
Row = tuple[Value, ...]

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT, st.binary()
)
NARROW = st.sampled_from([None, 0, -1, 2**53 + 1, 0.5, "", "a"])


@st.composite
def _grids(draw: st.DrawFn) -> list[Row]:
    width = draw(st.integers(1, 5))
    # Columns of one type are the common case, mixed ones the hard one.
    columns = [draw(st.sampled_from([VALUES, NARROW, st.just(7), TEXT])) for _ in range(width)]
    return draw(st.lists(st.tuples(*columns), max_size=12))


def _result(names: list[str], batches: list[list[Row]]) -> Any:
    result = PROTOS.QueryResult(column_names=names)
    for rows in batches:
        batch = result.batch.add()
        for row in rows:
            for value in row:
                _add(batch, value)
    result.batch.add().is_last_batch = True
    return result


def _add(batch: Any, value: Value) -> None:
    kinds = {type(None): 1, int: 2, float: 3, str: 4, bytes: 5}
    batch.cells.append(kinds[type(value)])
    match value:
        case int():
            batch.varint_cells.append(value)
        case float():
            batch.float64_cells.append(value)
        case str():
            batch.string_cells += value + "\0"
        case bytes():
            batch.blob_cells.append(value)


def _table(*rows: Row) -> Table:
    names = [f"c{index}" for index in range(len(rows[0]))]
    return decode([_result(names, [list(rows)]).SerializeToString()])


@settings(deadline=None)
@given(_grids(), st.integers(0, 12))
def test_rows_are_those_of_the_package(rows: list[Row], cut: int) -> None:
    """Any mixture of types, in any two batches, decodes as the perfetto package decodes it."""
    names = [f"c{index}" for index in range(len(rows[0]) if rows else 1)]
    result = _result(names, [rows[:cut], rows[cut:]])
    theirs = QueryResultIterator(result.column_names, result.batch)
    table = decode([result.SerializeToString()])
    assert table.rows() == [tuple(vars(row).values()) for row in theirs]
    assert table.rows() == rows


def test_batches_may_come_in_several_messages() -> None:
    """Only the first message of a streamed result names the columns."""
    first = _result(["a"], [[(1,)], [(2,)]])
    second = _result([], [[(3,)]])
    table = decode([first.SerializeToString(), second.SerializeToString()])
    assert table.ints("a").tolist() == [1, 2, 3]


def test_integers_beyond_double_precision_are_exact() -> None:
    """A NULL among large integers does not turn the column into doubles."""
    table = _table((2**63 - 1,), (None,), (-(2**63),), (2**53 + 1,))
    assert table.ints("c0", null=-7).tolist() == [2**63 - 1, -7, -(2**63), 2**53 + 1]


def test_floats_take_integers_and_nulls() -> None:
    """A column of doubles, integers and NULL is one of doubles."""
    values = _table((0.5,), (2,), (None,)).floats("c0")
    assert values[:2].tolist() == [0.5, 2.0]
    assert math.isnan(values[2])


def test_empty_texts_differ_from_null() -> None:
    """An empty text at the end of a batch is kept, and NULL has its own stand-in."""
    table = _table(("a",), (None,), ("",))
    assert table.texts("c0", null="none") == ["a", "none", ""]


def test_codes_point_into_the_different_texts() -> None:
    """Texts are numbered as they first occur."""
    codes, texts = _table(("b",), ("a",), (None,), ("b",)).codes("c0")
    assert codes.dtype == np.int32
    assert codes.tolist() == [0, 1, -1, 0]
    assert texts == ["b", "a"]


def test_equal_texts_are_one_object() -> None:
    """A million rows with one name hold the name once."""
    name = "a name too long to be interned by itself"
    first, second = _table((name,), (name,)).texts("c0")
    assert first is second


def test_types_are_named() -> None:
    """Every column says what it holds."""
    table = _table((1, 0.5, "a", b"b", None, 1), (1, 0.5, None, b"b", None, 0.5))
    assert table.types == ("int", "float", "text", "blob", "null", "mixed")


def test_table_without_rows_keeps_its_columns() -> None:
    """An empty result has names and empty arrays of the right type."""
    table = decode([_result(["a"], []).SerializeToString()])
    assert len(table) == 0
    assert table.names == ("a",)
    assert table.ints("a").dtype == np.int64
    assert table.texts("a") == []
    assert table.rows() == []


def test_table_without_columns_has_no_rows() -> None:
    """A statement that yields nothing is an empty table."""
    table = decode([_result([], []).SerializeToString()])
    assert (len(table), table.names, table.rows()) == (0, (), [])


@pytest.mark.parametrize(
    ("value", "accessor"), [("a", "ints"), (0.5, "ints"), (b"", "floats"), (1, "texts")]
)
def test_wrong_accessor_raises(value: Value, accessor: str) -> None:
    """No value is converted silently."""
    with pytest.raises(TypeError, match="column 'c0' holds"):
        getattr(_table((value,)), accessor)("c0")


def test_missing_column_names_the_others() -> None:
    """The error of a misspelt column lists what is there."""
    with pytest.raises(KeyError, match="no column 'tss'; there are c0, c1"):
        _table((1, 2)).ints("tss")


def test_arrays_can_be_written_to() -> None:
    """What an accessor returns is the caller's own."""
    table = _table((1,), (2,))
    table.ints("c0")[0] = 9
    assert table.ints("c0").tolist() == [1, 2]


def test_invalid_utf8_is_replaced() -> None:
    """Text that is not UTF-8 keeps its row and its neighbours."""
    result = _result(["a"], [[("ab",), ("c",)]]).SerializeToString()
    table = decode([result.replace(b"ab\0", b"\xe2\x82\0")])
    assert table.texts("a") == ["\ufffd", "c"]


def test_values_that_do_not_match_the_cells_are_refused() -> None:
    """A result that contradicts itself raises instead of shifting values."""
    result = _result(["a"], [[(1,), (2,)]])
    result.batch[0].varint_cells.pop()
    with pytest.raises(EngineError, match="2 int cells but 1 value"):
        decode([result.SerializeToString()])


def test_cells_that_fill_no_row_are_refused() -> None:
    """Three cells are no rows of two columns."""
    with pytest.raises(EngineError, match="2 columns has 3 cells"):
        decode([_result(["a", "b"], [[(1, 2), (3,)]]).SerializeToString()])


def test_cells_of_an_unknown_type_are_refused() -> None:
    """A type that trace_processor.proto does not name raises."""
    result = _result(["a"], [[(1,)]])
    result.batch[0].cells[0] = 0
    with pytest.raises(EngineError, match="unknown type"):
        decode([result.SerializeToString()])
