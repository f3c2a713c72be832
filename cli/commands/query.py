"""`perfdiag query`: SQL over a trace, with the tables of the perfdiag package."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiag.cli import options
from perfdiag.trace_schemas.errors import QueryError, UsageError

if TYPE_CHECKING:
    from perfdiag.classifiers.priced_traces import QueryOptions

__all__ = ["query"]

_TRACEBACK = "Traceback (most recent call last):\n  "
"""How the engine begins; it then says which line of the SQL, and would look like a crash here."""


def query(
    trace: Annotated[
        str | None,
        typer.Argument(
            metavar="TRACE",
            help="A trace of any format that analyze reads; --schema needs none.",
            show_default=False,
        ),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL", help="PerfettoSQL; - reads it from stdin.", show_default=False
        ),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="List the tables of the perfdiag package and their columns.",
            show_default="off",
        ),
    ] = False,
    format_: options.RowFormat = "table",
    output_: options.Output = None,
    counters: options.Counters = None,
    counters_offset: options.CountersOffset = None,
    counters_utc_offset: options.CountersUtcOffset = None,
    device: options.Device = None,
    ceilings: options.Ceilings = None,
    engine: options.Engine = "wasm",
) -> None:
    """Run SQL on a trace, or list the tables that SQL can use."""
    from perfdiag.classifiers.counter_tracks import CounterFiles
    from perfdiag.classifiers.priced_traces import QueryOptions
    from perfdiag.cli import output

    if trace is not None:
        output.check_writable(output_, trace, beside=(*(counters or ()), ceilings))
    if schema:
        _show_schema(sql, format_, output_)
        return
    files = CounterFiles(tuple(counters or ()), counters_offset, counters_utc_offset)
    how = QueryOptions(engine=engine, device=device, ceilings=ceilings, counters=files)
    _show_answer(*_checked(trace, sql), how, format_, output_)


def _checked(trace: str | None, sql: str | None) -> tuple[str, str]:
    if trace is None or sql is None:
        msg = "give a TRACE and SQL, or --schema to list the tables"
        raise UsageError(msg)
    if sql != "-":
        return trace, sql
    if trace == "-":
        msg = "stdin cannot be both the trace and the SQL: name a file for one of them"
        raise UsageError(msg)
    return trace, sys.stdin.read()


def _show_answer(
    trace: str, sql: str, how: "QueryOptions", format_: str, output_: Path | None
) -> None:
    from perfdiag.classifiers import priced_traces

    try:
        table = priced_traces.query_trace(trace, sql, how)
    except QueryError as error:  # the user's own SQL: wrong usage, not a broken input
        raise UsageError(str(error).removeprefix(_TRACEBACK)) from error
    _show_rows(table.names, table.rows(), format_, output_)


def _show_schema(sql: str | None, format_: str, output_: Path | None) -> None:
    from perfdiag.cli import output
    from perfdiag.cli.reporters import schema
    from perfdiag.profiler import querying

    if sql is not None:
        msg = "--schema takes no SQL: leave one of the two out"
        raise UsageError(msg)
    docs = querying.describe_schema()
    if format_ == "table":
        output.write(schema.as_text(docs, output.console_for(output_)), output_)
    else:
        _show_rows(schema.NAMES, schema.rows(docs), format_, output_)


def _show_rows(
    names: Sequence[str],
    rows: Sequence[Sequence[int | float | str | bytes | None]],
    format_: str,
    output_: Path | None,
) -> None:
    from perfdiag.cli import output
    from perfdiag.cli.reporters.rows import as_csv, as_json, as_table

    console = output.console_for(output_)
    if format_ == "json":
        output.write(as_json(names, rows), output_)
    elif format_ == "csv":
        output.write(as_csv(names, rows, for_terminal=console.is_terminal), output_)
    else:
        output.write(as_table(names, rows, console), output_)
