"""`perfdiag report`: a page for those who did not run it, or markdown for a pull request."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perfdiag.cli import options

if TYPE_CHECKING:
    from perfdiag.trace_schemas.report import Report

__all__ = ["report"]


def report(  # one parameter an option: typer reads them here
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
    step_marker: options.StepMarker = None,
    time_range: options.Section = None,
    counters: options.Counters = None,
    counters_offset: options.CountersOffset = None,
    counters_utc_offset: options.CountersUtcOffset = None,
    device: options.Device = None,
    ceilings: options.Ceilings = None,
    engine: options.Engine = "wasm",
    jobs: options.Jobs = options.PROCESSORS,
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

    output.check_writable(output_, *paths, *(counters or ()), *([ceilings] if ceilings else ()))
    chosen = format_ or _by_name(output_)
    _check_shown(chosen, output_)
    found = read_saved(paths)
    if found is None:
        configured = read_config(config)
        settings = analysis.Options(
            engine=engine,
            step_marker=step_marker,
            time_range_ns=time_range,
            thresholds=configured.thresholds,
            config=configured.path,
            jobs=jobs,
            counters=tuple(counters or ()),
            counters_offset_ns=counters_offset,
            counters_utc_offset_s=counters_utc_offset,
            device=device,
            ceilings=ceilings,
        )
        with progress_bar(quiet=quiet) as advance:
            found = analysis.analyze(paths, settings, advance)
    _write(found, chosen, output_, quiet)


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
