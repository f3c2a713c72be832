r"""What can be saved of damaged Chrome trace JSON.

The fast reader takes whole documents. Where that fails, this module reads the same bytes entry
by entry: what is whole is kept, what can be mended without guessing is mended, the rest is
skipped, and everything is counted in notices.

The time is linear in the size of the input: one pattern takes a whole event at once, every search
goes forwards, and the work spent on text that turns out to be broken has a budget. Nothing
recurses on the input.
"""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache

import msgspec

from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.notices import Notice, Severity

__all__ = ["Salvaged", "salvage"]

_BOM = b"\xef\xbb\xbf"
_WS = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_WORD = rb'[^ \t\r\n,:{}\[\]"]++'

# Keys of an event: Trace Event Format (Google, "Trace Event Format", 2016), "JSON Object Format".
_EVENT_KEY = (
    rb"(?:ph|cat|name|pid|tid|ts|dur|args|id|id2|bp|s|cname|tts|tdur|scope|sf|stack|esf|estack|v"
    rb"|bind_id|flow_in|flow_out|use_async_tts)"
)
_EVENT_KEYS = frozenset(_EVENT_KEY[3:-1].decode().split("|"))

# Keys beside the events that a reader needs and Kineto writes (libkineto output_json.cpp, and
# torch/profiler/profiler.py): reading takes up again at one of them after damaged metadata.
_TOP_KEY = (
    rb'"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds'
    rb"|displayTimeUnit|traceName|trace_id|record_shapes|profile_memory|with_stack|with_flops"
    rb"|with_modules|host_name|username|metadata|otherData|systemTraceEvents|stackFrames|samples"
    rb"|cupti_version|cuda_runtime_version|cuda_driver_version|roctracer_version"
    rb'|hip_runtime_version|hip_driver_version)"'
)

_BLANK = re.compile(_WS)
_TOKEN = re.compile(_WS + rb"(?:(" + _STRING + rb")|(" + _WORD + rb")|([{}\[\],:]))", re.DOTALL)
_ATOM = re.compile(_STRING + rb"|" + _WORD, re.DOTALL)
# What `_mend_atoms` need not look at: strings without rare escapes, numbers that fit a double.
_GOOD_ATOM = (
    rb'"[^"\\\0-\x1f]*+(?:\\["\\/bfnrt][^"\\\0-\x1f]*+)*+"|[ \t\r\n,:{}\[\]]++'
    rb"|(?:true|false|null)\b|-?\d{1,300}+(?:\.\d++)?+(?:[eE][+-]?\d{1,2}+)?+(?=[ \t\r\n,:}\]]|\Z)"
)
_GOOD_THEN_BAD = re.compile(rb"(?:" + _GOOD_ATOM + rb")*+(" + _ATOM.pattern + rb")?+", re.DOTALL)
_MEMBERS = re.compile(
    rb"(?:" + _WS + _STRING + _WS + rb":" + _WS + rb"(?:" + _ATOM.pattern + rb")" + _WS + rb",)++",
    re.DOTALL,
)
_ITEMS = re.compile(rb"(?:" + _WS + rb"(?:" + _ATOM.pattern + rb")" + _WS + rb",)++", re.DOTALL)
_SCALAR = re.compile(rb"(?:" + _ATOM.pattern + rb")" + _WS + rb"(?:,|(?=\]))", re.DOTALL)
_COMMA = re.compile(_WS + rb",?")
_MEMBER = re.compile(_WS + rb"(" + _STRING + rb")" + _WS + rb":" + _WS, re.DOTALL)
# An object after a colon is a value inside an event, not an event.
_START = re.compile(rb':\s*\{|(\{\s*"' + _EVENT_KEY + rb'"\s*:)')
_BESIDE_EVENTS = rb',\s*"(?!' + _EVENT_KEY + rb'"\s*:)'
_LIST_END = re.compile(rb"\]\s*(?:" + _BESIDE_EVENTS + rb"|\}\s*\Z|\Z)")
# Behind damage a `]` may close a list inside an event: the surest signs are tried first.
_LIST_ENDS_AFTER_DAMAGE = (
    re.compile(rb"\](?=\s*(?:,\s*" + _TOP_KEY + rb"\s*:|\}\s*\Z))"),
    re.compile(rb"(?<=\})\s*\](?=\s*(?:" + _BESIDE_EVENTS + rb"|\Z))"),
)
_TOP_MEMBER = re.compile(_TOP_KEY + rb"\s*:")
_EVENTS_MEMBER = re.compile(rb'"traceEvents"\s*:\s*\[')

