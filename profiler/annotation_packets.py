"""The packets of what perfdiag draws over a trace."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.annotations import (
    Annotations,
    CounterTrack,
    PieceTrack,
    RawSlice,
    SliceTrack,
    TrackSlice,
)
from perfdiag.profiler.trace_packets import (
    argument,
    counter_track_packet,
    double_field,
    event_packet,
    group_packet,
    interned_packet,
)
from perfdiag.profiler.trace_writer import FIRST_ANNOTATION, GROUP, ROOT
from perfdiag.profiler.wire import fixed64_field, padded, text_field, varint_field
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Arrows", "annotation_packets"]

_BEGIN, _END, _COUNTER = 1, 2, 4
_TYPE, _TRACK, _CATEGORY, _NAME, _FLOW, _DOUBLE, _COLOR = 9, 11, 22, 23, 47, 44, 53
"""Of TrackEvent. The colour is `correlation_id_str`: the one thing that the UI colours by."""

Arrows = Mapping[tuple[int, RawSlice], int]
"""Ids of flows, by the number of the slice that they start at and the slice that they lead to.

Slices are numbered as `Annotations` has them, over all tracks."""

_FIRST = -1000
"""Order of our group among the tracks of its process."""


def annotation_packets(
    annotations: Annotations, base: int, clock: int, arrows: Arrows
) -> Iterator[bytes]:
    """The packets of all tracks, in pieces; they follow those of the trace itself.

    Args:
        annotations: what to draw.
        base: where the uuids of the tracks of the trace begin.
        clock: in which the trace counts.
        arrows: to the evidence.
    """
    group = base + FIRST_ANNOTATION
    yield interned_packet({}, clock)
    packets = [group_packet(group, base + ROOT, GROUP, _FIRST)]
    numbered = 0
    for i, track in enumerate(annotations.tracks):
        uuid = group + 1 + i
        packets.append(group_packet(uuid, group, track.name, i))
        if isinstance(track, PieceTrack):
            packets.append(_pieces(track, uuid))
        else:
            packets += _slices(track, uuid, numbered, arrows)
            numbered += len(track.slices)
    for i, counter in enumerate(annotations.counters, len(annotations.tracks)):
        packets.append(_counter(counter, group + 1 + i, group, i))
    yield b"".join(packets)


def _slices(track: SliceTrack, uuid: int, first: int, arrows: Arrows) -> Iterator[bytes]:
    where = varint_field(_TRACK, uuid)
    for number, one in enumerate(track.slices, first):
        flows = [arrows[number, spot] for spot in one.evidence if (number, spot) in arrows]
        about = _about(one) + b"".join(fixed64_field(_FLOW, flow) for flow in flows)
        args = b"".join(argument(name, value) for name, value in one.args.items())
        yield event_packet(one.ts_ns, varint_field(_TYPE, _BEGIN), where, about, args)
        yield event_packet(one.ts_ns + one.dur_ns, varint_field(_TYPE, _END), where)


def _about(one: TrackSlice) -> bytes:
    color = text_field(_COLOR, one.color) if one.color else b""
    return text_field(_CATEGORY, one.category) + text_field(_NAME, one.name) + color


_TIME_AT_END = 1 << 62
"""A time that takes as many bytes as any: its place in a packet is found by it."""

_WIDTH = 9
"""Bytes of a time."""


def _pieces(track: PieceTrack, uuid: int) -> bytes:
    """Begin and end of each piece, all of one name at once."""
    where, end = varint_field(_TRACK, uuid), varint_field(_TYPE, _END)
    rows: list[tuple[Int64s, NDArray[np.uint8]]] = []
    for code, (name, color) in enumerate(zip(track.names, track.colors, strict=True)):
        at = np.flatnonzero(track.code == code)
        one = TrackSlice(0, 0, name, track.category, color)
        begins = event_packet(_TIME_AT_END, varint_field(_TYPE, _BEGIN), where, _about(one))
        ends = event_packet(_TIME_AT_END, end, where)
        start = track.ts_ns[at]
        rows.append(
            (at, np.hstack([_timed(begins, start), _timed(ends, start + track.dur_ns[at])]))
        )
    width = np.zeros(len(track.ts_ns), np.int64)
    for at, packets in rows:
        width[at] = packets.shape[1]
    first = np.cumsum(width) - width
    out = np.empty(int(width.sum()), np.uint8)
    for at, packets in rows:
        out[first[at][:, None] + np.arange(packets.shape[1])] = packets
    return out.tobytes()


def _timed(packet: bytes, times_ns: Int64s) -> NDArray[np.uint8]:
    """(n, bytes) the packet with each of the times in place of `_TIME_AT_END`."""
    at = packet.index(varint_field(8, _TIME_AT_END)) + 1
    found = np.tile(np.frombuffer(packet, np.uint8), (len(times_ns), 1))
    found[:, at : at + _WIDTH] = padded(times_ns, _WIDTH)
    return found


def _counter(counter: CounterTrack, uuid: int, parent: int, order: int) -> bytes:
    about = varint_field(_TYPE, _COUNTER) + varint_field(_TRACK, uuid)
    samples = zip(counter.ts_ns.tolist(), counter.values.tolist(), strict=True)
    packets = [counter_track_packet(uuid, parent, counter.name, counter.unit, order)]
    packets += [
        event_packet(ts_ns, about, double_field(_DOUBLE, value)) for ts_ns, value in samples
    ]
    return b"".join(packets)
