"""`perfdiag annotate`: a trace with the verdict drawn over it, for the Perfetto UI."""

from pathlib import Path
from typing import Annotated

import typer

from perfdiag.cli import options

__all__ = ["annotate"]


def annotate(  # one parameter an option: typer reads them here
    paths: options.Traces,
    output_: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.pftrace",
            help="The trace to write; .json or .json.gz puts the events into the JSON of one "
            "rank; no default.",
        ),
    ],
    step_marker: options.StepMarker = None,
    device_track: options.DeviceTrack = None,
    time_unit: options.TimeUnit = None,
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
    """Draw the verdict over the trace itself, for the Perfetto UI.

    Each rank gets a group of tracks on top: steps and regions with their labels, the time budget,
    waits, and fixes with arrows to what proves them. All events of the original are kept.
    """
    from perfdiag.classifiers.annotations import writing
    from perfdiag.classifiers.options import Options
    from perfdiag.cli import output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar
    from perfdiag.cli.reporters.units import plural, size

    beside = (*(counters or ()), *([ceilings] if ceilings else ()))
    output.check_writable(output_, *paths, *beside)
    configured = read_config(config)
    settings = Options(
        engine=engine,
        step_marker=step_marker,
        device_track=device_track,
        time_unit=time_unit,
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
        done = writing.annotate(paths, output_, settings, advance)
    if not quiet:
        ranks = plural(len(done.judged.ranks), "rank")
        output.remark(
            f"{ranks}, {size(done.size_bytes)} written to {output_}: open it in "
            f"https://ui.perfetto.dev, or with perfdiag view"
        )
