import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perfdiag.profiler.sources.salvage import Salvaged, salvage
from perfdiag.trace_schemas.errors import InputError

CASES = Path(__file__).parents[3] / ".." / "shared" / "cases"

needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")


def event(**more: object) -> dict[str, object]:
    return {"ph": "X", "name": "gemm", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, **more}


def decoded(saved: Salvaged) -> list[Any]:
    return [json.loads(bytes(text)) for text in saved.events]


def counts(saved: Salvaged) -> dict[str, int]:
    return {notice.kind: notice.count for notice in saved.notices}


def message(saved: Salvaged, kind: str) -> str:
    return next(notice.message for notice in saved.notices if notice.kind == kind)


def listed(*texts: bytes) -> bytes:
    return b'{"schemaVersion": 1, "traceEvents": [' + b", ".join(texts) + b'], "traceName": "x"}'


def dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


GOOD = dumped(event())


# --- values and text ---


@pytest.mark.parametrize("word", ["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", "1e999"])
def test_nonfinite_word_becomes_null(word: str) -> None:
    """A bare word for NaN or Infinity is read as missing and counted."""
    saved = salvage(listed(b'{"ph": "C", "args": {"a": %s, "b": 1}}' % word.encode()), "t.json")
    assert decoded(saved) == [{"ph": "C", "args": {"a": None, "b": 1}}]
    assert counts(saved) == {"json.nonfinite": 1}


def test_nonfinite_word_inside_a_name_stays() -> None:
    """Text that spells a non-finite value is text."""
    saved = salvage(listed(b'{"ph": "X", "name": "x: NaN, inf", "ts": -Infinity}'), "t.json")
    assert decoded(saved) == [{"ph": "X", "name": "x: NaN, inf", "ts": None}]


def test_every_nonfinite_value_counts() -> None:
    """The count is of values, not of events, and metadata counts too."""
    text = b'{"x": [NaN, inf], "traceEvents": [{"ph": "C", "a": NaN, "b": -inf}]}'
    saved = salvage(text, "t.json")
    assert counts(saved) == {"json.nonfinite": 4}
    assert saved.metadata == {"x": b"[null, null]"}


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    """Bad bytes become U+FFFD; the count is of events."""
    bad = b'{"ph": "X", "name": "a\xff\xfeb", "cat": "\xe2\x82"}'
    saved = salvage(listed(bad, GOOD), "t.json")
    assert decoded(saved)[0] == {"ph": "X", "name": "a\ufffd\ufffdb", "cat": "\ufffd"}
    assert counts(saved) == {"text.invalid_utf8": 1}


def test_raw_control_characters_are_escaped() -> None:
    """A raw newline or NUL inside a string survives as text."""
    saved = salvage(listed(b'{"ph": "X", "name": "a\nb\x00"}'), "t.json")
    assert decoded(saved)[0]["name"] == "a\nb\0"
    assert counts(saved) == {"json.bad_escape": 1}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb"C:\Users\x", "C:\\Users\\x"),
        (rb"\x1b[0m", "\\x1b[0m"),
        (rb"\u12", "\\u12"),
        (rb"\ud800 alone", "\ufffd alone"),
        (rb"\ud83d\ude00 \n", "\U0001f600 \n"),
    ],
)
def test_invalid_escapes_are_mended(raw: bytes, text: str) -> None:
    """A backslash that starts no escape is a backslash; half a surrogate pair is replaced."""
    saved = salvage(listed(b'{"ph": "X", "name": "%s", "ts": NaN}' % raw), "t.json")
    assert decoded(saved)[0]["name"] == text


def test_an_event_altered_twice_counts_once() -> None:
    """Bad bytes and bad escapes in one event are one altered event."""
    saved = salvage(listed(b'{"ph": "X", "name": "\xff\x01\\q"}'), "t.json")
    assert sum(counts(saved).values()) == 1


# --- entries that are no events ---


