"""The protobuf wire format, as far as writing traces and talking to a trace processor need it.

Padded varints are legal protobuf, so records of one shape have one width and can be written as
numpy arrays (https://protobuf.dev/programming-guides/encoding). Written out because the
`perfetto` package's own message classes can only be imported together with pandas (0.35 s), and
because results are decoded as whole arrays.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.errors import EngineError

__all__ = [
    "Buffer",
    "block_header",
    "bytes_field",
    "fields",
    "fixed64_field",
    "padded",
    "read_varint",
    "text_field",
    "unpack_varints",
    "varint",
    "varint_field",
]

Buffer = bytes | bytearray | memoryview

_VARINT, _FIXED64, _BLOCK, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A varint; negative numbers take ten bytes, as int64 does."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_field(number: int, value: int) -> bytes:
    """A field that holds an integer, an enum or a bool."""
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field that holds bytes or a message."""
    return block_header(number, len(value)) + value


def fixed64_field(number: int, value: int) -> bytes:
    """A field that holds 64 bits as they are."""
    return varint(number << 3 | _FIXED64) + value.to_bytes(8, "little")


def text_field(number: int, value: str) -> bytes:
    """A field that holds text; lone surrogates become question marks."""
    return bytes_field(number, value.encode("utf-8", "replace"))


def block_header(number: int, length: int) -> bytes:
    """What precedes the `length` bytes of a text, bytes or message field."""
    return varint(number << 3 | _BLOCK) + varint(length)


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    """The varint at offset `at`, and the offset behind it.

    Raises:
        EngineError: the data ends inside the varint.
    """
    value = 0
    for offset in range(at, len(data)):
        byte = data[offset]
        value |= (byte & 0x7F) << 7 * (offset - at)
        if byte < 0x80:
            return value, offset + 1
    msg = f"a reply of the trace processor is cut short at byte {len(data)}"
    raise EngineError(msg)


def fields(message: Buffer) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field: an int of a varint, the bytes of anything else.

    Raises:
        EngineError: the message is damaged.
    """
    view = memoryview(message)
    at, end = 0, len(view)
    while at < end:
        tag, at = read_varint(view, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = read_varint(view, at)
            yield tag >> 3, value
            continue
        length, at = _length(view, at, kind)
        if at + length > end:
            msg = f"a reply of the trace processor is cut short at byte {end}"
            raise EngineError(msg)
        yield tag >> 3, view[at : at + length]
        at += length


def _length(view: memoryview, at: int, kind: int) -> tuple[int, int]:
    if kind == _BLOCK:
        return read_varint(view, at)
    if kind in (_FIXED64, _FIXED32):
        return (8 if kind == _FIXED64 else 4), at
    msg = f"a reply of the trace processor holds the unknown wire type {kind} at byte {at}"
    raise EngineError(msg)


def unpack_varints(packed: bytes) -> NDArray[np.int64]:
    """All integers of a packed field of type int64, exact over the whole range."""
    data = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(data < 0x80)
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    lengths = ends - starts + 1
    # The eight bytes that begin at each offset, read as one word.
    words = np.ndarray(len(data), "<u8", packed + bytes(8), strides=(1,))[starts]
    beyond = 8 * np.maximum(8 - lengths, 0).astype(np.uint64)
    values = _squeeze(words << beyond >> beyond)
    for position in (8, 9):
        rows = np.flatnonzero(lengths > position)
        septets = (data[starts[rows] + position] & 0x7F).astype(np.uint64)
        values[rows] |= septets << np.uint64(7 * position)
    return values.view(np.int64)


def _squeeze(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Close the gaps between the eight septets of each word: by pairs, fours and eights."""
    words = words & np.uint64(0x7F7F7F7F7F7F7F7F)
    for bits, low in ((1, 0x007F007F007F007F), (2, 0x00003FFF00003FFF), (4, 0x0FFFFFFF)):
        kept = words & np.uint64(low)
        words = kept | (words ^ kept) >> np.uint64(bits)
    return words


def padded(values: NDArray[np.int64] | NDArray[np.uint64], width: int) -> NDArray[np.uint8]:
    """(n, width) varints, all of one width; 5 holds 35 bits, 9 holds 63, 10 any.

    Args:
        values: (n,) must fit the width.
        width: bytes per varint.
    """
    shifts = (np.arange(width) * 7).astype(np.uint64)
    groups = (values.astype(np.uint64)[:, None] >> shifts) & np.uint64(0x7F)
    out = groups.astype(np.uint8)
    out[:, :-1] |= 0x80
    return out
