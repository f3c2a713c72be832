"""Chrome trace JSON: exact times, odd layouts, pieces, and entries that are no complete events."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest
from plain_events import Event, document, event, host

from perfdiag.profiler.sources import chrome_json
from perfdiag.profiler.sources.chrome_json import (
    ChromeTrace,
    Interner,
    nanoseconds,
    read_chrome_json,
    read_salvaged,
)
from perfdiag.profiler.sources.chrome_others import Others, read_others
from perfdiag.trace_schemas.recording import Int32s


def starts(trace: ChromeTrace) -> list[int]:
    return [ts for piece in trace.pieces for ts in piece.ts_ns.tolist()]


def times(*pairs: tuple[str, str], unit_ns: int = 1000) -> list[tuple[int, int]]:
    """Start and duration of events whose times are given as JSON text."""
    events = ",".join(
        f'{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}' for ts, dur in pairs
    )
    trace = read_chrome_json(f'{{"traceEvents":[{events}]}}'.encode(), "trace.json", unit_ns)
    return [
        pair
        for piece in trace.pieces
        for pair in zip(piece.ts_ns.tolist(), piece.dur_ns.tolist(), strict=True)
    ]


def read_all(*entries: Event) -> tuple[ChromeTrace, Others]:
    trace = read_chrome_json(document(*entries), "trace.json")
    for _ in trace.pieces:
        pass
    return trace, read_others(trace, 1000)


# ---------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("0.001", 1),
        ("12.345", 12_345),
        ("-3.5", -3_500),
        ("1e3", 1_000_000),
        ("4194304000000.001", 4_194_304_000_000_001),
        ("1751328000123456", 1_751_328_000_123_456_000),
        ("1751328000123456.789", 1_751_328_000_123_456_789),
        ("1751328000123456.001", 1_751_328_000_123_456_001),
        ('"1751328000123456.789"', 1_751_328_000_123_456_789),
        ('"12.345"', 12_345),
        ('"17"', 17_000),
    ],
)
def test_every_way_to_write_a_time_is_exact(text: str, ns: int) -> None:
    """Relative or since 1970, whole or with decimals, as number or as text."""
    assert times((text, "2.25")) == [(ns, 2250)]
    assert times((text, "2.25"), ("5", '"1"')) == [(ns, 2250), (5000, 1000)]


@pytest.mark.parametrize(
    ("text", "unit_ns", "ns"),
    [
        ("1751328000123456789", 1, 1_751_328_000_123_456_789),
        ("1751328000123456789.0", 1, 1_751_328_000_123_456_789),
        ("12.6", 1, 13),
        ("1751328000123.456789", 1_000_000, 1_751_328_000_123_456_789),
        ("0.000001", 1_000_000, 1),
    ],
)
def test_other_units_are_exact_too(text: str, unit_ns: int, ns: int) -> None:
    """Nanoseconds and milliseconds since 1970 do not fit a double."""
    assert times((text, "0"), unit_ns=unit_ns) == [(ns, 0)]


def test_doubles_agree_with_decimals_wherever_they_are_used() -> None:
    """A million random times below the limit come out as exact arithmetic has them."""
    rng = np.random.default_rng(1)
    whole = rng.integers(0, 1 << 52, 100_000) // 1000
    thousandths = rng.integers(0, 1000, 100_000)
    texts = [f"{w}.{t:03d}" for w, t in zip(whole.tolist(), thousandths.tolist(), strict=True)]
    found = nanoseconds([float(text) for text in texts], 1000)
    assert found is not None
    assert found.tolist() == [int(Decimal(text) * 1000) for text in texts]


@pytest.mark.parametrize(
    "values",
    [
        [1.7e15],
        [float("nan")],
        [float("inf"), 1.0],
        ["12.5"],
        [[1]],
        [None],
        [1, 1 << 70],
        [1 << 62],
        [True, {}],
    ],
)
def test_what_a_double_cannot_hold_is_left_to_decimals(values: list[Any]) -> None:
    """The quick way declines; it never rounds in silence."""
    assert nanoseconds(values, 1000) is None


@pytest.mark.parametrize(
    "text",
    ['"NaN"', '"Infinity"', '"1e99999999"', "1e300", '"-1e40"', "99999999999999999999999"],
)
def test_times_that_no_clock_can_show_are_counted(text: str) -> None:
    """The event is left out, its neighbour kept, and both are entries."""
    data = f'[{{"ph":"X","ts":{text},"dur":1}},{{"ph":"X","ts":5,"dur":1}}]'.encode()
    trace = read_chrome_json(data, "trace.json")
    assert [piece.ts_ns.tolist() for piece in trace.pieces] == [[5000]]
    assert (trace.entries, trace.out_of_range, trace.skipped) == (2, 1, 0)


@pytest.mark.parametrize("bad", ["abc", "", [1], {"a": 1}, True])
def test_a_time_that_is_no_number_costs_one_event(bad: object) -> None:
    """In a document of exact times as in one of short ones."""
    for good in (5, "1751328000123456.789"):
        trace = read_chrome_json(document(host("a", good, 1), host("b", bad, 1)), "trace.json")
        kept = sum(len(piece.ts_ns) for piece in trace.pieces)
        assert (kept + trace.skipped, trace.entries) == (2, 2)
        assert kept == (2 if bad is True and good == 5 else 1)


# ---------------------------------------------------------------- layouts

EVENTS = '[{"ph":"X","name":"a","ts":1,"dur":2,"args":{"x":[{"ph":1}]}},{"ph":"X","ts":2,"dur":3}]'


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (EVENTS, set()),
        (f" \n {EVENTS} \n", set()),
        (f"\ufeff{EVENTS}", set()),
        (f'{{"traceEvents":{EVENTS}}}', set()),
        (f'{{"a":1,"traceEvents":{EVENTS}}}', {"a"}),
        (f'{{"traceEvents":{EVENTS},"b":2}}', {"b"}),
        (f'{{"a":1, "traceEvents" : {EVENTS} , "b":{{"c":[1,2]}} }}\n', {"a", "b"}),
        (f'{{"a":[{{"ph":"X"}}],"traceEvents":{EVENTS}}}', {"a"}),
        (f'{{"a":"\\"traceEvents\\": [","traceEvents":{EVENTS}}}', {"a"}),
    ],
)
def test_metadata_may_stand_on_either_side(text: str, keys: set[str]) -> None:
    """Before the events, behind them, on both sides, or nowhere."""
    trace = read_chrome_json(text.encode(), "trace.json")
    assert starts(trace) == [1000, 2000]
    assert set(trace.metadata) == keys
    assert trace.entries == 2


def test_events_may_begin_with_any_key() -> None:
    """Each event has an order of keys of its own."""
    events = [{"name": "a", "ph": "X", "ts": 1, "dur": 1}, {"dur": 1, "ts": 2, "ph": "X"}]
    data = json.dumps({"traceEvents": events, "z": {"name": "H100"}}).encode()
    assert starts(read_chrome_json(data, "trace.json")) == [1000, 2000]


def test_metadata_that_looks_like_events_is_not_read_as_such() -> None:
    """The quick way gives up, or is right; event by event it is always right."""
    data = (
        f'{{"a":[{{"ph":"X"}}],"traceEvents":{EVENTS},"b":[{{"ph":"X","ts":7,"dur":1}}]}}'.encode()
    )
    with pytest.raises(msgspec.DecodeError):
        starts(read_chrome_json(data, "trace.json"))
    saved = read_salvaged(data, "trace.json")
    assert starts(saved) == [1000, 2000]
    assert set(saved.metadata) == {"a", "b"}


# ---------------------------------------------------------------- pieces


def many(n: int) -> bytes:
    nested = {"list": [{"a": 1}, {"b": 2}], "text": 'a "}, {"ph": b'}
    return document(
        *(event("cpu_op", f"op {i % 3}", i + 0.25, 1.5, args=nested | {"i": i}) for i in range(n)),
        displayTimeUnit="ms",
    )


def texts(trace: ChromeTrace, codes: Int32s) -> list[str]:
    strings = trace.strings.texts()
    return [strings[code] for code in codes.tolist()]


@pytest.mark.parametrize("size", [1, 100, 1000, 4096])
def test_pieces_hold_what_one_piece_holds(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """However small the pieces are cut, the events are the same."""
    data = many(100)
    once = read_chrome_json(data, "trace.json")
    (whole,) = once.pieces
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", size)
    trace = read_chrome_json(data, "trace.json")
    pieces = list(trace.pieces)
    assert len(pieces) > 2
    assert np.concatenate([p.ts_ns for p in pieces]).tolist() == whole.ts_ns.tolist()
    assert [texts(trace, p.name) for p in pieces] == [
        texts(once, part)
        for part in np.split(whole.name, np.cumsum([len(p.name) for p in pieces])[:-1])
    ]
    assert [bytes(a) for p in pieces for a in p.args] == [bytes(a) for a in whole.args]
    assert trace.entries == 100


def test_exact_times_may_begin_in_any_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first piece of short times, then one that needs decimals, then bad ones."""
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", 1)
    long = "1751328000123456.789"
    trace = read_chrome_json(
        document(*(host("a", ts, 1) for ts in (1.5, long, 2, "abc", long, "NaN"))), "trace.json"
    )
    found = [ts for piece in trace.pieces for ts in piece.ts_ns.tolist()]
    assert found == [1500, 1_751_328_000_123_456_789, 2000, 1_751_328_000_123_456_789]
    assert (trace.entries, trace.skipped, trace.out_of_range) == (6, 1, 1)


