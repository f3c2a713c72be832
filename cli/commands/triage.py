"""`perfdiag triage`: a bundle for each team that owns a fix."""

from pathlib import Path
from typing import Annotated

import typer

from perfdiag.cli import options

__all__ = ["triage"]


def triage(  # one parameter an option: typer reads them here
    paths: options.Traces,
    output_: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The folder to write, or a zip archive if it ends in .zip; no default.",
        ),
    ],
    owners: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Teams and the rules that give fixes to them, see docs/triage.md.",
            show_default="a team for each layer",
        ),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Put pseudonyms in place of hosts, users, paths and names that are not public.",
            show_default="off",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace what an earlier triage wrote there; other files stay.",
            show_default="off",
        ),
    ] = False,
    step_marker: options.StepMarker = None,
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
    """Write a bundle for each team that owns a fix.

    In each: an issue as README.md, the slice of the trace that shows it, queries that return every
    number, operators to run alone, and a script that tells whether a new trace is fixed.
    """
    from datetime import UTC, datetime

    from perfdiag.classifiers import analysis
    from perfdiag.classifiers.counter_tracks import CounterFiles, counter_adder
    from perfdiag.classifiers.owners import read_owners
    from perfdiag.classifiers.triage import TriageOptions
    from perfdiag.classifiers.triage import triage as make
    from perfdiag.cli import folders, output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar
    from perfdiag.cli.reporters.triage import EXECUTABLE, MANIFEST, bundle_files
    from perfdiag.cli.reporters.units import plural

    folders.check_target(output_, MANIFEST, force=force)
    known = read_owners(owners)
    configured = read_config(config)
    settings = analysis.Options(
        engine=engine,
        step_marker=step_marker,
        thresholds=configured.thresholds,
        config=configured.path,
        jobs=jobs,
        counters=tuple(counters or ()),
        counters_offset_ns=counters_offset,
        counters_utc_offset_s=counters_utc_offset,
        device=device,
        ceilings=ceilings,
        keep_whole=True,
    )
    beside = CounterFiles(settings.counters, counters_offset, counters_utc_offset)
    how = TriageOptions(
        today=datetime.now(UTC).date(),
        reading=settings.reading,
        adjust=counter_adder(beside),
        redact=redact,
    )
    with progress_bar(quiet=quiet) as advance:
        made = make(analysis.analyze_whole(paths, settings, advance), known, how)
    folders.write_files(output_, bundle_files(made), EXECUTABLE, MANIFEST)
    if not quiet:
        teams = ", ".join(bundle.team.name for bundle in made.bundles) or "nobody"
        output.remark(f"{plural(len(made.bundles), 'bundle')} written to {output_}: {teams}")
