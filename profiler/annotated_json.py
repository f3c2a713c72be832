"""What perfdiag draws over a trace, spliced into Chrome trace JSON, which stays as it is."""

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import isfinite
from pathlib import Path
from typing import IO, Any

import msgspec

from perfdiag.profiler.annotations import (
    Annotations,
    CounterTrack,
    PieceTrack,
    SliceTrack,
    TrackSlice,
)
from perfdiag.profiler.sources.chrome_json import OWN_PROCESS
from perfdiag.profiler.sources.json_document import Buffer, split_document
from perfdiag.profiler.trace_file import LEVEL, is_gzip
from perfdiag.profiler.whole_file import replacing
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.recording import Lane

__all__ = ["Spliced", "write_spliced"]

_PIECE_BYTES = 1 << 20
_LINES = 4096
"""Events that are written at once."""

_LAST_TEXT = re.compile(rb"\S\s*\Z")


@dataclass(frozen=True, slots=True)
class Spliced:
    """A document and what is drawn over it.

    Attributes:
        data: the JSON text, as it was read.
        annotations: of its rank.
        lanes: of the recording, to which evidence refers.
        start_ns: what the document has as time where the recording has 0.
        unit_ns: nanoseconds in one unit of its times.
    """

    data: Buffer
    annotations: Annotations
    lanes: Sequence[Lane]
    start_ns: int
    unit_ns: int


def write_spliced(output: Path, spliced: Spliced) -> int:
    """Write a document with our events behind its own: its bytes before and after stay the same.

    Args:
        output: where its name ends in `.gz` it becomes a gzip archive.
        spliced: the document.

    Returns:
        The size of the file in bytes.

    Raises:
        UsageError: the document is damaged, or the file cannot be written.
    """
    at = _end_of_events(spliced.data)
    with replacing(output) as file:
        if is_gzip(output):
            with gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as archive:
                _write(archive, spliced, at)  # type: ignore[arg-type]
        else:
            _write(file, spliced, at)
        return file.tell()


def _end_of_events(data: Buffer) -> int:
    """Offset of the bracket that closes the events."""
    found = split_document(data, _PIECE_BYTES)
    if found is None:
        msg = (
            "the JSON is damaged or laid out in an unusual way, so nothing can be put into it: "
            "name the output .pftrace"
        )
        raise UsageError(msg)
    return found[1][-1][1]


def _write(file: IO[bytes], spliced: Spliced, at: int) -> None:
    data = memoryview(spliced.data)
    for start in range(0, at, _PIECE_BYTES):
        file.write(data[start : min(at, start + _PIECE_BYTES)])
    last = _LAST_TEXT.search(data[max(0, at - 64) : at])
    separator = b"" if last is not None and last[0].startswith(b",") else b","
    lines: list[bytes] = []
    for event in _events(spliced):
        lines.append(separator + b"\n" + _text(event))
        separator = b","
        if len(lines) == _LINES:
            file.write(b"".join(lines))
            lines.clear()
    file.write(b"".join(lines) + b"\n")
    for start in range(at, len(data), _PIECE_BYTES):
        file.write(data[start : start + _PIECE_BYTES])


def _text(event: dict[str, Any]) -> bytes:
    r"""JSON that all readers take: to Perfetto v52 the quote after `\\` does not end a text."""
    return msgspec.json.encode(event).replace(rb"\\", rb"\u005c")


def _events(spliced: Spliced) -> Iterator[dict[str, Any]]:
    """Our events; each begins with the key that most profilers begin theirs with."""
    annotations = spliced.annotations
    rank = "" if annotations.rank is None else f" rank {annotations.rank}"
    yield _named("process", "perfdiag" + rank, 0)
    yield {"ph": "M", "name": "process_sort_index", "pid": OWN_PROCESS, "args": _FIRST}
    rows, arrows = count(1), count(1)
    for track in annotations.tracks:
        if isinstance(track, PieceTrack):
            yield from _pieces(spliced, track, next(rows))
        else:
            yield from _slices(spliced, track, rows, arrows)
    for counter in annotations.counters:
        yield from _samples(spliced, counter)


