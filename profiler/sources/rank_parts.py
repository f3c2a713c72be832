"""The ranks of an annotated trace that holds several, each as a trace of its own."""

from collections.abc import Iterator
from dataclasses import replace

from perfdiag.profiler.sources.files import Blob
from perfdiag.profiler.trace_packets import clock_packet
from perfdiag.profiler.wire import Buffer, fields, read_varint
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["FIRST_CLOCK", "split_ranks"]

FIRST_CLOCK = 1 << 20
"""Ids of clocks that ranks count in begin here: from 128 on they hold for the whole trace."""

_PACKET_TAG, _SNAPSHOT, _REALTIME = 0x0A, 6, 1
_LONGEST = 200
"""Bytes of a packet that may be a clock's."""


def split_ranks(blob: Blob) -> Iterator[Blob]:
    """A trace, or where perfdiag has put several ranks into it, each of them.

    Each counts from its own start then, as before it was put on the common clock.

    Args:
        blob: any input.
    """
    parts = [] if blob.content != "perfetto" else list(_begins(blob.data))
    if len(parts) < 2:
        yield blob
        return
    ends = [*(begin for begin, _, _ in parts[1:]), len(blob.data)]
    for number, ((_, start, clock), end) in enumerate(zip(parts, ends, strict=True)):
        data = clock + bytes(blob.data[start:end])
        yield replace(blob, path=f"{blob.path}!part{number}", data=data)


def _begins(data: Buffer) -> Iterator[tuple[int, int, bytes]]:
    """Where each rank begins and its first packet ends, and that packet with its clock at 0."""
    at, first = 0, True
    while at < len(data) and data[at] == _PACKET_TAG:
        try:
            length, start = read_varint(data, at + 1)
            small = length <= _LONGEST
            clock = _clock(data[start : start + length]) if small else None
        except EngineError:  # damaged, which the reader says
            return
        if first and clock is None:
            return
        if clock is not None:
            yield at, start + length, clock
        at, first = start + length, False


def _clock(packet: Buffer) -> bytes | None:
    """The packet that begins a rank, for a file of its own; None where it is another one."""
    found = [value for number, value in fields(packet) if number == _SNAPSHOT]
    if not found or isinstance(found[0], int):
        return None
    clocks: dict[int, int] = {}
    for number, value in fields(found[0]):
        if number == 1 and not isinstance(value, int):
            one = {key: part for key, part in fields(value) if isinstance(part, int)}
            clocks[one.get(1, 0)] = one.get(2, 0)
    own = next((clock for clock in clocks if clock >= FIRST_CLOCK), None)
    return None if own is None else clock_packet(clocks.get(_REALTIME), own=own)
