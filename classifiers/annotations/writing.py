"""From traces to a file with the verdict drawn over them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiag.classifiers.analysis import analyze_whole
from perfdiag.classifiers.annotations.whole import annotations_of, rank_traces
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.options import Options, Progress
from perfdiag.profiler.annotated_json import Spliced, write_spliced
from perfdiag.profiler.annotated_trace import write_annotated
from perfdiag.profiler.querying import only_trace
from perfdiag.profiler.sources.files import Blob, file_of
from perfdiag.profiler.sources.kineto import UNITS_NS
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.recording import Recording

__all__ = ["Annotated", "annotate"]


@dataclass(frozen=True, slots=True)
class Annotated:
    """What was drawn, and the size of the file that it is in."""

    judged: Judged
    size_bytes: int


def annotate(
    paths: Sequence[str], output: Path, options: Options, progress: Progress | None = None
) -> Annotated:
    """Analyse the traces of a job, and write them with the verdict drawn over them.

    Args:
        paths: files, folders, archives or globs.
        output: a Perfetto trace; where it is called `.json` or `.json.gz` the JSON of the one rank
            with our events behind its own.
        options: how to analyse.
        progress: is told what is being done.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, the output cannot be written, or it should be
            JSON and the input is not, or holds several ranks.
    """
    is_json = output.name.lower().endswith((".json", ".json.gz"))
    document = _document(paths, output) if is_json else None
    judged = analyze_whole(paths, replace(options, keep_whole=True), progress)
    if document is None:
        return Annotated(judged, write_annotated(output, rank_traces(judged, options)))
    return Annotated(judged, _spliced(judged, document, output, options))


def _document(paths: Sequence[str], output: Path) -> Blob:
    """The JSON that our events go into."""
    if len(paths) > 1:
        msg = "only the trace of one rank can be written as JSON: name the output .pftrace"
        raise UsageError(msg)
    if paths[0] == "-":
        msg = "a pipe cannot be read twice, as JSON output needs: name a file"
        raise UsageError(msg)
    blob = only_trace(paths[0])
    if blob.content != "json":
        msg = f"{paths[0]!r} is no JSON that events can be put into: name the output .pftrace"
        raise UsageError(msg)
    if output.exists() and output.samefile(file_of(blob.path)):
        msg = f"{str(output)!r} is one of the inputs: write the result to another file"
        raise UsageError(msg)
    return blob


def _spliced(judged: Judged, document: Blob, output: Path, options: Options) -> int:
    whole = judged.ranks[0].whole
    assert whole is not None  # one trace is read by this process
    start_ns = _start_ns(whole.recording)
    (annotations,) = annotations_of(judged, start_ns)
    unit_ns = UNITS_NS[options.time_unit or "us"]
    lanes = whole.recording.lanes
    return write_spliced(output, Spliced(document.data, annotations, lanes, start_ns, unit_ns))


def _start_ns(recording: Recording) -> int:
    """What a document has as time where its recording has 0."""
    base = recording.metadata.get("baseTimeNanoseconds", "").strip('"')
    return recording.clock.origin_ns - (int(base) if base.isdecimal() else 0)