def test_entries_that_are_no_objects_are_skipped() -> None:
    """Null, text, numbers and lists among the events are counted, with the first place."""
    saved = salvage(listed(GOOD, b"null", b'"x"', b"12", b"[1]", b"{}", GOOD), "t.json")
    assert decoded(saved) == [event(), {}, event()]
    assert (saved.skipped, counts(saved)) == (4, {"event.skipped": 4})
    offset = listed(GOOD, b"null").index(b"null")
    assert f"byte {offset} (event 1)" in message(saved, "event.skipped")


def test_surplus_and_missing_commas_lose_nothing() -> None:
    """Commas that are missing or doubled are reported; all events stay."""
    saved = salvage(b"[" + GOOD + GOOD + b",," + GOOD + b",]", "t.json")
    assert decoded(saved) == [event()] * 3
    assert counts(saved) == {"input.corrupt": 2}


# --- truncation ---


@pytest.mark.parametrize(
    "tail", [b"", b", ", b", {", b', {"ph": "X", "na', b', {"ph": "X"', b", nu"]
)
def test_cut_in_the_list_keeps_complete_events(tail: bytes) -> None:
    """Whatever the last bytes are, complete events stay and the cut is an error."""
    text = b'{"traceEvents": [' + GOOD + b"," + GOOD + tail
    saved = salvage(text, "t.json")
    assert decoded(saved) == [event()] * 2
    (notice,) = saved.notices
    assert (notice.kind, notice.severity) == ("input.truncated", "error")
    assert f"byte {len(text.rstrip())}" in notice.message


def test_padding_with_nul_is_a_cut() -> None:
    """A tail of NUL bytes, as a crashed file system leaves it, is no text."""
    text = b'{"traceEvents": [' + GOOD + b', {"ph": "X", "nam'
    saved = salvage(text + b"\0" * 100_000, "t.json")
    assert decoded(saved) == [event()]
    assert f"byte {len(text)}" in message(saved, "input.truncated")


def test_padding_behind_a_whole_document_is_reported() -> None:
    """NUL bytes behind the end cost no event, but are said."""
    saved = salvage(listed(GOOD) + b"\0" * 10, "t.json")
    assert decoded(saved) == [event()]
    assert counts(saved) == {"input.corrupt": 1}


def test_cut_in_metadata_behind_the_events() -> None:
    """The events and the metadata before the cut stay."""
    saved = salvage(b'{"traceEvents": [' + GOOD + b'], "a": 1, "b": {"c": [1, 2', "t.json")
    assert decoded(saved) == [event()]
    assert saved.metadata == {"a": b"1"}
    assert counts(saved) == {"input.truncated": 1}


def test_cut_before_the_events_is_refused() -> None:
    """Without the list of events there is nothing to report on."""
    with pytest.raises(InputError, match=r"t\.json \(byte 29\): ends before its list of events"):
        salvage(b'{"schemaVersion": 1, "dev": [', "t.json")


# --- damage inside an event ---


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{"device": "cpu", "dtype": "f32"}(1): f', '{"device": "cpu", "dtype": "f32"}(1): f'),
        (b'L("a", "b")\n(1)', 'L("a", "b")\n(1)'),
        (b'"', '"'),
        (b"dir\\", "dir\\"),
    ],
)
def test_quotes_inside_a_name_are_mended(raw: bytes, name: str) -> None:
    """The next key of the event tells where the name ends."""
    bad = b'{"ph": "X", "name": "%s", "ts": 1, "args": {"k": 2}}' % raw
    saved = salvage(listed(GOOD, bad, bad, GOOD), "t.json")
    mended = {"ph": "X", "name": name, "ts": 1, "args": {"k": 2}}
    assert decoded(saved) == [event(), mended, mended, event()]
    assert (saved.skipped, counts(saved)) == (0, {"json.bad_escape": 2})


