"""`perfdiag features`: what a trace shows of each step and phase, as numbers for a classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiag.cli import options
from perfdiag.cli.analysing import USUAL, Analysis, analysing
from perfdiag.trace_schemas.errors import UsageError

if TYPE_CHECKING:
    from perfdiag.cli.reporters.rows import Cell

__all__ = ["features"]


@analysing
def features(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Traces of one job, as for analyze; --schema needs none.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool,
        typer.Option("--schema", help="List the features and what they mean.", show_default="off"),
    ] = False,
    format_: options.RowFormat = "table",
    output_: options.Output = None,
    how: Analysis = USUAL,
) -> None:
    """Print what a trace shows of steps and phases, as numbers."""
    from perfdiag.classifiers import features_of
    from perfdiag.classifiers.features import FEATURES
    from perfdiag.cli import output
    from perfdiag.cli.reporters import features as rows_of

    output.check_writable(output_, *(paths or ()), beside=how.files)
    if schema == bool(paths):
        msg = "give a PATH, or --schema to list the features: one of the two"
        raise UsageError(msg)
    if schema:
        _show(rows_of.SCHEMA, rows_of.schema(FEATURES), format_, output_)
        return
    settings = how.settings()
    names, rows = rows_of.rows(FEATURES, features_of.job_features(paths or (), settings))
    _show(names, rows if format_ != "table" else [*map(rows_of.rounded, rows)], format_, output_)


def _show(
    names: Sequence[str], rows: "Sequence[Sequence[Cell]]", format_: str, output_: Path | None
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