def test_damage_inside_a_piece_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick reader gives up where it meets it; event by event all others are read."""
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", 1000)
    damaged = many(100).replace(b'"ts": 50.25', b'"ts": ]50.25')
    with pytest.raises(msgspec.DecodeError):
        list(read_chrome_json(damaged, "trace.json").pieces)
    saved = read_salvaged(damaged, "trace.json")
    assert sum(len(piece.ts_ns) for piece in saved.pieces) >= 99


# ---------------------------------------------------------------- texts


def test_names_are_numbered_in_the_order_of_first_sight() -> None:
    """A missing name is empty text, and what is no text becomes some."""
    interner = Interner()
    assert interner.codes(["b", "b", None]).tolist() == [1, 1, 0]
    assert interner.codes(["a", ["x", 1], 7, "b"]).tolist() == [4, 3, 2, 1]
    assert interner.texts() == ["", "b", "7", '["x", 1]', "a"]
    assert (interner.code("a"), interner.code("never")) == (4, -1)


# ---------------------------------------------------------------- other entries


def side(ph: str, ts: Any, name: str = "a", **more: Any) -> Event:
    return {"ph": ph, "name": name, "cat": "cpu_op", "pid": 1, "tid": 1, "ts": ts, **more}


def spans(trace: ChromeTrace, others: Others) -> list[tuple[str, int, int]]:
    texts = trace.strings.texts()
    return sorted(
        (texts[name], ts, dur)
        for piece in others.pieces
        for name, ts, dur in zip(
            piece.name.tolist(), piece.ts_ns.tolist(), piece.dur_ns.tolist(), strict=True
        )
    )


def test_begins_and_ends_pair_on_their_thread() -> None:
    """Last in, first out, whatever another thread does in between."""
    other = side("B", 1, "other") | {"tid": 2}, side("E", 9, "other") | {"tid": 2}
    trace, others = read_all(
        side("B", 0, "outer"), other[0], side("B", 2, "inner"), side("E", 5), other[1], side("E", 8)
    )
    assert spans(trace, others) == [
        ("inner", 2000, 3000),
        ("other", 1000, 8000),
        ("outer", 0, 8000),
    ]
    assert not any(notice.count for notice in others.notices)


def test_a_pair_without_length_closes_itself() -> None:
    """At equal times the order of the file decides, not the kind of the entry."""
    trace, others = read_all(
        side("B", 0, "outer"), side("B", 5, "empty"), side("E", 5), side("E", 9)
    )
    assert spans(trace, others) == [("empty", 5000, 0), ("outer", 0, 9000)]


def test_pairs_may_stand_in_any_order_of_the_file() -> None:
    """Time decides where times differ."""
    trace, others = read_all(side("E", 9), side("B", 2, "b"), side("E", 5), side("B", 0, "a"))
    assert spans(trace, others) == [("a", 0, 9000), ("b", 2000, 3000)]


def test_an_asynchronous_id_may_be_used_again() -> None:
    """Each end closes the begin before it; category, id and process tell pairs apart."""
    trace, others = read_all(
        side("b", 0, "first", id=1),
        side("b", 1, "beside", id="0x2"),
        side("e", 5, id=1),
        side("b", 6, "second", id=1),
        side("e", 9, id=1),
        side("e", 12, id="0x2"),
    )
    assert spans(trace, others) == [
        ("beside", 1000, 11_000),
        ("first", 0, 5000),
        ("second", 6000, 3000),
    ]


def test_ends_and_begins_without_the_other_are_counted() -> None:
    """They are entries, and said to be left out."""
    trace, others = read_all(
        side("E", 0), side("B", 5), side("e", 1, id=1), side("b", 2, id=2), host("a", 0, 1)
    )
    (notice,) = [n for n in others.notices if n.count]
    assert (notice.kind, notice.count) == ("slice.unfinished", 4)
    assert (trace.entries, trace.skipped) == (5, 4)


def test_instants_keep_their_time() -> None:
    """Of every spelling; they come last, and are counted."""
    trace, others = read_all(side("i", 1.5), side("I", 2), side("R", 3), side("B", 0), side("E", 4))
    assert others.instants == 3
    assert others.pieces[-1].ts_ns.tolist() == [1500, 2000, 3000]
    assert trace.skipped == 0


def test_counters_become_timelines() -> None:
    """One for each process, name and key, in order of time; what is no number is a gap."""
    _, others = read_all(
        side("C", 5, "memory", args={"used": 2, "free": 8}),
        side("C", 1, "memory", args={"used": 1.5, "free": None}),
        side("C", 9, "memory", args={"used": "n/a", "free": True}),
        host("a", 0, 1),
    )
    found = {c.name: (c.ts_ns.tolist(), c.values.tolist()) for c in others.counters}
    assert found == {"memory used": ([1000, 5000], [1.5, 2.0]), "memory free": ([5000], [8.0])}


def test_names_of_threads_and_processes_are_read() -> None:
    """A process keeps every name that it was given, in the order of the file."""
    _, others = read_all(
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 1"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": " stream 7 "}},
        host("a", 0, 1),
    )
    assert others.process_names == {1: ["python", "rank 1"]}
    assert others.thread_names == {(1, 7): "stream 7"}


@pytest.mark.parametrize("phase", ["i", "C", "B", "n"])
@pytest.mark.parametrize("ts", [1e300, "x", None, [1]])
def test_an_entry_whose_time_cannot_be_shown_is_counted(phase: str, ts: object) -> None:
    """Instants, counters and pairs like complete events."""
    trace, others = read_all(side(phase, ts, args={"v": 1}), host("a", 0, 1))
    assert trace.skipped == 1
    assert others.instants == len(others.counters) == 0


def test_unknown_phases_are_said() -> None:
    """Those of newer formats are counted by name; flows only repeat what ids say."""
    trace, others = read_all(side("s", 1), side("f", 2), side("v", 3), side("w", 4), side("w", 5))
    (notice,) = [n for n in others.notices if n.count]
    assert (notice.kind, notice.count) == ("event.skipped", 3)
    assert "v, w" in notice.message
    assert trace.skipped == 3


def test_entries_without_phase_or_time_are_no_events() -> None:
    """Empty objects, and complete events that lack a time."""
    trace, _ = read_all({}, {"ph": "X", "ts": 5}, {"ph": "X", "dur": 5}, {"a": 1}, host("a", 0, 1))
    assert (trace.entries, trace.skipped, trace.bare_objects) == (5, 4, 4)


@pytest.mark.parametrize("odd", [[1], {"a": 1}, 1.5, None, True, "x"])
def test_a_process_may_be_anything(odd: object) -> None:
    """Whatever stands where an id belongs is an id, in every kind of entry."""
    entries = [
        {"ph": "M", "name": "thread_name", "pid": odd, "tid": odd, "args": {"name": "t"}},
        {"ph": "M", "name": "process_name", "pid": odd, "args": {"name": "p"}},
        {"ph": "C", "name": "c", "pid": odd, "ts": 1, "args": {"v": 1}},
        side("B", 0) | {"pid": odd, "tid": odd},
        side("E", 5) | {"pid": odd, "tid": odd},
        side("b", 0, id=odd) | {"pid": odd, "cat": odd},
        side("e", 5, id=odd) | {"pid": odd, "cat": odd},
    ]
    trace, others = read_all(*entries, host("a", 0, 1))
    assert [len(piece.ts_ns) for piece in others.pieces] == [2]
    assert trace.skipped == 0
