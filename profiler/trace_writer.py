"""The canonical Perfetto trace: a Recording as TrackEvents, written as numpy arrays.

Every lane becomes a track (and more tracks where its slices cross), every slice a begin and
an end packet. What the tracks cannot say - ranks, devices, lanes, notices, kernel classes -
is written as slices of category `perfdiag.*` on a track of its own, so that SQL can read it.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.nesting import Tracks, assign_tracks
from perfdiag.profiler.selection import needed_for_verdict
from perfdiag.profiler.trace_encoder import Annotation, EventEncoder
from perfdiag.profiler.wire import bytes_field, text_field, varint, varint_field
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.recording import (
    ABSENT,
    ArgColumn,
    Counter,
    Int64s,
    Kind,
    Lane,
    Recording,
)

__all__ = ["MetaSlice", "TraceOptions", "write_trace"]

# Field numbers: perfetto/protos trace_packet.proto, track_event.proto, track_descriptor.proto,
# interned_data.proto, debug_annotation.proto.
_PACKET = 1
_TIMESTAMP, _SEQUENCE_ID, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 8, 10, 11, 12, 13, 60
_CLOCK_SNAPSHOT = 6
Bools = NDArray[np.bool_]

_BEGIN, _END, _COUNTER = 1, 2, 4
"""TrackEvent.Type."""

_CLEARED, _NEEDS_STATE = 1, 2
_MERGE_NONE = 2
"""TrackDescriptor.SiblingMergeBehavior: by default siblings of one name become one track, and
two threads of one name one lane."""
_BOOTTIME, _REALTIME = 6, 1


@dataclass(frozen=True, slots=True)
class MetaSlice:
    """A slice that perfdiag adds: facts for SQL, or results for people."""

    category: str
    name: str
    args: Mapping[str, int | float | str]
    track: str = "perfdiag"
    ts_ns: int = 0
    dur_ns: int = 0


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How much goes into a trace.

    Attributes:
        complete: every slice, with its original arguments, and flows from launches to device
            work. Without it only what a verdict needs: a third of the time to load.
    """

    complete: bool = True


COMPLETE = TraceOptions()
VERDICT_ONLY = TraceOptions(complete=False)


def write_trace(
    recording: Recording,
    meta: Sequence[MetaSlice] = (),
    options: TraceOptions = COMPLETE,
) -> Iterator[bytes]:
    """The canonical trace of one rank, in pieces that may be concatenated.

    Args:
        recording: times must be rebased: 0 is the start of the trace.
        meta: slices on perfdiag's own tracks.
        options: how much to write.
    """
    if not options.complete:
        needed = needed_for_verdict(recording)
        recording = replace(recording, slices=recording.slices.take(needed))
    shown = recording.slices
    tracks = assign_tracks(shown.ts_ns, shown.dur_ns, track_groups(recording))
    base = track_base(recording)
    strings = _Strings(_used_names(recording))
    encoder = _encoder(recording, tracks, base, strings, options)
    yield _tracks_preamble(recording, tracks, base)
    yield strings.packet()
    # First, so that a file that is cut short still says whose it is.
    about = [*lane_slices(recording, tracks, base), *counter_slices(recording, base)]
    yield _meta_packets([*about, *meta], base)
    yield from encoder.blocks()
    yield b"".join(_counter_packets(c, base, i) for i, c in enumerate(recording.counters))


def track_groups(recording: Recording) -> Int64s:
    """(n,) what shares a track: a lane's slices, those of its frames, those that are no work."""
    kind = recording.slices.kind
    group = np.zeros(len(kind), np.int64)
    group[kind == Kind.PYTHON] = 1
    group[(kind == Kind.DEVICE_ANNOTATION) | (kind == Kind.DEVICE_SYNC)] = 2
    group[kind == Kind.INSTANT] = 3
    return recording.slices.lane.astype(np.int64) * len(GROUP_NAMES) + group


GROUP_NAMES = ("", " frames", " marks", " instants")


def track_base(recording: Recording) -> int:
    """Where the track uuids of a source begin: two sources never share one."""
    seed = f"{recording.source}|{recording.rank}|{recording.clock.origin_ns}|{recording.host}"
    digest = hashlib.sha256(seed.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "little") & ~0xFFFFFFF & (1 << 62) - 1


ROOT, META = 1, 2
"""Offsets of uuids from `track_base`: the rank's process, perfdiag's own tracks from 2 on."""
FIRST_DEVICE, FIRST_COUNTER, FIRST_LANE = 1 << 12, 1 << 16, 1 << 20


@dataclass(slots=True)
class _Strings:
    """Interned strings of one sequence: names, argument names, argument values, categories."""

    names: Mapping[str, int]
    values: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)

    def packet(self) -> bytes:
        """The packet that declares them; ids start at 1."""
        interned = b"".join(
            _interned(number, table)
            for number, table in (
                (1, self.categories),
                (2, self.names),
                (3, self.arguments),
                (29, self.values),
            )
        )
        flags = varint_field(_FLAGS, _CLEARED | _NEEDS_STATE)
        return _packet(bytes_field(_INTERNED, interned), flags)