@pytest.mark.parametrize("key", [b'tid"', b'"tid'])
def test_a_lost_quote_of_a_key_is_put_back(key: bytes) -> None:
    """A known key that lost a quote can be nothing else."""
    saved = salvage(listed(b'{"ph": "X", %s: 7, "ts": 1}' % key, GOOD), "t.json")
    assert decoded(saved) == [{"ph": "X", "tid": 7, "ts": 1}, event()]
    assert counts(saved) == {"json.bad_escape": 1}


@pytest.mark.parametrize(
    "bad",
    [
        b'{"ph": "X", "name": "a", "weird": 1, "args": {"k": "x "y" z"}}',
        b'{"ph": "X", "name": "a "b", "ph": "i", "ts": 1}',
        b'{"ph": "X", "name" 1}',
        b'{"ph": "X", "ts": what}',
        b'{"ph": "X", "ts": 1',
        b'{"ph": "X", "args": {"a": [1}',
    ],
)
def test_damage_that_would_need_a_guess_costs_one_event(bad: bytes) -> None:
    """What cannot be mended is skipped, alone, with its place."""
    text = listed(GOOD, bad, GOOD, GOOD)
    saved = salvage(text, "t.json")
    assert decoded(saved) == [event()] * 3
    assert counts(saved) == {"event.skipped": 1}
    assert f"byte {text.index(bad)} (event 1)" in message(saved, "event.skipped")
    assert set(saved.metadata) == {"schemaVersion", "traceName"}


def test_damage_in_the_last_event_keeps_the_metadata() -> None:
    """The end of the list is found behind damage."""
    saved = salvage(listed(GOOD, b'{"ph": "X", "args": {"a": [{"b" 1}], "c": 2}}'), "t.json")
    assert decoded(saved) == [event()]
    assert saved.skipped == 1
    assert set(saved.metadata) == {"schemaVersion", "traceName"}


def test_objects_inside_a_damaged_event_are_no_events() -> None:
    """Reading takes up at the next event, not at an object in the list of arguments."""
    bad = b'{"ph": "X", "args": {"x" [{"name": 1}, {"id": 2}]}}'
    saved = salvage(listed(bad, GOOD), "t.json")
    assert decoded(saved) == [event()]
    assert saved.skipped == 1


def test_a_closing_bracket_among_events_does_not_end_the_list() -> None:
    """A stray bracket with events behind it is damage."""
    saved = salvage(b"[" + GOOD + b",]," + GOOD + b"]", "t.json")
    assert decoded(saved) == [event()] * 2
    assert "input.corrupt" in counts(saved)


def test_an_event_closed_too_early_does_not_end_the_list() -> None:
    """What goes on with a key of an event is not metadata."""
    saved = salvage(listed(GOOD, b'{"ph": "X", "ts": 1}], "dur": 3}', GOOD), "t.json")
    assert decoded(saved) == [event(), {"ph": "X", "ts": 1}, event()]
    assert counts(saved) == {"input.corrupt": 1}


def test_deep_events_are_read() -> None:
    """Nesting beyond what one pattern takes is read token by token."""
    deep = event(args={"a": json.loads("[" * 40 + "]" * 40)})
    assert decoded(salvage(listed(dumped(deep), GOOD), "t.json")) == [deep, event()]


def test_nesting_that_would_overflow_the_stack_is_skipped() -> None:
    """An event that no decoder takes costs one event."""
    deep = b'{"ph": "X", "a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    saved = salvage(listed(deep, GOOD), "t.json")
    assert decoded(saved) == [event()]
    assert saved.skipped == 1


# --- the document ---


def test_damaged_metadata_behind_the_events_costs_no_event() -> None:
    """Metadata that can still be read is kept, even behind the damage."""
    text = (
        b'{"traceEvents": [' + GOOD + b'], "a": 1, "INFO": ["x {"id": 1}", "y"],'
        b' "baseTimeNanoseconds": 5}'
    )
    saved = salvage(text, "t.json")
    assert decoded(saved) == [event()]
    assert saved.metadata == {"a": b"1", "baseTimeNanoseconds": b"5"}
    assert counts(saved) == {"json.metadata_dropped": 1}
    offset = text.index(b'["x')
    assert f"byte {offset}" in message(saved, "json.metadata_dropped")