_NONFINITE = re.compile(rb"[+-]?(?:nan(?:\([^)]*\))?|inf(?:inity)?|\d\.#\w+)", re.IGNORECASE)
_GOOD_ESCAPE = rb'\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
_SURROGATE_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE = rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(
    rb"("
    + _GOOD_ESCAPE
    + rb"|"
    + _SURROGATE_PAIR
    + rb")|("
    + _LONE_SURROGATE
    + rb')|([\\"\0-\x1f])'
)

_NAME_START = re.compile(rb'"(?:name|cat)"\s*:\s*"')
_NAME_END = re.compile(rb'"(?=\s*(?:,\s*"' + _EVENT_KEY + rb'"\s*:|\}[\s}]*\Z))')
_KEY_INSIDE = re.compile(rb'"' + _EVENT_KEY + rb'"\s*:')
_NO_OPENING_QUOTE = re.compile(rb"([{,]\s*)(" + _EVENT_KEY + rb')"(\s*:)')
_NO_CLOSING_QUOTE = re.compile(rb'([{,]\s*)"(' + _EVENT_KEY + rb")(\s*:)")

_DEPTH = 8
"""Levels that the event pattern takes at once: Kineto nests 5 deep (args, a list of tensor lists).
Deeper events are read token by token."""

_SEVERITIES: dict[str, Severity] = {"input.truncated": "error"}