def _used_names(recording: Recording) -> dict[str, int]:
    used = np.flatnonzero(np.bincount(recording.slices.name, minlength=1))
    return {recording.strings[code]: code + 1 for code in used.tolist()}


def intern(table: dict[str, int], text: str) -> int:
    """The id of `text`, given one if it has none."""
    return table.setdefault(text, len(table) + 1)


def _interned(number: int, table: Mapping[str, int]) -> bytes:
    return b"".join(
        bytes_field(number, varint_field(1, i) + text_field(2, text)) for text, i in table.items()
    )


def _encoder(
    recording: Recording, tracks: Tracks, base: int, strings: _Strings, options: TraceOptions
) -> EventEncoder:
    slices = recording.slices
    annotations = [
        _integers(strings, "correlation", slices.correlation, slices.correlation != ABSENT),
        *(
            _sparse(strings, name, column, len(slices))
            for name, column in slices.args.items()
            if options.complete or name not in OPERATOR_IDS
        ),
    ]
    if options.complete:
        external = slices.external_id
        annotations.append(_integers(strings, "external_id", external, external != ABSENT))
    if options.complete:
        annotations.append(_source_categories(recording, strings))
    start, end = flow_ids(recording, base) if options.complete else (None, None)
    return EventEncoder(
        slices,
        tracks,
        base + FIRST_LANE + np.arange(len(tracks.lane)),
        _categories(recording, strings),
        annotations,
        start,
        end,
        intern(strings.arguments, "raw_args") if options.complete else None,
    )


OPERATOR_IDS = ("sequence_number", "fwd_thread", "python_id", "python_parent_id")


def _integers(strings: _Strings, name: str, values: Int64s, rows: Bools) -> Annotation:
    return Annotation(intern(strings.arguments, name), False, values, rows)


def _sparse(strings: _Strings, name: str, column: ArgColumn, n: int) -> Annotation:
    text = column.values.dtype == object
    values, rows = np.zeros(n, np.int64), np.zeros(n, bool)
    codes = [intern(strings.values, str(v)) for v in column.values] if text else column.values
    values[column.rows], rows[column.rows] = codes, True
    return Annotation(intern(strings.arguments, name), text, values, rows)


def _source_categories(recording: Recording, strings: _Strings) -> Annotation:
    used = np.unique(recording.slices.category)
    ids = np.zeros(len(recording.strings) + 1, np.int64)
    ids[used] = [intern(strings.values, recording.strings[c]) for c in used.tolist()]
    values = ids[recording.slices.category]
    return Annotation(
        intern(strings.arguments, "source_category"), True, values, np.ones(len(values), bool)
    )


def _categories(recording: Recording, strings: _Strings) -> Int64s:
    """(n,) the kind in lower case; runtime calls say what they do: `runtime.launch`."""
    slices = recording.slices
    ids = np.array([intern(strings.categories, kind.name.lower()) for kind in Kind], np.int64)
    category = ids[slices.kind]
    calls = slices.kind == Kind.RUNTIME
    names = np.unique(slices.name[calls])
    by_name = np.zeros(len(recording.strings) + 1, np.int64)
    by_name[names] = [
        intern(strings.categories, f"runtime.{classify_api(recording.strings[n])}")
        for n in names.tolist()
    ]
    category[calls] = by_name[slices.name[calls]]
    return category


def flow_ids(recording: Recording, base: int) -> tuple[Int64s, Int64s]:
    """(n,) ids of the flows that start at launches, and of those that end at device work."""
    slices = recording.slices
    launch = launch_rows(slices)
    start, end = np.zeros(len(slices), np.int64), np.zeros(len(slices), np.int64)
    linked = np.flatnonzero(launch != ABSENT)
    launches, first = np.unique(launch[linked], return_index=True)
    start[launches] = end[linked[first]] = base + 1 + np.arange(len(launches))
    return start, end


def _tracks_preamble(recording: Recording, tracks: Tracks, base: int) -> bytes:
    rank = "?" if recording.rank is None else recording.rank
    process = varint_field(1, (recording.rank or 0) + 1) + text_field(6, f"rank {rank}")
    packets = [
        _packet(bytes_field(_DESCRIPTOR, varint_field(1, base + ROOT) + bytes_field(3, process))),
        *(
            _track(base + FIRST_DEVICE + d, base + ROOT, f"device {d}")
            for d in sorted({lane.device for lane in recording.lanes if lane.kind == "stream"})
        ),
        *(_lane_track(recording, base, i, *row) for i, row in enumerate(_track_rows(tracks))),
    ]
    if recording.clock.unix_ns is not None:
        packets.append(_clock(recording.clock.unix_ns))
    return b"".join(packets)


def _track_rows(tracks: Tracks) -> list[tuple[int, int]]:
    return list(zip(tracks.lane.tolist(), tracks.level.tolist(), strict=True))


