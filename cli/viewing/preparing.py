"""From what the user names to a trace that the UI can show."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiag.classifiers.analysis import analyze_whole
from perfdiag.classifiers.annotations import rank_traces
from perfdiag.classifiers.options import Options, Progress
from perfdiag.cli.viewing.focus import Focus, Watch, focus_in
from perfdiag.profiler.annotated_trace import write_annotated
from perfdiag.profiler.sources.files import expand

__all__ = ["Prepared", "prepare"]

_FORMATS = re.compile(r"(\.(json|pftrace|pb|gz|zip|tar|tgz))+$")


@dataclass(frozen=True, slots=True)
class Prepared:
    """An annotated trace.

    Attributes:
        trace: the file.
        title: what people know it by.
        focus: where to look first, None where nothing stands out.
    """

    trace: Path
    title: str
    focus: Focus | None


def prepare(
    paths: Sequence[str],
    options: Options,
    folder: Path,
    anew: bool = False,
    progress: Progress | None = None,
) -> Prepared:
    """Annotate the traces of a job, or take a trace that is annotated as it is.

    Args:
        paths: files, folders, archives or globs.
        options: how to analyse.
        folder: where to write the annotated trace.
        anew: annotate in any case.
        progress: is told what is being done.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or the trace cannot be written.
    """
    if not anew and _is_perfetto(paths):
        focus = focus_in(paths[0], options.engine)
        if focus is not None:
            return Prepared(Path(paths[0]), Path(paths[0]).name, focus)
    watch = Watch()
    options = replace(options, keep_whole=True)
    judged = analyze_whole(paths, options, progress)
    trace = folder / "annotated.pftrace"
    write_annotated(trace, watch.passing(rank_traces(judged, options)))
    return Prepared(trace, f"{_name(paths)}.pftrace", watch.focus)


def _is_perfetto(paths: Sequence[str]) -> bool:
    """Whether this is one file that the UI reads, hence one that can be annotated already."""
    if len(paths) > 1 or not Path(paths[0]).is_file():
        return False
    blobs = [blob.content for blob in expand(paths)]
    return blobs == ["perfetto"]


def _name(paths: Sequence[str]) -> str:
    """What people call the traces: the name of the first without what it says of its format."""
    name = Path(paths[0]).name
    stem = _FORMATS.sub("", name) or name
    return stem if len(paths) == 1 else f"{stem} and {len(paths) - 1} more"
