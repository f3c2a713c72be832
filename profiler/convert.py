"""Any trace as a Perfetto trace, to keep, share and open."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.opening import Adjust, ReadOptions, canonical_trace, read_blob
from perfdiag.profiler.querying import only_trace
from perfdiag.profiler.trace_writer import TraceOptions
from perfdiag.profiler.wire import bytes_field
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.recording import Recording

__all__ = ["ConvertSummary", "convert"]

_PACKET, _COMPRESSED_PACKETS = 1, 50
"""Field numbers of Trace.packet and of TracePacket.compressed_packets."""

_LEVEL = 6
"""Of deflate: level 9 takes three times as long for 3 % less (A100 and H100 traces)."""


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
    with _replacing(output) as file:
        _write(file, pieces, gzipped=output.name.endswith(".gz"))
        bytes_out = file.tell()
    return ConvertSummary(_events(recording), bytes_in, bytes_out)


def _events(recording: Recording) -> int:
    samples = sum(len(counter.ts_ns) for counter in recording.counters)
    return len(recording.slices) + len(recording.set_aside) + samples


def _write(file: IO[bytes], pieces: Iterator[bytes], *, gzipped: bool) -> None:
    if not gzipped:
        for piece in pieces:
            file.write(_deflated(piece))
        return
    with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as archive:
        for piece in pieces:
            archive.write(piece)


def _deflated(packets: bytes) -> bytes:
    """The same packets inside one, as Perfetto's own tracing service compresses them."""
    body = bytes_field(_COMPRESSED_PACKETS, zlib.compress(packets, _LEVEL))
    return bytes_field(_PACKET, body) if packets else b""


@contextmanager
def _replacing(output: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `output` at the end, or leaves nothing behind."""
    target = output.resolve()
    # os.path, because a name that is too long is False there and an error in pathlib.
    special = os.path.exists(target) and not os.path.isfile(target)  # noqa: PTH110, PTH113
    part = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not special:
            part.replace(target)
    except OSError as error:
        msg = f"cannot write {str(output)!r}: {error.strerror}"
        raise UsageError(msg) from error
    finally:
        if not special:
            with suppress(OSError):
                part.unlink()
