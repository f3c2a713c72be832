"""`perfdiag view`: a trace with its verdict in the Perfetto UI, on this machine alone."""

from typing import Annotated

import typer

from perfdiag.cli import options
from perfdiag.cli.analysing import USUAL, Analysis, analysing

__all__ = ["view"]


@analysing
def view(
    paths: options.Traces,
    no_browser: Annotated[
        bool,
        typer.Option("--no-browser", help="Only print the address.", show_default="off"),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            metavar="N",
            help="Listen on this port of 127.0.0.1.",
            show_default="one that is free",
        ),
    ] = 0,
    how: Analysis = USUAL,
    config: options.Config = None,
    quiet: options.Quiet = False,
) -> None:
    """Open a trace in the Perfetto UI, with the verdict drawn over it.

    The UI comes with perfdiag and needs no network; it is served until Ctrl-C, to this machine
    alone. Tracks of the verdict are pinned, and the step with the best fix is in view. A trace that
    annotate wrote is shown as it is, unless options ask for another analysis.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from perfdiag.cli.config import read_config
    from perfdiag.cli.progress import progress_bar
    from perfdiag.cli.viewing import Server, prepare, show, site_of, startup_of
    from perfdiag.profiler.engine.assets import find_assets

    assets = find_assets()
    settings = how.settings(read_config(config))
    anew = how.asks_anew or config is not None
    with Server(port) as server, TemporaryDirectory(prefix="perfdiag-view-") as folder:
        with progress_bar(quiet=quiet) as advance:
            done = prepare(paths, settings, Path(folder), anew, advance)
        site = site_of(assets, done.trace, done.title, startup_of(done.focus))
        show(server, site, Path(folder), browser=not no_browser, quiet=quiet)
