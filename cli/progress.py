"""Progress on standard error: a bar, only on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from perfdiag.cli.reporters.units import shorten

__all__ = ["Advance", "progress_bar"]

Advance = Callable[[str, float], None]
"""Called with the stage that runs and the share of the work that is done, 0 to 1."""


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Advance | None]:
    """A bar that is gone when the work is done; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    stage_column = TextColumn("{task.description}", markup=False)  # may name a file
    columns = (stage_column, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def advance(stage: str, share: float) -> None:
            bar.update(task, description=shorten(stage, 40), completed=share)

        yield advance
