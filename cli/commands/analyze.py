"""`perfdiag analyze`: what bounds each part of the training step, and whose fix it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perfdiag.cli import options
from perfdiag.cli.analysing import USUAL, Analysis, analysing

if TYPE_CHECKING:
    from perfdiag.trace_schemas.report import Report

__all__ = ["analyze"]


@analysing
def analyze(
    paths: options.Traces,
    format_: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="A table for people, or the whole report as JSON."),
    ] = "table",
    output_: options.Output = None,
    how: Analysis = USUAL,
    time_range: options.Section = None,
    max_memory: options.MaxMemory = None,
    deadline: options.Deadline = 600.0,
    config: options.Config = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPR",
            help="Exit with 1 if this holds of the report, like 'host-bound>20%', and with 2 if "
            "it cannot be told; may be given several times. See docs/ci.md.",
            show_default="none",
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what came of the gates as JUnit XML.",
            show_default="none",
        ),
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what bounds a training step, and whose fix that is.

    Every part of a step gets a label (compute-, memory-, collective- or host-bound, or unknown)
    with its evidence: where the time goes, and what each fix would save.
    """
    from perfdiag.classifiers import analysis
    from perfdiag.cli import gating, output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar

    gates = gating.parse(fail_on, junit)
    beside = (*how.files, config)
    for result in (output_, junit):
        output.check_writable(result, *paths, beside=beside)
    output.check_apart(output_, junit)
    settings = how.settings(
        read_config(config),
        time_range_ns=time_range,
        max_memory_bytes=max_memory,
        deadline_s=deadline,
    )
    with progress_bar(quiet=quiet) as advance:
        report = analysis.analyze(paths, settings, advance)
    _show(report, format_, output_, quiet, verbose)
    gating.conclude(gates, report, junit, quiet=quiet)


def _show(report: "Report", format_: str, output_: Path | None, quiet: bool, verbose: bool) -> None:
    from perfdiag.cli import output
    from perfdiag.cli.reporters import json, notices

    is_table = format_ == "table"
    if is_table:
        from perfdiag.cli.reporters import terminal

        table = terminal.render(report, output.console_for(output_), verbose=verbose)
        output.write(table, output_)
    else:
        output.write(json.encode(report), output_)
    if quiet or (is_table and output.is_on_screen(output_)):
        return
    for line in notices.lines(report, verbose=verbose):
        output.remark(line)
