"""Packets of a trace that are written one by one: tracks, clocks, counters, facts.

Field numbers are those of perfetto/protos: trace_packet.proto, track_event.proto,
track_descriptor.proto, interned_data.proto, debug_annotation.proto.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan

from perfdiag.profiler.wire import bytes_field, text_field, varint, varint_field
from perfdiag.trace_schemas.recording import Counter

__all__ = [
    "MetaSlice",
    "argument",
    "clock_packet",
    "counter_packets",
    "counter_track_packet",
    "double_field",
    "event_packet",
    "group_packet",
    "interned_packet",
    "meta_packets",
    "process_packet",
    "track_packet",
]

_PACKET = 1
_TIMESTAMP, _SEQUENCE_ID, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 8, 10, 11, 12, 13, 60
_CLOCK_SNAPSHOT, _CLOCK_ID, _DEFAULTS = 6, 58, 59
_BEGIN, _END, _COUNTER = 1, 2, 4
"""TrackEvent.Type."""

_CLEARED, _NEEDS_STATE = 1, 2
_MERGE_NONE, _ORDER_EXPLICIT = 2, 3
"""TrackDescriptor.SiblingMergeBehavior: by default siblings of one name become one track, and
two threads of one name one lane. ChildTracksOrdering."""
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


def process_packet(uuid: int, pid: int, name: str) -> bytes:
    """The process under which a rank's tracks lie."""
    process = varint_field(1, pid) + text_field(6, name)
    return _packet(bytes_field(_DESCRIPTOR, varint_field(1, uuid) + bytes_field(3, process)))


def track_packet(uuid: int, parent: int, name: str) -> bytes:
    """A track under another one, never merged with one of the same name."""
    text = varint_field(1, uuid) + varint_field(5, parent) + text_field(2, name)
    return _packet(bytes_field(_DESCRIPTOR, text + varint_field(15, _MERGE_NONE)))


def group_packet(uuid: int, parent: int, name: str, order: int) -> bytes:
    """A track that holds others, which stand in the order of their own `order`."""
    text = varint_field(1, uuid) + varint_field(5, parent) + text_field(2, name)
    text += varint_field(11, _ORDER_EXPLICIT) + varint_field(12, order)
    return _packet(bytes_field(_DESCRIPTOR, text + varint_field(15, _MERGE_NONE)))


def clock_packet(unix_ns: int | None, boot_ns: int = 0, own: int | None = None) -> bytes:
    """Boot time 0 is the start of the trace; real time says when that was.

    Args:
        unix_ns: the real time, None where nobody knows it.
        boot_ns: the boot time of both.
        own: a clock that is at 0 then, in which the events that follow count.
    """
    clocks = [] if own is None else [(own, 0)]
    clocks.append((_BOOTTIME, boot_ns))
    if unix_ns is not None:
        clocks.append((_REALTIME, unix_ns))
    snapshot = b"".join(
        bytes_field(1, varint_field(1, clock) + varint_field(2, ns)) for clock, ns in clocks
    )
    return _packet(bytes_field(_CLOCK_SNAPSHOT, snapshot + varint_field(2, _BOOTTIME)))


def interned_packet(tables: Mapping[int, Mapping[str, int]], clock: int | None = None) -> bytes:
    """The packet that declares interned strings, by their field of InternedData.

    Args:
        tables: strings and their ids.
        clock: in which the packets that follow count; boot time by default.
    """
    interned = b"".join(_interned(number, table) for number, table in tables.items())
    defaults = b"" if clock is None else bytes_field(_DEFAULTS, varint_field(_CLOCK_ID, clock))
    flags = varint_field(_FLAGS, _CLEARED | _NEEDS_STATE)
    return _packet(bytes_field(_INTERNED, interned), defaults, flags)


def _interned(number: int, table: Mapping[str, int]) -> bytes:
    return b"".join(
        bytes_field(number, varint_field(1, i) + text_field(2, text)) for text, i in table.items()
    )


def counter_track_packet(
    uuid: int, parent: int, name: str, unit: str, order: int | None = None
) -> bytes:
    """A track of numbers, with its place among the others where their parent asks for it."""
    track = varint_field(1, uuid) + varint_field(5, parent) + text_field(2, name)
    place = b"" if order is None else varint_field(12, order)
    body = bytes_field(8, text_field(6, unit) if unit else b"")
    return _packet(bytes_field(_DESCRIPTOR, track + body + place))


def counter_packets(counter: Counter, uuid: int, parent: int) -> bytes:
    """The track of a counter and its samples."""
    packets = [counter_track_packet(uuid, parent, counter.name, counter.unit)]
    for ts_ns, value in _drawn(counter):
        about = varint_field(9, _COUNTER), varint_field(11, uuid), double_field(44, value)
        packets.append(event_packet(ts_ns, *about))
    return b"".join(packets)


def _drawn(counter: Counter) -> Iterator[tuple[int, float]]:
    """Times and values of a track, which holds a value until the next one.

    A sample stands at the start of its time, whatever it describes; where no other begins when
    that ends, NaN ends it, which SQL has as NULL.
    """
    if counter.spans is None:
        yield from zip(counter.ts_ns.tolist(), counter.values.tolist(), strict=True)
        return
    starts, ends = (side.tolist() for side in counter.spans)
    follows = [*starts[1:], None]
    for start, end, value, after in zip(
        starts, ends, counter.values.tolist(), follows, strict=True
    ):
        yield start, value
        if end != after:
            yield end, nan


def meta_packets(meta: Sequence[MetaSlice], first_uuid: int, parent: int) -> bytes:
    """Slices in the order given: a parent before its children, none crossing on one track."""
    names = dict.fromkeys(item.track for item in meta)
    tracks = {name: first_uuid + i for i, name in enumerate(names)}
    packets = [track_packet(uuid, parent, name) for name, uuid in tracks.items()]
    for item in meta:
        where = varint_field(11, tracks[item.track])
        about = text_field(22, item.category) + text_field(23, item.name)
        args = b"".join(argument(name, value) for name, value in item.args.items())
        packets.append(event_packet(item.ts_ns, varint_field(9, _BEGIN), where, about, args))
        packets.append(event_packet(item.ts_ns + item.dur_ns, varint_field(9, _END), where))
    return b"".join(packets)


def argument(name: str, value: float | str) -> bytes:
    """The field of a track event that holds one argument."""
    if isinstance(value, str):
        body = text_field(6, value)
    elif isinstance(value, float):
        body = double_field(5, value)
    else:
        body = varint_field(4, value)
    return bytes_field(4, text_field(10, name) + body)


def double_field(number: int, value: float) -> bytes:
    """A field that holds a fraction."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


def _packet(*fields: bytes) -> bytes:
    return bytes_field(_PACKET, b"".join(fields) + varint_field(_SEQUENCE_ID, 1))


def event_packet(ts_ns: int, *fields: bytes) -> bytes:
    """A packet with a track event."""
    return _packet(
        varint_field(_TIMESTAMP, ts_ns),
        bytes_field(_TRACK_EVENT, b"".join(fields)),
        varint_field(_FLAGS, _NEEDS_STATE),
    )
