"""Where the events of a trace document begin and end, found without decoding them.

libkineto and most others write each event with the same first key, so that a boundary between
two events shows. Whatever is not so is left to `salvage`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["DECODE_ERRORS", "Buffer", "split_document"]

DECODE_ERRORS = (msgspec.DecodeError, RecursionError)
"""What msgspec raises on text that it cannot read; the second where it is nested too deeply."""

Buffer = bytes | memoryview

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[\s*')
_FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\]|\\.)*")')


def split_document(
    data: Buffer, piece_bytes: int
) -> tuple[dict[str, Any], list[tuple[int, int]]] | None:
    """Take a trace document apart without reading its events.

    Args:
        data: an object with `traceEvents`, or a bare list of events.
        piece_bytes: least size of a piece; each ends between two events.

    Returns:
        The other top-level keys, and the spans of the pieces; None where the layout is not the
        usual one or the document is damaged outside its events.
    """
    opening = _EVENTS_KEY.search(data)
    bare = re.match(rb"(?:\xef\xbb\xbf)?\s*\[\s*", data)
    start = bare.end() if bare else opening.end() if opening else -1
    first = _FIRST_KEY.match(data, start) if start >= 0 else None
    if first is None:
        return None
    boundary = re.compile(rb"\}\s*,\s*(?=\{\s*" + re.escape(first[1]) + rb")")
    end = _array_end(data, start, re.compile(rb"\{\s*" + re.escape(first[1])))
    if end is None:
        return None
    head = b"" if bare or opening is None else bytes(data[: opening.start()])
    metadata = {} if bare else _metadata(head, bytes(data[end + 1 :]))
    if metadata is None or (bare and bytes(data[end + 1 :]).strip()):
        return None
    return metadata, list(_spans(data, (start, end), boundary, piece_bytes))


def _metadata(head: bytes, tail: bytes) -> dict[str, Any] | None:
    """The document without its events, or None where it does not decode."""
    text = head.rstrip().rstrip(b",") + (b"," if head.strip(b" \r\n\t{,") else b"")
    rest = tail.lstrip().lstrip(b",")
    joined = (text.rstrip(b",") if rest.strip() == b"}" else text) + rest
    try:
        document = msgspec.json.decode(joined)
    except DECODE_ERRORS:
        return None
    return document if isinstance(document, dict) else None


def _array_end(data: Buffer, start: int, event: re.Pattern[bytes]) -> int | None:
    """Offset of the bracket that closes the events, found from the last event on."""
    size, window = len(data), 1 << 16
    while True:
        begin = max(start, size - window)
        last = None
        for last in event.finditer(data, begin):  # noqa: B007
            pass
        if last is not None:
            break
        if begin == start:
            return None
        window *= 8
    return _closing_bracket(data, last.start())


_SEPARATOR = re.compile(r"[\s,]*")


def _closing_bracket(data: Buffer, start: int) -> int | None:
    """Offset of the bracket after the events that begin at `start`."""
    text = bytes(data[start:]).decode("utf-8", "replace")
    decoder, at = json.JSONDecoder(), 0
    while at < len(text) and text[at] != "]":
        try:
            _, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        separator = _SEPARATOR.match(text, at)
        at = separator.end() if separator else at
    return start + len(text[:at].encode()) if at < len(text) else None


def _spans(
    data: Buffer, span: tuple[int, int], boundary: re.Pattern[bytes], piece_bytes: int
) -> Iterator[tuple[int, int]]:
    start, end = span
    while start < end:
        far = end - start > piece_bytes
        cut = boundary.search(data, start + piece_bytes, end) if far else None
        if cut is None:
            yield start, end
            return
        yield start, cut.start() + 1
        start = cut.end()
