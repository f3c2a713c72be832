"""Any trace as a Perfetto trace, to keep, share and open."""

from dataclasses import dataclass
from pathlib import Path

from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.opening import Adjust, ReadOptions, canonical_trace, read_blob
from perfdiag.profiler.querying import only_trace
from perfdiag.profiler.trace_file import is_gzip, write_pieces
from perfdiag.profiler.trace_writer import TraceOptions
from perfdiag.profiler.whole_file import replacing
from perfdiag.trace_schemas.recording import Recording

__all__ = ["ConvertSummary", "convert"]


@dataclass(frozen=True, slots=True)
class ConvertSummary:
    """What a conversion did.

    Attributes:
        events: events and samples in the result, those set aside included.
        bytes_in: size of the input, unpacked.
        bytes_out: size of the result.
    """

    events: int
    bytes_in: int
    bytes_out: int


def convert(
    path: str,
    output: Path,
    *,
    adjust: Adjust | None = None,
    engine: EngineName = "wasm",
    deadline_s: float = 600.0,
) -> ConvertSummary:
    """Write one trace as a canonical Perfetto trace with everything in it.

    The packets are deflated inside the trace; where the name of the output ends in `.gz` they
    are not, and the file is a gzip archive instead. The output appears when it is complete.

    Args:
        path: a trace of any format.
        output: file to write; one that exists is replaced.
        adjust: changes what was read before it is written.
        engine: trace processor that reads foreign Perfetto traces.
        deadline_s: seconds that one call to it may take.

    Raises:
        InputError: the trace cannot be read.
        UsageError: the path leads to several traces, or the output cannot be written.
    """
    blob = only_trace(path)
    options = ReadOptions(engine=engine, deadline_s=deadline_s)
    bytes_in = len(blob.data)
    recording = read_blob(blob, options, keep_args=True)
    recording = recording if adjust is None else adjust(recording)
    pieces = canonical_trace(recording, options, TraceOptions())
    with replacing(output) as file:
        write_pieces(file, pieces, gzipped=is_gzip(output))
        bytes_out = file.tell()
    return ConvertSummary(_events(recording), bytes_in, bytes_out)


def _events(recording: Recording) -> int:
    samples = sum(len(counter.ts_ns) for counter in recording.counters)
    return len(recording.slices) + len(recording.set_aside) + samples