def test_damaged_metadata_before_the_events_costs_no_event() -> None:
    """The list of events is looked for behind the damage."""
    saved = salvage(b'{"a": 1, "INFO": "x "y" z", "traceEvents": [' + GOOD + b"]}", "t.json")
    assert decoded(saved) == [event()]
    assert counts(saved) == {"json.metadata_dropped": 1}


def test_a_bare_list_of_events() -> None:
    """A list without an object around it is a trace."""
    saved = salvage(b"\xef\xbb\xbf\n[" + GOOD + b",\n" + GOOD + b"]\n", "t.json")
    assert decoded(saved) == [event()] * 2
    assert (saved.metadata, saved.notices) == ({}, ())


def test_a_second_document_is_reported() -> None:
    """What follows the end of the document is not silently ignored."""
    first = listed(GOOD)
    saved = salvage(first + b"\n" + listed(GOOD, GOOD), "t.json")
    assert decoded(saved) == [event()]
    assert f"byte {len(first) + 1}, where another document starts" in message(
        saved, "input.corrupt"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a": 1, "b": 2, "c": [3]}', "with keys a, b, c, but no traceEvents"),
        (b"{}", "without keys but no traceEvents"),
        (b'{"traceEvents": null}', "'traceEvents' is no list"),
        (b"[1, 2]", "a JSON list of 2 entries, none of them with 'ph'"),
        (b'[{"op": 1}]', "a JSON list of 1 entries, none of them with 'ph'"),
        (b"hello", "is no JSON document"),
        (b" \0\0", "is empty"),
    ],
)
def test_json_that_is_no_trace_is_refused(text: bytes, problem: str) -> None:
    """The refusal says what the document is instead."""
    with pytest.raises(InputError, match=r"^t\.json") as caught:
        salvage(text, "t.json")
    assert problem in str(caught.value)


def test_memoryviews_are_taken() -> None:
    """Mapped files are salvaged without a copy."""
    saved = salvage(memoryview(listed(GOOD, b"null")), "t.json")
    assert decoded(saved) == [event()]


