"""`perfdiag selftest`: whether the analysis finds, on this machine, what was put into traces."""

import os
from typing import Annotated, Literal

import typer

from perfdiag.cli import options

__all__ = ["selftest"]

EXIT_WRONG = 1
EXIT_NOT_RUN = 2


def selftest(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="One dose of each fault, in a quarter of the time.", show_default="off"
        ),
    ] = False,
    format_: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="Tables for people, or JSON."),
    ] = "table",
    output_: options.Output = None,
    engine: options.Engine = "wasm",
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes in which jobs are simulated and analysed.",
            show_default="the processors of the machine",
        ),
    ] = os.cpu_count() or 1,
    quiet: options.Quiet = False,
) -> None:
    """Tell whether known faults are found on this machine.

    They are put into simulated jobs, and damage into their traces.

    Exit codes: 0 all is as it should be, 1 something is wrong, 2 the test could not be run.
    """
    from perfdiag.classifiers import selftest as tested
    from perfdiag.cli import output
    from perfdiag.cli.progress import progress_bar
    from perfdiag.cli.reporters import selftest as reporter
    from perfdiag.trace_schemas.errors import PerfdiagError

    output.check_writable(output_)
    try:
        with progress_bar(quiet=quiet) as advance:
            result = tested.run_selftest(quick=quick, engine=engine, jobs=jobs, progress=advance)
    except PerfdiagError as error:
        output.complain(f"the self-test could not be run: {error}")
        raise typer.Exit(EXIT_NOT_RUN) from error
    if format_ == "json":
        output.write(reporter.as_json(result), output_)
    else:
        output.write(reporter.as_table(result, output.console_for(output_)), output_)
    if not result.ok:
        raise typer.Exit(EXIT_WRONG)
