"""`perfdiag report`: a page for those who did not run it, or markdown for a pull request."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perfdiag.cli import options
from perfdiag.cli.analysing import USUAL, Analysis, analysing

if TYPE_CHECKING:
    from perfdiag.trace_schemas.report import Report

__all__ = ["report"]


@analysing
def report(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Traces of one job, as for analyze; or a report that analyze wrote as JSON.",
        ),
    ],
    output_: options.Output = None,
    format_: Annotated[
        Literal["html", "markdown"] | None,
        typer.Option(
            "--format",
            help="A page that needs nothing else, or text for a pull request.",
            show_default="markdown if FILE ends in .md, else html",
        ),
    ] = None,
    how: Analysis = USUAL,
    time_range: options.Section = None,
    config: options.Config = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the report as a page of its own, or as markdown.

    The page holds all that it shows: it loads nothing, works without a network, and can be mailed.
    """
    from perfdiag.classifiers import analysis
    from perfdiag.cli import output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar
    from perfdiag.cli.saved import read_saved

    beside = (*how.files, config)
    output.check_writable(output_, *paths, beside=beside)
    chosen = format_ or _by_name(output_)
    _check_shown(chosen, output_)
    found = read_saved(paths)
    if found is not None:
        _check_unasked(how, time_range, config)
    else:
        settings = how.settings(read_config(config), time_range_ns=time_range)
        with progress_bar(quiet=quiet) as advance:
            found = analysis.analyze(paths, settings, advance)
    _write(found, chosen, output_, quiet)


def _check_unasked(how: Analysis, time_range: object, config: Path | None) -> None:
    """What was saved was analysed already."""
    from perfdiag.trace_schemas.errors import UsageError

    more = {"--time-range": time_range, "--config": config}
    given = [*how.given, *(name for name, value in more.items() if value is not None)]
    if given:
        msg = (
            f"{', '.join(given)}: a saved report is shown as it is; leave this out, or name the "
            "traces themselves"
        )
        raise UsageError(msg)


def _by_name(output_: Path | None) -> str:
    return "markdown" if output_ is not None and output_.suffix.lower() == ".md" else "html"


def _check_shown(format_: str, output_: Path | None) -> None:
    """Nobody wants to see a page's source on a terminal."""
    import sys

    from perfdiag.trace_schemas.errors import UsageError

    if format_ == "html" and output_ is None and sys.stdout.isatty():
        msg = "a page is no text for a terminal: name a file with -o, like -o report.html"
        raise UsageError(msg)


def _write(found: "Report", format_: str, output_: Path | None, quiet: bool) -> None:
    from perfdiag.cli import output
    from perfdiag.cli.reporters import markdown, notices, page
    from perfdiag.cli.reporters.units import size

    text = page.render(found) if format_ == "html" else markdown.render(found)
    data = text.encode()
    output.write(data, output_)
    if quiet:
        return
    for line in notices.lines(found, verbose=False):
        output.remark(line)
    if output_ is not None:
        output.remark(f"{size(len(data))} written to {output_}")
