"""`perfdiag analyze`: what bounds each part of the training step, and whose fix it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from perfdiag.cli import options

if TYPE_CHECKING:
    from perfdiag.trace_schemas.report import Report

__all__ = ["analyze"]


def analyze(  # one parameter an option: typer reads them here
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Traces of one job: files, folders of rank files, archives, globs; - is stdin.",
        ),
    ],
    format_: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="A table for people, or the whole report as JSON."),
    ] = "table",
    output_: options.Output = None,
    step_marker: Annotated[
        str | None,
        typer.Option(
            parser=options.regex,
            metavar="REGEX",
            help="Annotations whose name matches are the steps.",
            show_default="the markers of known frameworks",
        ),
    ] = None,
    device_track: Annotated[
        str | None,
        typer.Option(
            parser=options.regex,
            metavar="REGEX",
            help="Tracks of a foreign trace whose name matches are device lanes.",
            show_default="recognised by what they hold",
        ),
    ] = None,
    time_unit: Annotated[
        Literal["us", "ns", "ms"] | None,
        typer.Option(help="Unit of the times in the trace.", show_default="as the format says"),
    ] = None,
    time_range: Annotated[
        options.TimeRange | None,
        typer.Option(
            parser=options.time_range,
            metavar="START:END",
            help="Only this part, in seconds from the start of the trace, like 1.5:3.",
            show_default="the whole trace",
        ),
    ] = None,
    counters: options.Counters = None,
    counters_offset: options.CountersOffset = None,
    counters_utc_offset: options.CountersUtcOffset = None,
    device: options.Device = None,
    ceilings: options.Ceilings = None,
    engine: options.Engine = "wasm",
    max_memory: Annotated[
        int | None,
        typer.Option(
            parser=options.size,
            metavar="SIZE",
            help="Refuse an input that needs more memory, like 8GB.",
            show_default="what the machine has",
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            parser=options.seconds,
            metavar="SECONDS",
            help="Give up a call to the trace processor after this.",
            show_default="600",
        ),
    ] = 600.0,
    jobs: options.Jobs = options.PROCESSORS,
    config: options.Config = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what bounds a training step, and whose fix that is.

    Every part of a step gets a label (compute-, memory-, collective- or host-bound, or unknown)
    with its evidence: where the time goes, and what each fix would save.
    """
    from perfdiag.classifiers import analysis
    from perfdiag.cli import output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar

    beside = (*(counters or ()), *([ceilings] if ceilings else ()))
    output.check_writable(output_, *paths, *beside)
    configured = read_config(config)
    settings = analysis.Options(
        engine=engine,
        step_marker=step_marker,
        device_track=device_track,
        time_unit=time_unit,
        max_memory_bytes=max_memory,
        deadline_s=deadline,
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
        report = analysis.analyze(paths, settings, advance)
    _show(report, format_, output_, quiet, verbose)


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
