"""`perfdiag query`: SQL in, rows out."""

import io
import json
from pathlib import Path

import pytest
from cli_fakes import FakeQuerying, Runner

from perfdiag.classifiers.counter_tracks import CounterFiles
from perfdiag.classifiers.priced_traces import QueryOptions
from perfdiag.trace_schemas.errors import EngineError, InputError, QueryError


def test_a_table_for_people(perfdiag: Runner, querying: FakeQuerying) -> None:
    """Rows come as a table with a count."""
    result = perfdiag("query", "a.json", "SELECT name, dur FROM slice")
    assert result.code == 0
    assert querying.asked == ("a.json", "SELECT name, dur FROM slice", "wasm")
    assert [line.split() for line in result.out.splitlines() if "gemm" in line] == [
        ["gemm", "1200"]
    ]
    assert "(2 rows)" in result.out


def test_json_rows(perfdiag: Runner, querying: FakeQuerying) -> None:
    """Each row is an object; NULL is null."""
    result = perfdiag("query", "a.json", "SELECT 1", "--format", "json")
    assert json.loads(result.out) == [{"name": "gemm", "dur": 1200}, {"name": "copy", "dur": None}]


def test_csv_rows(perfdiag: Runner, querying: FakeQuerying) -> None:
    """A header and a line a row; NULL is empty."""
    result = perfdiag("query", "a.json", "SELECT 1", "--format", "csv")
    assert result.out == "name,dur\ngemm,1200\ncopy,\n"


def test_sql_from_standard_input(
    perfdiag: Runner, querying: FakeQuerying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL of `-` is read from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 2"))
    perfdiag("query", "a.json", "-", "--engine", "native")
    assert querying.asked == ("a.json", "SELECT 2", "native")


def test_standard_input_cannot_be_both(perfdiag: Runner, querying: FakeQuerying) -> None:
    """Trace and SQL cannot both come from standard input."""
    result = perfdiag("query", "-", "-")
    assert result.code == 2
    assert "stdin cannot be both" in result.err


def test_wrong_sql_is_wrong_usage(perfdiag: Runner, querying: FakeQuerying) -> None:
    """The user's SQL is the user's mistake: exit code 2, with the engine's words."""
    querying.error = QueryError("no such table: slicee")
    result = perfdiag("query", "a.json", "SELECT * FROM slicee")
    assert (result.code, result.out) == (2, "")
    assert "no such table: slicee" in result.err


def test_wrong_sql_does_not_look_like_a_crash(perfdiag: Runner, querying: FakeQuerying) -> None:
    """The engine begins with the word Traceback, which people take for a bug of the program."""
    where = 'File "stdin" line 1 col 1\n    selec 1\n    ^\nsyntax error'
    querying.error = QueryError(f"Traceback (most recent call last):\n  {where}")
    assert perfdiag("query", "a.json", "selec 1").err == f"error: {where}\n"


def test_a_broken_input_is_not(perfdiag: Runner, querying: FakeQuerying) -> None:
    """An unreadable trace and a broken engine are exit code 3."""
    for error in (InputError("a.json", "it is empty"), EngineError("it broke down")):
        querying.error = error
        assert perfdiag("query", "a.json", "SELECT 1").code == 3


def test_equal_names_cannot_be_json(perfdiag: Runner, querying: FakeQuerying) -> None:
    """Two columns of one name would hide each other in an object."""
    querying.names = ("dur", "dur")
    result = perfdiag("query", "a.json", "SELECT 1", "--format", "json")
    assert result.code == 2
    assert "'dur'" in result.err


def test_schema_needs_no_trace(perfdiag: Runner, querying: FakeQuerying) -> None:
    """`--schema` lists tables and columns with what they mean."""
    result = perfdiag("query", "--schema")
    assert result.code == 0
    for text in ("perfdiag_step", "One training iteration.", "DURATION", "Its window."):
        assert text in result.out


def test_schema_as_json(perfdiag: Runner, querying: FakeQuerying) -> None:
    """Programs get a row a table and a row a column."""
    rows = json.loads(perfdiag("query", "a.json", "--schema", "--format", "json").out)
    assert [row["column"] for row in rows] == ["", "rank", "dur"]
    assert {row["table"] for row in rows} == {"perfdiag_step"}


def test_schema_takes_no_sql(perfdiag: Runner, querying: FakeQuerying) -> None:
    """SQL beside `--schema` is a mistake, not ignored."""
    assert perfdiag("query", "a.json", "SELECT 1", "--schema").code == 2
    assert querying.asked is None


def test_output_file(perfdiag: Runner, querying: FakeQuerying, tmp_path: Path) -> None:
    """With -o rows go to the file, raw."""
    querying.values = [("a\x1b[1mb", 1)]
    path = tmp_path / "rows.csv"
    result = perfdiag("query", "a.json", "SELECT 1", "--format", "csv", "-o", str(path))
    assert result.out == ""
    assert path.read_text("utf-8") == "name,dur\na\x1b[1mb,1\n"


def test_options_reach_the_query(perfdiag: Runner, querying: FakeQuerying) -> None:
    """Peaks and counters are told as to `perfdiag analyze`."""
    perfdiag(
        *("query", "a.json", "SELECT 1", "--device", "NVIDIA L4", "--ceilings", "c.json"),
        *("--counters", "gpu.csv", "--counters", "cpu.csv", "--counters-offset", "-1_000"),
        *("--counters-utc-offset", "-05:30"),
    )
    assert querying.options == QueryOptions(
        device="NVIDIA L4",
        ceilings="c.json",
        counters=CounterFiles(("gpu.csv", "cpu.csv"), -1000, -19_800),
    )


def test_inputs_beside_the_trace_are_not_overwritten(
    perfdiag: Runner, querying: FakeQuerying, tmp_path: Path
) -> None:
    """Neither counters nor ceilings."""
    for option in ("--counters", "--ceilings"):
        path = tmp_path / "beside"
        path.write_text("x")
        assert perfdiag("query", "a", "SELECT 1", option, str(path), "-o", str(path)).code == 2
