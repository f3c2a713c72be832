"""Chrome trace JSON, as fast as it can be read: bytes to columns of events.

The document is decoded in pieces of a few megabytes, so that its objects never exist all at
once. A piece that does not decode sends the whole document through `salvage`, which reads
event by event.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.sources.json_document import DECODE_ERRORS, Buffer, split_document
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Int32s, Int64s

__all__ = [
    "OWN_PROCESS",
    "ChromeTrace",
    "Event",
    "Interner",
    "TimedEvents",
    "nanoseconds",
    "read_chrome_json",
    "read_salvaged",
]

PIECE_BYTES = 2 << 20
"""Events of 2 MiB of text take about 8 MB as objects; larger pieces fall out of the caches and
take twice the time to decode, below 1 MiB the arrays become too short."""

EXACT_BELOW_NS = 2.0**52
"""A double holds whole nanoseconds of a time below this, whatever its unit."""

LARGEST_NS = 1 << 61
"""Of a start or a duration, so that ends fit 63 bits; 73 years."""

NO_ARGS = msgspec.Raw(b"{}")

OWN_PROCESS = "perfdiag"
"""Process of the events that perfdiag has put into a document: they are results, and not read."""

_OWN = re.compile(rb'"pid"\s*:\s*"perfdiag"')


class Event(msgspec.Struct, gc=False):
    """One entry of `traceEvents`, untyped: exporters put strings where numbers belong."""

    ph: Any = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    name: Any = None
    cat: Any = None
    id: Any = None
    args: msgspec.Raw = NO_ARGS


class _ExactEvent(Event, gc=False):
    """The same with times as decimals; also takes numbers written as strings."""

    ts: Decimal | None = None
    dur: Decimal | None = None


_decode_events = msgspec.json.Decoder(list[Event]).decode
_decode_exact = msgspec.json.Decoder(list[_ExactEvent]).decode


class Interner:
    """Numbers for strings, in the order of first sight."""

    def __init__(self) -> None:
        """Start with none."""
        self._ids: dict[Any, int] = {}
        self._next = count()

    def codes(self, values: list[Any]) -> Int32s:
        """(n,) the number of each value; a value that is no text is read as its text."""
        ids = self._ids
        try:
            fresh = set(values) - ids.keys()
        except TypeError:  # a list or an object where text belongs
            values = [hashable(value) for value in values]
            fresh = set(values) - ids.keys()
        for value in sorted(fresh, key=str):
            ids[value] = next(self._next)
        return np.array(list(map(ids.__getitem__, values)), np.int32)

    def code(self, text: str) -> int:
        """The number of one string, or -1 where it was never seen."""
        return self._ids.get(text, -1)

    def texts(self) -> list[str]:
        """The strings, by number."""
        return ["" if value is None else str(value) for value in self._ids]


_SCALARS = (str, int, float, type(None))


def hashable(value: Any) -> Any:
    """The value, or its text where it is a list or an object in the place of a name or id."""
    return value if isinstance(value, _SCALARS) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class TimedEvents:
    """Complete (`X`) events of one piece, as columns of length n; times in source ns."""

    ts_ns: Int64s
    dur_ns: Int64s
    name: Int32s
    category: Int32s
    process: list[Any]
    thread: list[Any]
    args: list[msgspec.Raw]

    def between(self, start_ns: int, end_ns: int) -> "TimedEvents":
        """The events that start and end between two times."""
        inside = (self.ts_ns >= start_ns) & (self.ts_ns + self.dur_ns <= end_ns)
        rows = np.flatnonzero(inside).tolist()
        return TimedEvents(
            self.ts_ns[rows],
            self.dur_ns[rows],
            self.name[rows],
            self.category[rows],
            [self.process[i] for i in rows],
            [self.thread[i] for i in rows],
            [self.args[i] for i in rows],
        )


@dataclass(slots=True)
class ChromeTrace:
    """What a document held.

    Attributes:
        pieces: the complete events, piece by piece, made as they are asked for.
        others: entries with another phase than `X`, with their time in ns where they have one.
        metadata: top-level keys beside `traceEvents`, as JSON text.
        strings: names and categories that the pieces refer to.
        notices, entries, skipped: filled while `pieces` is consumed.
        bare_objects: of the skipped, those without a phase or a time.
        out_of_range: of the skipped, those whose times no clock can show.
    """

    metadata: Mapping[str, Any]
    strings: Interner = field(default_factory=Interner)
    others: list[Event] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    entries: int = 0
    skipped: int = 0
    bare_objects: int = 0
    out_of_range: int = 0
    pieces: Iterator[TimedEvents] = field(default_factory=lambda: iter(()))


def read_chrome_json(data: Buffer, path: str, unit_ns: int = 1000) -> ChromeTrace:
    """Read a document that is expected to be whole.

    Args:
        data: JSON text: an object with `traceEvents`, or a bare list of events.
        path: for messages.
        unit_ns: nanoseconds in one unit of `ts`; the format says microseconds.

    Raises:
        InputError: it is JSON but no trace, or nothing of it can be read.
        msgspec.DecodeError: from `pieces`, on damage; start again with `read_salvaged`.
    """
    fast = split_document(data, PIECE_BYTES)
    if fast is None:
        return read_salvaged(data, path, unit_ns)
    metadata, spans = fast
    trace = ChromeTrace(metadata)
    trace.pieces = _pieces(trace, (_array(data[a:b]) for a, b in spans), unit_ns)
    return trace


def _array(events: Buffer) -> bytes:
    return b"".join((b"[", events, b"]"))


class _Start(msgspec.Struct, gc=False):
    ph: Any = None
    ts: Any = None


_decode_starts = msgspec.json.Decoder(list[_Start]).decode


def earliest_ns(data: Buffer, unit_ns: int = 1000) -> int | None:
    """Start of the first complete event, or None where the document is damaged or unusual."""
    fast = split_document(data, PIECE_BYTES)
    earliest: int | None = None
    try:
        for a, b in fast[1] if fast else ():
            times = [e.ts for e in _decode_starts(_array(data[a:b])) if e.ph == "X"]
            first = min((Decimal(str(t)) for t in times if t), default=None)
            if first is not None and (earliest is None or first * unit_ns < earliest):
                earliest = round(first * unit_ns)
    except (*DECODE_ERRORS, ArithmeticError):
        return None
    return earliest


def read_salvaged(data: Buffer, path: str, unit_ns: int = 1000) -> ChromeTrace:
    """Read a damaged or unusual document event by event; see `read_chrome_json`."""
    from perfdiag.profiler.sources.salvage import salvage  # sound traces do without it

    saved = salvage(data, path)
    trace = ChromeTrace({key: _loads(value) for key, value in saved.metadata.items()})
    trace.notices += saved.notices
    trace.skipped = trace.entries = saved.skipped
    batches = (
        b"[" + b",".join(saved.events[i : i + 20_000]) + b"]"
        for i in range(0, len(saved.events), 20_000)
    )
    trace.pieces = _pieces(trace, batches, unit_ns)
    return trace


def nanoseconds(times: list[Any], unit_ns: int) -> Int64s | None:
    """(n,) exact integer ns, or None where a double cannot hold a time or one is no number."""
    try:
        numbers = np.array(times)
    except ValueError:  # a list in the place of a time
        return None
    if numbers.ndim == 1 and numbers.dtype == np.int64:
        fits = _all_below(numbers, LARGEST_NS // unit_ns)
        return numbers.astype(np.int64) * unit_ns if fits else None
    if numbers.dtype != np.float64 or not _all_below(numbers, EXACT_BELOW_NS / unit_ns):
        return None
    whole: Int64s = np.floor(numbers).astype(np.int64)
    fraction: Int64s = np.rint((numbers - whole) * unit_ns).astype(np.int64)
    return whole * unit_ns + fraction


def _all_below(numbers: NDArray[Any], limit: float) -> bool:
    """Whether all are nearer to zero than a limit; what is no number is not."""
    return bool(((numbers > -limit) & (numbers < limit)).all())


def _loads(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except DECODE_ERRORS:
        return None


def _pieces(trace: ChromeTrace, texts: Iterator[bytes], unit_ns: int) -> Iterator[TimedEvents]:
    exact = False
    for text in texts:
        if not exact:
            events = _foreign(_decode_events(text), text)
            complete = _complete(events)
            ts_ns = nanoseconds([e.ts for e in complete], unit_ns)
            dur_ns = nanoseconds([e.dur for e in complete], unit_ns)
            exact = ts_ns is None or dur_ns is None
        if exact:
            events = _foreign(_decimal_events(text), text)
            complete = _in_range(trace, _complete(events), unit_ns)
            ts_ns = _exact([e.ts for e in complete], unit_ns)
            dur_ns = _exact([e.dur for e in complete], unit_ns)
        assert ts_ns is not None
        assert dur_ns is not None
        trace.entries += len(events)
        if len(complete) < len(events):
            _keep_others(trace, events)
        yield _columns(trace, complete, ts_ns, dur_ns)


def _foreign(events: list[Event], text: bytes) -> list[Event]:
    """The events that perfdiag has not put in, nor arrows to them."""
    if not _OWN.search(text):
        return events
    return [e for e in events if e.pid != OWN_PROCESS and e.cat != "perfdiag.evidence"]


def _decimal_events(text: bytes) -> list[Event]:
    """Events with their times as decimals; a time that is no number is dropped."""
    try:
        return list(_decode_exact(text))
    except msgspec.ValidationError:
        events = _decode_events(text)
    for event in events:
        event.ts, event.dur = _decimal(event.ts), _decimal(event.dur)
    return events


def _decimal(value: Any) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except ArithmeticError:
        return None


def _complete(events: list[Event]) -> list[Event]:
    return [e for e in events if e.ph == "X" and e.ts is not None and e.dur is not None]


def _in_range(trace: ChromeTrace, events: list[Event], unit_ns: int) -> list[Event]:
    """Those whose times a clock can show; the others are counted."""
    limit = LARGEST_NS // unit_ns
    fitting = [e for e in events if _fits(e.ts, limit) and _fits(e.dur, limit)]
    trace.out_of_range += len(events) - len(fitting)
    return fitting


def _columns(
    trace: ChromeTrace, complete: list[Event], ts_ns: Int64s, dur_ns: Int64s
) -> TimedEvents:
    return TimedEvents(
        ts_ns,
        dur_ns,
        trace.strings.codes([e.name for e in complete]),
        trace.strings.codes([e.cat for e in complete]),
        [e.pid for e in complete],
        [e.tid for e in complete],
        [e.args for e in complete],
    )


def _keep_others(trace: ChromeTrace, events: list[Event]) -> None:
    for event in events:
        if event.ph == "X" and event.ts is not None and event.dur is not None:
            continue
        if event.ph is None or event.ph == "X":
            trace.skipped += 1
            trace.bare_objects += 1
        else:
            trace.others.append(event)


def _fits(time: Decimal, limit: int) -> bool:
    return time.is_finite() and -limit < time < limit


def _exact(times: list[Any], unit_ns: int) -> Int64s:
    return np.fromiter((round(t * unit_ns) for t in times), np.int64, len(times))
