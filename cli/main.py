"""The entry point: commands in the order in which a person needs them, and exit codes."""

import atexit
import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from perfdiag import __version__
from perfdiag.cli.commands.analyze import analyze
from perfdiag.cli.commands.annotate import annotate
from perfdiag.cli.commands.convert import convert
from perfdiag.cli.commands.explain import explain
from perfdiag.cli.commands.features import features
from perfdiag.cli.commands.query import query
from perfdiag.cli.commands.report import report
from perfdiag.cli.commands.selftest import selftest
from perfdiag.cli.commands.triage import triage
from perfdiag.cli.commands.view import view
from perfdiag.cli.signals import ended_cleanly
from perfdiag.trace_schemas.errors import PerfdiagError, UsageError

__all__ = ["app", "run"]

EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="perfdiag",
    help="Find what bounds each part of a training step, and whose fix it is.",
    epilog="Exit codes: 0 a report was made, 2 wrong usage, 3 an input could not be read; "
    "with --fail-on 1 a gate fails, 2 none does but one cannot be told.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Whatever else the commands need they import when they run: `perfdiag --help` must not wait.
for command in (
    analyze,
    view,
    report,
    annotate,
    triage,
    explain,
    query,
    features,
    convert,
    selftest,
):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"perfdiag {__version__}")
        raise typer.Exit


@app.callback()
def perfdiag(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say which version."
        ),
    ] = False,
) -> None:
    """Find what bounds each part of a training step, and whose fix it is."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: without the name of the program; those of the process by default.

    Raises:
        SystemExit: always, with 0 for a result, 2 for wrong usage, 3 for an input that cannot be
            read or analysed, 130 when interrupted. Anything else that comes out is a bug.
    """
    # Nothing here makes cycles by the million, and everything is wanted until the end: collecting
    # garbage costs a sixth of the time of an analysis and frees 2 MB.
    gc.disable()
    atexit.register(gc.freeze)
    _prepare_streams()
    with ended_cleanly():
        _run(arguments)


def _run(arguments: Sequence[str] | None) -> None:
    try:
        typer.main.get_command(app).main(arguments, prog_name="perfdiag")
    except PerfdiagError as error:
        from perfdiag.cli.output import complain

        complain(str(error))
        sys.exit(EXIT_USAGE if isinstance(error, UsageError) else EXIT_INPUT)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _give_up_stdout()
        sys.exit(EXIT_USAGE)


def _prepare_streams() -> None:
    """Make standard streams that can be used: a caller may have closed them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a path need not be valid text
            stream.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """Say that a full disk takes no result, as far as anything can be said there."""
    from perfdiag.cli.output import complain, discard_stdout

    discard_stdout()
    complain("no space left: the result cannot be written")
