"""The trace of a rank, read once more with all that it holds."""

from perfdiag.profiler.opening import ReadOptions, find_structure, read_blob
from perfdiag.profiler.querying import only_trace
from perfdiag.profiler.regions import Region
from perfdiag.profiler.steps import Step
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.recording import Recording

__all__ = ["read_again"]


def read_again(path: str, options: ReadOptions) -> tuple[Recording, list[Step], list[Region]]:
    """Recording with the original arguments, steps and regions of a rank.

    Args:
        path: as the report has it.
        options: with which it was read before.

    Raises:
        InputError: it is not there any more.
        UsageError: it came through a pipe, which cannot be read twice.
    """
    if path.partition("!")[0] == "-":
        msg = "traces of several ranks cannot come through a pipe: name a file or a folder"
        raise UsageError(msg)
    return find_structure(read_blob(only_trace(path), options, keep_args=True), options)
