"""The SQL package keeps the habits of Perfetto's standard library."""

import re
from importlib.resources import files

import pytest

from perfdiag.trace_schemas.sql_docs import ColumnDoc, TableDoc, parse_module

_FOLDER = files("perfdiag.trace_schemas") / "sql" / "perfdiag"
_MODULES = {
    f"perfdiag.{file.name.removesuffix('.sql')}": file.read_text(encoding="utf-8")
    for file in _FOLDER.iterdir()
    if file.name.endswith(".sql")
}
every_module = pytest.mark.parametrize("module", sorted(_MODULES))


def _code(module: str) -> str:
    return re.sub(r"--[^\n]*", "", _MODULES[module])


def _statements(module: str) -> list[str]:
    return [text.strip() for text in _code(module).split(";") if text.strip()]


@every_module
def test_files_only_create_and_include(module: str) -> None:
    """A module makes PerfettoSQL objects and includes others; it has no other effects."""
    allowed = re.compile(
        r"CREATE PERFETTO (TABLE|VIEW|FUNCTION|MACRO|INDEX) \w+|INCLUDE PERFETTO MODULE [\w.]+$"
    )
    assert [text for text in _statements(module) if not allowed.match(text)] == []


@every_module
def test_names_are_private_or_prefixed(module: str) -> None:
    """Nothing that a module makes can clash with a user's table."""
    names = re.findall(r"CREATE PERFETTO (?:TABLE|VIEW|FUNCTION|MACRO|INDEX) (\w+)", _code(module))
    assert [name for name in names if not name.startswith(("_", "perfdiag_"))] == []


@every_module
def test_everything_is_documented(module: str) -> None:
    """A comment stands above the file, every object and every column."""
    assert _MODULES[module].startswith("-- ")
    objects = re.findall(r"(--[^\n]*\n)?CREATE PERFETTO (?!INDEX)\w+ (\w+)", _MODULES[module])
    assert [name for comment, name in objects if not comment] == []
    tables = parse_module(module, _MODULES[module])
    undescribed = [(t.name, c.name) for t in tables for c in t.columns if not c.description]
    assert undescribed == []


@every_module
def test_every_table_declares_its_columns(module: str) -> None:
    """The documentation shows every table and as many columns as its query returns."""
    tables = parse_module(module, _MODULES[module])
    made = re.findall(r"CREATE PERFETTO (?:TABLE|VIEW) (\w+)", _code(module))
    assert [table.name for table in tables] == made
    assert [table.name for table in tables if not table.columns] == []


@every_module
def test_patterns_are_globs(module: str) -> None:
    """LIKE ignores case and takes `_` for any character, which names are full of."""
    assert re.findall(r"\bLIKE\b", _code(module), re.IGNORECASE) == []


@every_module
def test_included_modules_exist(module: str) -> None:
    """Includes of the package lead to its own files."""
    included = re.findall(r"INCLUDE PERFETTO MODULE (perfdiag\.[\w.]+)", _code(module))
    assert [name for name in included if name not in _MODULES] == []


def test_a_table_is_parsed() -> None:
    """Comments of several lines become one sentence; private names are known as such."""
    sql = (
        "-- Module.\n\n-- What\n-- a row is.\nCREATE PERFETTO VIEW _thing(\n"
        "  -- An\n  -- id.\n  id LONG,\n  -- Refers to it.\n  other_id JOINID(slice.id)\n"
        ") AS\nSELECT 1;\n"
    )
    columns = (
        ColumnDoc("id", "LONG", "An id."),
        ColumnDoc("other_id", "JOINID(slice.id)", "Refers to it."),
    )
    table = TableDoc("_thing", "What a row is.", columns, "perfdiag.thing")
    assert parse_module("perfdiag.thing", sql) == [table]
    assert table.private
