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
    counters: options.Counters = None,
    counters_offset: options.CountersOffset = None,
    counters_utc_offset: options.CountersUtcOffset = None,
    quiet: options.Quiet = False,
) -> None:
    """Write any trace as a Perfetto trace to keep, share or open.

    It holds every event of the original, repaired, in a tenth of the space; ui.perfetto.dev opens
    it, and query reads it faster. Hardware counters become tracks of it.
    """
    from perfdiag.classifiers.counter_tracks import CounterFiles, counter_adder
    from perfdiag.cli import output
    from perfdiag.cli.reporters.units import size
    from perfdiag.profiler.convert import convert as convert_trace

    output.check_writable(output_, trace, beside=counters or ())
    files = CounterFiles(tuple(counters or ()), counters_offset, counters_utc_offset)
    summary = convert_trace(trace, output_, adjust=counter_adder(files))
    if not quiet:
        output.remark(
            f"{summary.events:,} events, {size(summary.bytes_in)} read, "
            f"{size(summary.bytes_out)} written to {output_}"
        )