_FIRST = {"sort_index": -1000}


def _named(what: str, name: str, row: int) -> dict[str, Any]:
    named = {"ph": "M", "name": f"{what}_name", "pid": OWN_PROCESS, "tid": row}
    return {**named, "args": {"name": name}}


def _pieces(spliced: Spliced, track: PieceTrack, row: int) -> Iterator[dict[str, Any]]:
    yield _named("thread", track.name, row)
    pieces = zip(track.ts_ns.tolist(), track.dur_ns.tolist(), track.code.tolist(), strict=True)
    for ts_ns, dur_ns, code in pieces:
        args = {"label": track.colors[code]}
        one = TrackSlice(ts_ns, dur_ns, track.names[code], track.category, args=args)
        yield _slice(spliced, one, row)


def _slices(
    spliced: Spliced, track: SliceTrack, rows: "count[int]", arrows: "count[int]"
) -> Iterator[dict[str, Any]]:
    """Nested slices each on a row of its own: an arrow finds the innermost one of a row."""
    found: dict[int, int] = {}
    open_ends: list[int] = []
    for one in track.slices:
        while open_ends and open_ends[-1] <= one.ts_ns:
            open_ends.pop()
        level = len(open_ends)
        open_ends.append(one.ts_ns + one.dur_ns)
        if level not in found:
            found[level] = next(rows)
            yield _named("thread", track.name + (f" {level + 1}" if level else ""), found[level])
        yield _slice(spliced, one, found[level])
        yield from _arrows(spliced, one, found[level], arrows)


def _slice(spliced: Spliced, one: TrackSlice, row: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": one.category,
        "name": one.name,
        "pid": OWN_PROCESS,
        "tid": row,
        "ts": _time(spliced.start_ns + one.ts_ns, spliced.unit_ns),
        "dur": _time(one.dur_ns, spliced.unit_ns),
        "args": one.args,
    }


def _arrows(
    spliced: Spliced, one: TrackSlice, row: int, numbers: "count[int]"
) -> Iterator[dict[str, Any]]:
    """A flow between a slice and each proof, from the earlier one to the later."""
    for spot in one.evidence:
        lane = spliced.lanes[spot.lane]
        ends = [
            (one.ts_ns, OWN_PROCESS, row),
            (spot.ts_ns, _id(lane.process), _id(lane.thread)),
        ]
        number = next(numbers)
        for phase, (ts_ns, process, thread) in zip("sf", sorted(ends, key=_when), strict=True):
            yield {
                "ph": phase,
                "cat": "perfdiag.evidence",
                "name": "evidence",
                "id": number,
                "bp": "e",
                "pid": process,
                "tid": thread,
                "ts": _time(spliced.start_ns + ts_ns, spliced.unit_ns),
            }


def _when(end: tuple[int, Any, Any]) -> int:
    return end[0]


def _id(text: str) -> int | str:
    """A process or thread as the document has it: numbers are no texts there."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text


def _samples(spliced: Spliced, counter: CounterTrack) -> Iterator[dict[str, Any]]:
    """Those with a value: the format knows no NaN, so that the last value stands on."""
    for ts_ns, value in zip(counter.ts_ns.tolist(), counter.values.tolist(), strict=True):
        if not isfinite(value):
            continue
        yield {
            "ph": "C",
            "name": counter.name,
            "pid": OWN_PROCESS,
            "tid": 0,
            "ts": _time(spliced.start_ns + ts_ns, spliced.unit_ns),
            "args": {counter.unit: value},
        }


def _time(ns: int, unit_ns: int) -> msgspec.Raw:
    """A time in the document's unit, with every digit."""
    if unit_ns == 1:
        return msgspec.Raw(b"%d" % ns)
    whole, rest = divmod(abs(ns), unit_ns)
    sign = "-" if ns < 0 else ""
    digits = len(str(unit_ns)) - 1
    return msgspec.Raw(f"{sign}{whole}.{rest:0{digits}d}".encode())
