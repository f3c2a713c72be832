"""The little of protobuf's wire format that writing a trace needs.

Padded varints are legal protobuf, so records of one shape have one width and can be written
as numpy arrays (https://protobuf.dev/programming-guides/encoding).
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.recording import Int64s

__all__ = ["bytes_field", "fixed64_field", "padded", "text_field", "varint", "varint_field"]

Bytes2d = NDArray[np.uint8]


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
    """A field of type int64, uint64, bool or enum."""
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of type bytes, string or message."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A string field; lone surrogates become question marks."""
    return bytes_field(number, value.encode("utf-8", "replace"))


def fixed64_field(number: int, value: int) -> bytes:
    """A field of type fixed64."""
    return varint(number << 3 | 1) + (value & (1 << 64) - 1).to_bytes(8, "little")


def padded(values: Int64s | NDArray[np.uint64], width: int) -> Bytes2d:
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