_MESSAGES = {
    "input.truncated": "The input ends early, at {where}; every event before it is read.",
    "input.corrupt": "Text between or behind the events is no JSON: {count} piece(s), first at "
    "{where}.",
    "json.nonfinite": "NaN or Infinity counts as missing: {count} value(s), first at {where}.",
    "json.bad_escape": "A quote, an escape or a control character that JSON forbids is mended: "
    "{count} event(s), first at {where}.",
    "json.metadata_dropped": "Metadata beside the events is damaged and left out: {count} "
    "place(s), first at {where}.",
    "text.invalid_utf8": "Bytes that are not UTF-8 are replaced: {count} event(s), first at "
    "{where}.",
    "event.skipped": "Entries of the list of events cannot be read and are left out: {count}, "
    "first at {where}.",
}


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was saved of a document.

    Attributes:
        events: the JSON text of each event, in order; each is a valid JSON object.
        metadata: the JSON text of each other top-level value that could be read, by key.
        notices: what was mended, replaced, skipped or lost.
        skipped: number of entries of the list of events that were left out.
    """

    events: list[bytes | memoryview]
    metadata: dict[str, bytes]
    notices: tuple[Notice, ...]
    skipped: int


def salvage(data: bytes | memoryview, path: str) -> Salvaged:
    """Save what can be saved of a damaged Chrome trace.

    Args:
        data: the document, decompressed. Either an object with `traceEvents` or a list of events.
        path: the input, for messages.

    Raises:
        InputError: it is no JSON, no trace, or ends before the list of events starts.
    """
    document = _Document(data, path, _end_of_text(data))
    start = len(_BOM) if bytes(data[:3]) == _BOM else 0
    start = document.skip_blank(start)
    opening = bytes(data[start : start + 1])
    if start >= document.end:
        raise InputError(path, "is empty: there is nothing to read")
    if opening == b"[":
        position = _read_events(document, start + 1)
        _check_list(document)
    elif opening == b"{":
        position = _read_members(document, start + 1)
        _check_object(document)
    else:
        raise InputError(path, "is no JSON document: it starts with neither '{' nor '['", start)
    _check_tail(document, position)
    return Salvaged(
        list(document.events),
        document.metadata,
        document.notices(),
        document.counts["event.skipped"],
    )


@dataclass(slots=True)
class _Document:
    """A document while it is read.

    Attributes:
        end: offset behind the text, without padding.
        budget_bytes: what may still be spent on scanning text that turns out to be broken.
        lost: whether the last entry was damaged, so that the next `{` need not be an event.
        in_list: whether the list of events is being read.
    """

    data: bytes | memoryview
    path: str
    end: int
    events: list[bytes] = field(default_factory=list)
    metadata: dict[str, bytes] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, str] = field(default_factory=dict)
    has_list: bool = False
    in_list: bool = False
    lost: bool = False
    budget_bytes: int = 0
    last_phase: int | None = None

    def __post_init__(self) -> None:
        self.budget_bytes = 2 * self.end + 65536

    def skip_blank(self, position: int) -> int:
        match = _BLANK.match(self.data, position, self.end)
        return match.end() if match else position

    def note(self, kind: str, position: int, count: int = 1) -> None:
        """Count what was found at `position`; only the first place is kept."""
        index = len(self.events) + self.counts["event.skipped"]
        entry = f" (event {index})" if self.in_list else ""
        self.firsts.setdefault(kind, f"byte {position}{entry}")
        self.counts[kind] += count

    def cut(self) -> int:
        """Note that the text ends early; the end of the text."""
        if not self.counts["input.truncated"]:
            self.note("input.truncated", self.end)
        return self.end

    def notices(self) -> tuple[Notice, ...]:
        return tuple(
            Notice(
                kind,
                _SEVERITIES.get(kind, "warning"),
                self.counts[kind],
                message.format(count=self.counts[kind], where=self.firsts[kind]),
            )
            for kind, message in _MESSAGES.items()
            if self.counts[kind]
        )

    def phases_end(self) -> int:
        """Offset of the last `"ph"`: behind it there are no events."""
        if self.last_phase is None:
            self.last_phase = _rfind(self.data, b'"ph"', self.end)
        return self.last_phase

    def scan(self, position: int) -> tuple["_Fate", int]:
        """Where the value at `position` ends, within the budget; see `_scan`."""
        if self.budget_bytes <= 0:
            return _Fate.BROKEN, position
        fate, stop = _scan(self.data, position, self.end)
        if fate is not _Fate.WHOLE:
            self.budget_bytes -= stop - position
        return fate, stop


# --- the document ---


def _end_of_text(data: bytes | memoryview) -> int:
    """Offset behind the last byte that is neither blank nor NUL (a file system's padding)."""
    end = len(data)
    while end:
        start = max(0, end - 65536)
        kept = len(bytes(data[start:end]).rstrip(b"\0 \t\r\n"))
        if kept:
            return start + kept
        end = start
    return 0


def _rfind(data: bytes | memoryview, needle: bytes, end: int) -> int:
    """As `bytes.rfind`, which a memoryview does not have."""
    while end > 0:
        start = max(0, end - (1 << 20))
        found = bytes(data[start : end + len(needle) - 1]).rfind(needle)
        if found >= 0:
            return start + found
        end = start
    return -1


def _read_members(document: _Document, position: int) -> int:
    """Read the members of the top-level object; the offset behind it."""
    data, end = document.data, document.end
    while position < end:
        member = _MEMBER.match(data, position, end)
        if member is not None:
            position = _read_member(document, _text_of(member[1]), member.end())
            continue
        position = document.skip_blank(position)
        if data[position : position + 1] == b"}":
            return position + 1
        position = _lose_metadata(document, position, document.scan(position)[0])
    return document.cut()


def _read_member(document: _Document, key: str, position: int) -> int:
    """Read the value of a top-level key; where to read on."""
    document.keys.append(key)
    if key == "traceEvents" and document.data[position : position + 1] == b"[":
        document.has_list = True
        return _skip_comma(document, _read_events(document, position + 1))
    fate, stop = document.scan(position)
    if fate is _Fate.WHOLE:
        value = _accept(document, bytes(document.data[position:stop]), position)
        after = document.skip_blank(stop)
        if value is not None and document.data[after : after + 1] in (b",", b"}", b""):
            document.metadata.setdefault(key, value)
            return _skip_comma(document, stop)
    return _lose_metadata(document, position, fate)


def _lose_metadata(document: _Document, position: int, fate: "_Fate") -> int:
    """Note damaged metadata; where to read on: the next key that is known, else the end."""
    data, end = document.data, document.end
    if fate is _Fate.CUT:
        return document.cut()
    document.note("json.metadata_dropped", position)
    known = _TOP_MEMBER if document.has_list else _EVENTS_MEMBER
    match = known.search(data, position + 1, end)
    if match is not None:
        return match.start()
    return end - 1 if data[end - 1 : end] == b"}" and position < end - 1 else document.cut()


def _skip_comma(document: _Document, position: int) -> int:
    match = _COMMA.match(document.data, position, document.end)
    return match.end() if match else position


def _check_list(document: _Document) -> None:
    if document.counts["input.truncated"] or document.phases_end() >= 0:
        return
    count = len(document.events) + document.counts["event.skipped"]
    problem = f"a JSON list of {count} entries, none of them with 'ph': not a profiler trace"
    raise InputError(document.path, problem)


def _check_object(document: _Document) -> None:
    if document.has_list:
        return
    if document.counts["input.truncated"]:
        problem = "ends before its list of events: nothing can be read; copy or record it again"
        raise InputError(document.path, problem, document.end)
    if "traceEvents" in document.keys:
        raise InputError(document.path, "'traceEvents' is no list: not a profiler trace")
    keys = ", ".join(document.keys[:5]) + (", ..." if len(document.keys) > 5 else "")
    keys = f"with keys {keys}," if keys else "without keys"
    problem = f"a JSON document {keys} but no traceEvents: not a profiler trace"
    raise InputError(document.path, problem)


def _check_tail(document: _Document, position: int) -> None:
    """Note what lies behind the end of the document."""
    position = document.skip_blank(position)
    if position < document.end:
        what = "another document starts" if document.data[position] in b"{[" else "text goes on"
        _note_tail(document, position, f"{what} behind the end and is not read")
        return
    padding = bytes(document.data[document.end : document.end + 4096])
    if b"\0" in padding and not document.counts["input.truncated"]:
        _note_tail(document, document.end, "NUL bytes pad the end")


def _note_tail(document: _Document, position: int, what: str) -> None:
    document.note("input.corrupt", position)
    place = f"byte {position}, where {what}"
    first = document.firsts["input.corrupt"]
    document.firsts["input.corrupt"] = (
        place if first == f"byte {position}" else f"{first}, last {place}"
    )


# --- the list of events ---


def _read_events(document: _Document, position: int) -> int:
    """Read the list of events from behind its `[`; the offset behind its `]`."""
    data, end, match_event = document.data, document.end, _event_pattern().match
    document.in_list = reading = True
    while reading:
        event = match_event(data, position, end)
        text = None if event is None else _accept(document, event[1], event.start(1))
        if event is None or text is None or (document.lost and b'"ph"' not in text):
            position, reading = _read_other(document, position)
            continue
        document.lost = False
        document.events.append(text)
        position = event.end()
        if event.lastindex == 1 and position < end and data[position : position + 1] != b"]":
            document.note("input.corrupt", position)
    document.in_list = False
    return position


def _read_other(document: _Document, position: int) -> tuple[int, bool]:
    """Read what is no healthy event: where to read on, and whether the list goes on there."""
    data, end = document.data, document.end
    position = document.skip_blank(position)
    byte = bytes(data[position : position + 1])
    if position >= end:
        return document.cut(), False
    if byte == b"]" and (document.phases_end() < position or _LIST_END.match(data, position, end)):
        return position + 1, False
    if byte == b",":
        document.note("input.corrupt", position)
        return position + 1, True
    scalar = _SCALAR.match(data, position, end)
    if scalar is not None:
        document.note("event.skipped", position)
        return scalar.end(), True
    fate, stop = document.scan(position)
    if fate is _Fate.WHOLE:
        return _read_whole(document, position, stop)
    return _read_damaged(document, position, fate)


def _read_whole(document: _Document, position: int, stop: int) -> tuple[int, bool]:
    """Read a value that ends at `stop` but is too deep, no event, or holds what JSON forbids."""
    text = bytes(document.data[position:stop])
    event = _accept(document, text, position) if text[:1] == b"{" else None
    if event is not None and document.lost and b'"ph"' not in event:
        return _resume(document, stop)  # part of the damaged event before it
    if event is not None:
        document.lost = False
        document.events.append(event)
        return _skip_comma(document, stop), True
    after = document.skip_blank(stop)
    if after == document.end and text[:1] != b"{":
        return document.cut(), False
    if after < document.end and document.data[after] not in b",]":
        document.note("input.corrupt", position)
        return _resume(document, position + 1)
    document.note("event.skipped", position)
    return _skip_comma(document, stop), True


def _read_damaged(document: _Document, position: int, fate: "_Fate") -> tuple[int, bool]:
    """Mend the damaged entry at `position`, or skip it."""
    start = _next_start(document, position + 1)
    if fate is _Fate.CUT and start is None:
        return document.cut(), False
    if document.data[position : position + 1] != b"{":
        document.note("input.corrupt", position)
        return _resume(document, position + 1)
    stop = start if start is not None else _find_list_end(document, position)
    text = bytes(document.data[position : document.end if stop is None else stop])
    event = _mend_structure(text.rstrip(b", \t\r\n"))
    if event is not None:
        document.note("json.bad_escape", position)
        document.lost = False
        document.events.append(event)
    elif not document.lost or b'"ph"' in text:
        document.note("event.skipped", position)
        document.lost = True
    return (document.cut(), False) if stop is None else (stop, True)


def _resume(document: _Document, position: int) -> tuple[int, bool]:
    """Take up the list at the next thing that looks like an event, else at its end."""
    document.lost = True
    start = _next_start(document, position)
    if start is None:
        start = _find_list_end(document, position - 1)
    return (document.cut(), False) if start is None else (start, True)


def _next_start(document: _Document, position: int) -> int | None:
    """Offset of the next `{` that looks like the start of an event."""
    match = _START.search(document.data, position, document.end)
    while match is not None and match[1] is None:
        match = _START.search(document.data, match.end(), document.end)
    if match is None or match.start(1) > document.phases_end():
        return None
    return match.start(1)


def _find_list_end(document: _Document, position: int) -> int | None:
    """Offset of the `]` that closes the list of events."""
    position = max(position, document.phases_end())
    for pattern in _LIST_ENDS_AFTER_DAMAGE:
        match = pattern.search(document.data, position, document.end)
        if match is not None:
            return match.end() - 1
    return None


# --- one value ---


class _Fate(Enum):
    """How the scan of a value ended."""

    WHOLE = auto()
    BROKEN = auto()
    CUT = auto()


class _Expect(Enum):
    """What may come next inside a value."""

    VALUE = auto()
    VALUE_OR_CLOSE = auto()
    KEY = auto()
    COLON = auto()
    COMMA_OR_CLOSE = auto()


_RUNS = {_Expect.KEY: _MEMBERS, _Expect.VALUE_OR_CLOSE: _ITEMS}
_VALUES = (_Expect.VALUE, _Expect.VALUE_OR_CLOSE)
_CLOSES = (_Expect.KEY, _Expect.VALUE_OR_CLOSE, _Expect.COMMA_OR_CLOSE)


@cache
def _event_pattern() -> re.Pattern[bytes]:
    """A pattern for one event with the comma behind it.

    It fixes where the event ends and fails soon where quotes do not pair. It does not judge
    words, escapes and the kind of inner brackets: the JSON decoder does.
    """
    atom = _STRING + rb"|" + _WORD
    key = _STRING + _WS + rb":" + _WS
    value = atom
    for _ in range(_DEPTH):
        item = rb"(?:" + key + rb")?+(?:" + value + rb")" + _WS + rb"(?:," + _WS + rb"|(?=[\]}]))"
        value = atom + rb"|[\[{]" + _WS + rb"(?:" + item + rb")*+[\]}]"
    member = key + rb"(?:" + value + rb")" + _WS + rb"(?:," + _WS + rb"|(?=\}))"
    event = rb"\{" + _WS + rb"(?:" + member + rb")*+\}"
    return re.compile(_WS + rb"(" + event + rb")" + _WS + rb"(,)?+", re.DOTALL)


def _scan(data: bytes | memoryview, position: int, end: int) -> tuple[_Fate, int]:
    """Read a value of any depth token by token; how it ends, and where."""
    opened = bytearray()
    expect = _Expect.VALUE
    while True:
        run = _RUNS.get(expect)
        match = None if run is None else run.match(data, position, end)
        position = position if match is None else match.end()
        token = _TOKEN.match(data, position, end)
        if token is None:  # only an open string or the end of the text is no token
            return _Fate.CUT, end
        after = _step(token, opened, expect)
        if after is None:
            return _Fate.BROKEN, token.end()
        if not opened:
            return _Fate.WHOLE, token.end()
        expect, position = after, token.end()


def _step(token: re.Match[bytes], opened: bytearray, expect: _Expect) -> _Expect | None:
    """What is expected behind `token`; None where the token itself is not expected."""
    if token.lastindex == 1 and expect is _Expect.KEY:
        return _Expect.COLON
    if token.lastindex in (1, 2):
        return _Expect.COMMA_OR_CLOSE if expect in _VALUES else None
    mark = token[3]
    if mark == b":":
        return _Expect.VALUE if expect is _Expect.COLON else None
    if mark == b",":
        if expect is not _Expect.COMMA_OR_CLOSE:
            return None
        return _Expect.KEY if bytes(opened[-1:]) == b"{" else _Expect.VALUE_OR_CLOSE
    if mark in b"{[":
        opened += mark
        if expect not in _VALUES:
            return None
        return _Expect.KEY if mark == b"{" else _Expect.VALUE_OR_CLOSE
    if expect not in _CLOSES or bytes(opened[-1:]) != (b"{" if mark == b"}" else b"["):
        return None
    opened.pop()
    return _Expect.COMMA_OR_CLOSE


def _is_valid(text: bytes) -> bool:
    """Whether `text` is one JSON value that the fast reader takes, too."""
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _accept(document: _Document, text: bytes, position: int) -> bytes | None:
    """The text with its words and strings mended, which is noted; None if that is not enough."""
    if _is_valid(text):
        return text
    mended, changes = _mend_atoms(text)
    if not _is_valid(mended):
        return None
    for kind, count in changes.items():
        document.note(kind, position, count)
    return mended


def _mend_atoms(text: bytes) -> tuple[bytes, Counter[str]]:
    """Make words and strings legal; also, what was changed, each event in one text kind only."""
    changes: Counter[str] = Counter()
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode(errors="replace").encode()
        changes["text.invalid_utf8"] = 1

    pieces: list[bytes] = []
    position = 0
    while position < len(text):
        match = _GOOD_THEN_BAD.match(text, position)
        if match is None or match[1] is None:
            break
        pieces += [text[position : match.start(1)], _mend_atom(match[1], changes)]
        position = match.end()
    return b"".join([*pieces, text[position:]]), changes


def _mend_atom(atom: bytes, changes: Counter[str]) -> bytes:
    """A legal form of one string or word; what changes is counted."""
    if atom[:1] != b'"':
        if not _is_nonfinite(atom):
            return atom
        changes["json.nonfinite"] += 1
        return b"null"
    mended = b'"' + _ESCAPE.sub(_escaped, atom[1:-1]) + b'"'
    if mended != atom and "text.invalid_utf8" not in changes:
        changes["json.bad_escape"] = 1
    return mended


def _escaped(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return match[1]
    if match[2] is not None:
        return b"\\ufffd"
    char = match[3]
    return b"\\" + char if char in b'\\"' else b"\\u%04x" % char[0]


def _is_nonfinite(word: bytes) -> bool:
    """Whether a bare word means NaN or Infinity, or a number too large for a double."""
    if _NONFINITE.fullmatch(word):
        return True
    try:
        return math.isinf(float(word))
    except ValueError:
        return False


def _mend_structure(text: bytes) -> bytes | None:
    """Mend quotes inside names and quotes lost around keys; None where that would be a guess."""
    for mend in (_mend_names, _mend_keys, lambda text: _mend_keys(_mend_names(text))):
        candidate = mend(text)
        mended = b"" if candidate == text else _mend_atoms(candidate)[0]
        if _is_valid(mended) and _is_plain_event(mended):
            return mended
    return None


def _mend_names(text: bytes) -> bytes:
    """Escape quotes inside names, where the next key of the event tells their end."""
    pieces: list[bytes] = []
    position = 0
    while True:
        start = _NAME_START.search(text, position)
        stop = _NAME_END.search(text, start.end()) if start else None
        if start is None or stop is None:
            return b"".join([*pieces, text[position:]])
        name = text[start.end() : stop.start()]
        if _KEY_INSIDE.search(name):
            return text
        pieces += [text[position : start.end()], _ESCAPE.sub(_escaped, name)]
        position = stop.start()


def _mend_keys(text: bytes) -> bytes:
    """Put back the quote before or behind a key of an event."""
    text = _NO_OPENING_QUOTE.sub(rb'\1"\2"\3', text)
    return _NO_CLOSING_QUOTE.sub(rb'\1"\2"\3', text)


def _is_plain_event(text: bytes) -> bool:
    """Whether `text` is an event with a phase and with known keys only, each of them once."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return False
    keys = [key for key, _ in pairs]
    return len(set(keys)) == len(keys) and "ph" in keys and _EVENT_KEYS.issuperset(keys)


def _text_of(string: bytes) -> str:
    """The text of a JSON string, quotes included, whatever it holds."""
    text = string[1:-1].decode(errors="replace")
    return str(json.loads(string)) if _is_valid(string) else text
