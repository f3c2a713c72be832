"""Slices to begin and end packets, many at a time, as numpy arrays.

Packets with the same arguments have the same layout and, with padded varints, the same width:
each group is one two-dimensional array, copied to its places in the stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.nesting import Tracks
from perfdiag.profiler.wire import padded, varint
from perfdiag.trace_schemas.recording import Int64s, Slices

__all__ = ["Annotation", "EventEncoder"]

Bytes = NDArray[np.uint8]

# Tags: field number and wire type, as in protobuf's encoding guide.
_TAG_PACKET = b"\x0a"
_TAG_TIMESTAMP = b"\x40"
_TAIL = b"\x50\x01\x68\x02"
"""trusted_packet_sequence_id = 1, sequence_flags = NEEDS_INCREMENTAL_STATE."""
_TAG_EVENT = b"\x5a"
_BEGIN, _END = b"\x48\x01", b"\x48\x02"
_TAG_TRACK, _TAG_NAME, _TAG_CATEGORY, _TAG_ANNOTATION = b"\x58", b"\x50", b"\x18", b"\x22"
_TAG_FLOW, _TAG_FLOW_END = b"\xf9\x02", b"\x81\x03"

_WIDTH_TIME, _WIDTH_TRACK, _WIDTH_ID, _WIDTH_LENGTH = 9, 9, 5, 4

_BLOCK = 1 << 16
"""Events that are encoded at once; bounds memory."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One argument of some slices.

    Attributes:
        name_id: interned name.
        text: whether `values` are ids of interned strings instead of integers.
        values: (n,) by slice row; only those of `rows` are written.
        rows: (n,) whether the slice has it.
    """

    name_id: int
    text: bool
    values: Int64s
    rows: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EventEncoder:
    """Everything that the packets of a recording's slices say.

    Attributes:
        slices: the slices.
        tracks: where they lie.
        track_uuid: (tracks,) uuids.
        category_id: (n,) interned categories.
        annotations: arguments.
        flow, flow_end: (n,) flow id that starts or ends at the slice, 0 for none.
        raw_args_id: interned name of the original arguments; None leaves them out.
        beside: each (n,) id of a further flow that passes through the slice, 0 for none.
    """

    slices: Slices
    tracks: Tracks
    track_uuid: Int64s
    category_id: Int64s
    annotations: Sequence[Annotation]
    flow: Int64s | None = None
    flow_end: Int64s | None = None
    raw_args_id: int | None = None
    beside: Sequence[Int64s] = ()

    def blocks(self) -> Iterator[bytes]:
        """The packets in the order of time, in pieces."""
        n = len(self.slices)
        times = np.concatenate((self.slices.ts_ns, self.slices.end_ns))[self.tracks.order]
        sequence = self.tracks.order[np.argsort(times, kind="stable")]
        shape = self._shapes()
        for start in range(0, len(sequence), _BLOCK):
            yield self._block(sequence[start : start + _BLOCK], n, shape)

    def _shapes(self) -> Int64s:
        """(n,) a bit for each optional field that the slice has."""
        shape = np.zeros(len(self.slices), np.int64)
        for bit, annotation in enumerate(self.annotations):
            shape |= annotation.rows.astype(np.int64) << bit
        bit = len(self.annotations)
        for flow in (self.flow, self.flow_end, *self.beside):
            if flow is not None:
                shape |= (flow != 0).astype(np.int64) << bit
            bit += 1
        return shape

    def _block(self, sequence: Int64s, n: int, shape: Int64s) -> bytes:
        begins = sequence < n
        rows = np.where(begins, sequence, sequence - n)
        groups = [(np.flatnonzero(~begins), self._ends(rows[~begins]))]
        shapes = np.where(begins, shape[rows], -1)
        for value in np.unique(shapes[begins]).tolist():
            at = np.flatnonzero(shapes == value)
            groups.append((at, self._begins(rows[at], value)))
        tails = self._raw(rows, begins)
        return _interleave(groups, len(sequence), tails)

    def _ends(self, rows: Int64s) -> Bytes:
        time = self.slices.ts_ns[rows] + self.slices.dur_ns[rows]
        return _packets(time, [_constant(_END, len(rows)), self._track(rows)])

    def _begins(self, rows: Int64s, shape: int) -> Bytes:
        n = len(rows)
        parts = [_constant(_BEGIN, n), self._track(rows)]
        parts += [
            _constant(_TAG_NAME, n),
            padded(self.slices.name[rows].astype(np.int64) + 1, _WIDTH_ID),
        ]
        parts += [_constant(_TAG_CATEGORY, n), padded(self.category_id[rows], _WIDTH_ID)]
        for bit, annotation in enumerate(self.annotations):
            if shape >> bit & 1:
                parts.append(_annotation(annotation, rows))
        bit = len(self.annotations)
        if self.flow is not None and shape >> bit & 1:
            parts += [_constant(_TAG_FLOW, n), _fixed64(self.flow[rows])]
        if self.flow_end is not None and shape >> (bit + 1) & 1:
            parts += [_constant(_TAG_FLOW_END, n), _fixed64(self.flow_end[rows])]
        for i, flow in enumerate(self.beside):
            if shape >> (bit + 2 + i) & 1:
                parts += [_constant(_TAG_FLOW, n), _fixed64(flow[rows])]
        return _packets(self.slices.ts_ns[rows], parts)

    def _track(self, rows: Int64s) -> Bytes:
        uuid = padded(self.track_uuid[self.tracks.track[rows]], _WIDTH_TRACK)
        return np.hstack([_constant(_TAG_TRACK, len(rows)), uuid])

    def _raw(self, rows: Int64s, begins: NDArray[np.bool_]) -> list[bytes] | None:
        """Original arguments as annotations to be appended to each begin."""
        raw = self.slices.raw_args
        if self.raw_args_id is None or raw is None:
            return None
        head = b"\x08" + varint(self.raw_args_id) + b"\x32"
        texts = [raw[r] if b else None for r, b in zip(rows.tolist(), begins.tolist(), strict=True)]
        return [b"" if t is None else _text_annotation(head, t) for t in texts]


def _text_annotation(head: bytes, text: bytes) -> bytes:
    body = head + varint(len(text)) + text
    return _TAG_ANNOTATION + varint(len(body)) + body


def _constant(text: bytes, n: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(text, np.uint8), (n, len(text)))


def _fixed64(values: Int64s) -> Bytes:
    return np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(len(values), 8)


def _annotation(annotation: Annotation, rows: Int64s) -> Bytes:
    name = b"\x08" + varint(annotation.name_id)
    tag, width = (b"\x88\x01", _WIDTH_ID) if annotation.text else (b"\x20", 10)
    head = _TAG_ANNOTATION + varint(len(name) + len(tag) + width) + name + tag
    return np.hstack([_constant(head, len(rows)), padded(annotation.values[rows], width)])


def _packets(ts_ns: Int64s, event: list[Bytes]) -> Bytes:
    n = len(ts_ns)
    event_bytes = sum(part.shape[1] for part in event)
    time = [_constant(_TAG_TIMESTAMP, n), padded(ts_ns, _WIDTH_TIME), _constant(_TAIL, n)]
    before = 1 + _WIDTH_TIME + len(_TAIL) + 1 + _WIDTH_LENGTH
    packet_length = padded(np.array([before + event_bytes]), _WIDTH_LENGTH).tobytes()
    event_length = padded(np.array([event_bytes]), _WIDTH_LENGTH).tobytes()
    head = _constant(_TAG_PACKET + packet_length, n)
    return np.hstack([head, *time, _constant(_TAG_EVENT + event_length, n), *event])


_PACKET_LENGTH_AT = 1
_EVENT_LENGTH_AT = 1 + _WIDTH_LENGTH + 1 + _WIDTH_TIME + len(_TAIL) + 1


def _interleave(groups: list[tuple[Int64s, Bytes]], count: int, tails: list[bytes] | None) -> bytes:
    """Copy each packet to its place; tails lengthen their packet."""
    widths = np.zeros(count, np.int64)
    for at, packets in groups:
        widths[at] = packets.shape[1]
    extra = np.zeros(count, np.int64)
    if tails is not None:
        extra[:] = [len(tail) for tail in tails]
    starts = np.cumsum(widths + extra) - (widths + extra)
    out = np.empty(int(starts[-1] + widths[-1] + extra[-1]), np.uint8)
    for at, packets in groups:
        out[starts[at][:, None] + np.arange(packets.shape[1])] = packets
    if tails is not None:
        _append_tails(out, starts, widths, extra, tails)
    return out.tobytes()


def _append_tails(
    out: Bytes, starts: Int64s, widths: Int64s, extra: Int64s, tails: list[bytes]
) -> None:
    """Put each tail behind its packet, and count it in the packet's and the event's length."""
    text = np.frombuffer(b"".join(tails), np.uint8)
    before = np.cumsum(extra) - extra
    out[np.repeat(starts + widths - before, extra) + np.arange(len(text))] = text
    longer = np.flatnonzero(extra)
    for at in (_PACKET_LENGTH_AT, _EVENT_LENGTH_AT):
        where = starts[longer][:, None] + at + np.arange(_WIDTH_LENGTH)
        out[where] = padded(_unpadded(out[where]) + extra[longer], _WIDTH_LENGTH)


def _unpadded(varints: Bytes) -> Int64s:
    """(n,) values of (n, width) padded varints."""
    septets = (varints & 0x7F).astype(np.int64)
    return np.asarray((septets << (7 * np.arange(varints.shape[1]))).sum(axis=1), np.int64)