def _track(uuid: int, parent: int, name: str) -> bytes:
    text = varint_field(1, uuid) + varint_field(5, parent) + text_field(2, name)
    return _packet(bytes_field(_DESCRIPTOR, text + varint_field(15, _MERGE_NONE)))


def _lane_track(recording: Recording, base: int, index: int, key: int, level: int) -> bytes:
    lane = recording.lanes[key // len(GROUP_NAMES)]
    parent = ROOT if lane.kind == "thread" else FIRST_DEVICE + lane.device
    name = lane.name + GROUP_NAMES[key % len(GROUP_NAMES)]
    return _track(base + FIRST_LANE + index, base + parent, name)


def _clock(unix_ns: int) -> bytes:
    """Boot time 0 is the start of the trace; real time says when that was."""
    clocks = [(_BOOTTIME, 0), (_REALTIME, unix_ns)]
    snapshot = b"".join(
        bytes_field(1, varint_field(1, clock) + varint_field(2, ns)) for clock, ns in clocks
    )
    return _packet(bytes_field(_CLOCK_SNAPSHOT, snapshot + varint_field(2, _BOOTTIME)))


def lane_slices(recording: Recording, tracks: Tracks, base: int) -> list[MetaSlice]:
    """What SQL must know of every track: the lane behind it. Lanes without one have uuid 0."""
    shown = [
        (key // len(GROUP_NAMES), level, base + FIRST_LANE + i)
        for i, (key, level) in enumerate(_track_rows(tracks))
    ]
    empty = sorted(set(range(len(recording.lanes))) - {index for index, _, _ in shown})
    return [
        MetaSlice(
            "perfdiag.lane",
            recording.lanes[index].name,
            _lane_args(recording.lanes[index], index, level, uuid),
        )
        for index, level, uuid in [*shown, *((index, 0, 0) for index in empty)]
    ]


def _lane_args(lane: Lane, index: int, level: int, uuid: int) -> dict[str, int | float | str]:
    return {
        "uuid": uuid,
        "lane": index,
        "level": level,
        "kind": lane.kind,
        "process": lane.process,
        "thread": lane.thread,
        "device": lane.device,
        "stream": lane.stream,
    }


def counter_slices(recording: Recording, base: int) -> list[MetaSlice]:
    """What a counter track cannot say of its counter."""
    return [
        MetaSlice(
            "perfdiag.counter",
            counter.name,
            {
                "uuid": base + FIRST_COUNTER + i,
                "unit": counter.unit,
                "scale": counter.scale,
                "semantics": counter.semantics,
                "device": counter.device,
            },
        )
        for i, counter in enumerate(recording.counters)
    ]


def _counter_packets(counter: Counter, base: int, index: int) -> bytes:
    uuid = base + FIRST_COUNTER + index
    parent = ROOT if counter.device == ABSENT else FIRST_DEVICE + counter.device
    unit = text_field(6, counter.unit) if counter.unit else b""
    track = varint_field(1, uuid) + varint_field(5, base + parent) + text_field(2, counter.name)
    packets = [_packet(bytes_field(_DESCRIPTOR, track + bytes_field(8, unit)))]
    for ts_ns, value in zip(counter.ts_ns.tolist(), counter.values.tolist(), strict=True):
        double = varint(44 << 3 | 1) + struct.pack("<d", value)
        packets.append(_event(ts_ns, varint_field(9, _COUNTER), varint_field(11, uuid), double))
    return b"".join(packets)


def _meta_packets(meta: Sequence[MetaSlice], base: int) -> bytes:
    """Slices in the order given: a parent before its children, none crossing on one track."""
    tracks = {name: base + META + i for i, name in enumerate(dict.fromkeys(m.track for m in meta))}
    packets = [_track(uuid, base + ROOT, name) for name, uuid in tracks.items()]
    for item in meta:
        where = varint_field(11, tracks[item.track])
        names = text_field(22, item.category) + text_field(23, item.name)
        args = b"".join(_argument(name, value) for name, value in item.args.items())
        packets.append(_event(item.ts_ns, varint_field(9, _BEGIN), where, names, args))
        packets.append(_event(item.ts_ns + item.dur_ns, varint_field(9, _END), where))
    return b"".join(packets)


def _argument(name: str, value: float | str) -> bytes:
    if isinstance(value, str):
        body = text_field(6, value)
    elif isinstance(value, float):
        body = varint(5 << 3 | 1) + struct.pack("<d", value)
    else:
        body = varint_field(4, value)
    return bytes_field(4, text_field(10, name) + body)


def _packet(*fields: bytes) -> bytes:
    return bytes_field(_PACKET, b"".join(fields) + varint_field(_SEQUENCE_ID, 1))


def _event(ts_ns: int, *fields: bytes) -> bytes:
    return _packet(
        varint_field(_TIMESTAMP, ts_ns),
        bytes_field(_TRACK_EVENT, b"".join(fields)),
        varint_field(_FLAGS, _NEEDS_STATE),
    )
