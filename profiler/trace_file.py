"""A Perfetto trace as a file: packed piece by piece, there when it is complete."""

import gzip
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from perfdiag.profiler.wire import bytes_field
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["LEVEL", "replacing", "write_pieces"]

_PACKET, _COMPRESSED_PACKETS = 1, 50
"""Field numbers of Trace.packet and of TracePacket.compressed_packets."""

LEVEL = 6
"""Of deflate: level 9 takes three times as long for 3 % less (A100 and H100 traces)."""

_AHEAD = 3
"""Pieces that are deflated while the next ones are made; each is some 10 MB."""


def write_pieces(file: IO[bytes], pieces: Iterable[bytes], *, gzipped: bool) -> None:
    """Write packets: deflated inside the trace, or as they are into a gzip archive.

    Args:
        file: to write to.
        pieces: whole packets each; a clock that others count in is written as it is.
        gzipped: the file is to be a gzip archive.
    """
    if not gzipped:
        for packed in _in_threads(pieces):
            file.write(packed)
        return
    with gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as archive:
        for piece in pieces:
            archive.write(piece)


def _in_threads(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Deflated pieces in their order; deflating leaves Python free for the next one."""
    with ThreadPoolExecutor(2) as pool:
        running: deque[Future[bytes]] = deque()
        for piece in pieces:
            running.append(pool.submit(_deflated, piece))
            if len(running) > _AHEAD:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


SMALL = 256
"""Bytes that are not worth deflating; a reader finds where a rank begins by such a packet."""


def _deflated(packets: bytes) -> bytes:
    """The same packets inside one, as Perfetto's own tracing service compresses them."""
    if len(packets) < SMALL:
        return packets
    return bytes_field(_PACKET, bytes_field(_COMPRESSED_PACKETS, zlib.compress(packets, LEVEL)))


@contextmanager
def replacing(output: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `output` at the end, or leaves nothing behind.

    Raises:
        UsageError: it cannot be written.
    """
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
