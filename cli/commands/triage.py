"""`perfdiag triage`: a bundle for each team that owns a fix."""

from pathlib import Path
from typing import Annotated

import typer

from perfdiag.cli import options
from perfdiag.cli.analysing import USUAL, Analysis, analysing

__all__ = ["triage"]


@analysing
def triage(
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
    how: Analysis = USUAL,
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
    from perfdiag.cli.reporters.triage import LAYOUT, bundle_files
    from perfdiag.cli.reporters.units import plural

    replaced = folders.check_target(output_, LAYOUT, force=force)
    output.check_kept(paths, (*how.files, config, owners), replaced)
    known = read_owners(owners)
    settings = how.settings(read_config(config), keep_whole=True)
    beside = CounterFiles(settings.counters, how.counters_offset, how.counters_utc_offset)
    wanted = TriageOptions(
        today=datetime.now(UTC).date(),
        reading=settings.reading,
        adjust=counter_adder(beside),
        redact=redact,
    )
    with progress_bar(quiet=quiet) as advance:
        made = make(analysis.analyze_whole(paths, settings, advance), known, wanted)
    written = bundle_files(made, how.of_new_traces(redacted=redact))
    folders.write_files(output_, written, LAYOUT, force=force)
    if not quiet:
        teams = ", ".join(bundle.team.name for bundle in made.bundles) or "nobody"
        output.remark(f"{plural(len(made.bundles), 'bundle')} written to {output_}: {teams}")
