"""`perfdiag convert`: any trace as a Perfetto trace, to keep, share and open."""

from pathlib import Path
from typing import Annotated

import typer

from perfdiag.cli import options

__all__ = ["convert"]


def convert(
    trace: Annotated[
        str, typer.Argument(metavar="IN", help="A trace of any format that analyze reads.")
    ],
    output_: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.pftrace",
            help="The Perfetto trace to write; no default.",
        ),
    ],
    quiet: options.Quiet = False,
) -> None:
    """Write any trace as a Perfetto trace to keep, share or open.

    It holds every event of the original, repaired, in a tenth of the space; ui.perfetto.dev opens
    it, and query reads it faster.
    """
    from perfdiag.cli import output
    from perfdiag.cli.reporters.units import size
    from perfdiag.profiler.convert import convert as convert_trace

    output.check_writable(output_, trace)
    summary = convert_trace(trace, output_)
    if not quiet:
        output.remark(
            f"{summary.events:,} events, {size(summary.bytes_in)} read, "
            f"{size(summary.bytes_out)} written to {output_}"
        )