# --- properties ---

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.none() | st.booleans() | NUMBERS | st.text()
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)
EVENTS = st.lists(
    st.builds(
        lambda name, ts, args: event(name=name, ts=ts, args=args),
        st.text(),
        NUMBERS,
        st.dictionaries(st.text(min_size=12), NESTED, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


def laid_out(events: Sequence[object], indent: int | None) -> tuple[bytes, list[tuple[int, int]]]:
    """A list of events as text, and where each of them lies in it."""
    text = b"["
    spans: list[tuple[int, int]] = []
    for entry in events:
        start = len(text) + (1 if spans else 0)
        one = json.dumps(entry, ensure_ascii=False, indent=indent).encode()
        text += (b"," if spans else b"") + one
        spans.append((start, start + len(one)))
    return text + b"]", spans


@given(EVENTS, st.dictionaries(st.text(), NESTED, max_size=3), st.booleans())
@settings(deadline=None)
def test_valid_json_is_read_as_json_reads_it(
    events: list[Any], metadata: dict[str, Any], ascii_only: bool
) -> None:
    """On a healthy document nothing is changed and nothing is reported."""
    document = {**metadata, "traceEvents": events}
    saved = salvage(json.dumps(document, ensure_ascii=ascii_only).encode(), "t.json")
    del document["traceEvents"]
    assert decoded(saved) == events
    assert {key: json.loads(value) for key, value in saved.metadata.items()} == document
    assert (saved.notices, saved.skipped) == ((), 0)


@given(EVENTS, st.sampled_from([None, 1]), st.data())
@settings(deadline=None)
def test_a_cut_anywhere_keeps_every_complete_event(
    events: list[Any], indent: int | None, data: st.DataObject
) -> None:
    """All events that end before the cut come back, and only they."""
    text, spans = laid_out(events, indent)
    cut = data.draw(st.integers(1, len(text) - 1))
    saved = salvage(text[:cut], "t.json")
    assert decoded(saved) == [e for e, (_, stop) in zip(events, spans, strict=True) if stop <= cut]
    assert counts(saved) == {"input.truncated": 1}


@given(EVENTS, st.binary(min_size=1, max_size=20), st.sampled_from([None, 1]), st.data())
@settings(deadline=None)
def test_garbage_without_braces_costs_one_event(
    events: list[Any], garbage: bytes, indent: int | None, data: st.DataObject
) -> None:
    """Garbage inside one event, without an opening brace, leaves all others as they are."""
    assume(len(events) > 1)  # what was the only event may be an event no more: no trace then
    text, spans = laid_out(events, indent)
    hit = data.draw(st.integers(0, len(events) - 1))
    at = data.draw(st.integers(spans[hit][0] + 1, spans[hit][1] - 1))
    saved = salvage(text[:at] + garbage.replace(b"{", b"(") + text[at:], "t.json")
    found = decoded(saved)
    assert found[:hit] == events[:hit]
    behind = events[hit + 1 :]
    assert found[len(found) - len(behind) :] == behind


@given(EVENTS, st.binary(max_size=40) | st.text('{}[]",:ph\\ 1').map(str.encode), st.data())
@settings(deadline=None)
def test_any_garbage_anywhere_keeps_what_lies_before(
    events: list[Any], garbage: bytes, data: st.DataObject
) -> None:
    """The events before the damage come back, whatever the damage is."""
    text, spans = laid_out(events, None)
    at = data.draw(st.integers(1, len(text)))
    before = [e for e, (_, stop) in zip(events, spans, strict=True) if stop <= at]
    try:
        saved = salvage(text[:at] + garbage + text[at:], "t.json")
    except InputError:
        assert not before  # nothing is left that shows it to be a trace
    else:
        assert decoded(saved)[: len(before)] == before


@given(st.binary(max_size=200) | st.text('{}[]",:ph\\ 1\n').map(str.encode))
@settings(deadline=None)
def test_any_bytes_are_read_or_refused(garbage: bytes) -> None:
    """Whatever comes back is valid JSON."""
    for text in (garbage, b"[" + garbage, b'{"traceEvents": [' + garbage):
        try:
            saved = salvage(text, "t.json")
        except InputError:
            continue
        assert all(isinstance(entry, dict) for entry in decoded(saved))
        for value in saved.metadata.values():
            json.loads(value)


# --- inputs made from public bug reports ---


@needs_cases
@pytest.mark.parametrize(
    ("name", "events", "kinds"),
    [
        ("01-nonfinite-literals/inf.json", 15, {"json.nonfinite": 1}),
        ("01-nonfinite-literals/nan.json", 16, {"json.nonfinite": 3}),
        ("02-truncated-json/cut-mid-event.json", 21, {"input.truncated": 1}),
        ("02-truncated-json/cut-after-comma.json", 26, {"input.truncated": 1}),
        ("04-unescaped-quotes/quotes.json", 12, {"json.bad_escape": 2}),
        ("04-unescaped-quotes/lost-quote.json", 10, {"json.bad_escape": 1}),
        (
            "05-invalid-utf8-and-control/trace.json",
            13,
            {"text.invalid_utf8": 2, "json.bad_escape": 1},
        ),
        ("07-empty-event-objects/trace.json", 16, {"event.skipped": 2}),
        ("08-broken-metadata-tail/trace.json", 13, {"json.metadata_dropped": 1}),
    ],
)
def test_reported_damage(name: str, events: int, kinds: dict[str, int]) -> None:
    """Events and counts of the damaged files that users have reported."""
    saved = salvage((CASES / name).read_bytes(), name)
    assert (len(decoded(saved)), counts(saved)) == (events, kinds)
