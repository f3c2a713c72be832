"""`perfdiag annotate`: a trace with the verdict drawn over it, for the Perfetto UI."""

from pathlib import Path
from typing import Annotated

import typer

from perfdiag.cli import options
from perfdiag.cli.analysing import USUAL, Analysis, analysing

__all__ = ["annotate"]


@analysing
def annotate(
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
    how: Analysis = USUAL,
    config: options.Config = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw the verdict over the trace itself, for the Perfetto UI.

    Each rank gets a group of tracks on top: steps and regions with their labels, the time budget,
    waits, and fixes with arrows to what proves them. All events of the original are kept.
    """
    from perfdiag.classifiers.annotations import writing
    from perfdiag.cli import output
    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar
    from perfdiag.cli.reporters.units import plural, size

    beside = (*how.files, config)
    output.check_writable(output_, *paths, beside=beside)
    settings = how.settings(read_config(config))
    with progress_bar(quiet=quiet) as advance:
        done = writing.annotate(paths, output_, settings, advance)
    if not quiet:
        ranks = plural(len(done.judged.ranks), "rank")
        output.remark(
            f"{ranks}, {size(done.size_bytes)} written to {output_}: open it in "
            f"https://ui.perfetto.dev, or with perfdiag view"
        )
