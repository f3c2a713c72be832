"""What is written to a canonical trace comes back from the trace processor, whatever it is."""

from collections import Counter as Bag
from dataclasses import replace

import numpy as np
import pytest

from perfdiag.profiler.facts_in_trace import facts_in_trace
from perfdiag.profiler.sources.perfetto import PerfettoOptions, read_perfetto
from perfdiag.profiler.trace_writer import write_trace
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import (
    ABSENT,
    ARG_TYPES,
    ArgColumn,
    Clock,
    Counter,
    Device,
    Int64s,
    Kind,
    Lane,
    ProcessGroup,
    Recording,
    Slices,
)

LANES = (
    Lane("1", "7", "worker", "thread"),
    Lane("1", "8", "worker", "thread"),  # threads of one name are two lanes
    Lane("python", "", "", "thread"),
    Lane("0", "7", "stream 7", "stream", 0, 7),
    Lane("1", "7", "stream 7", "stream", 1, 7),
    Lane("0", "20", "stream 20 \u2013 nccl", "stream", 0, 20),
    Lane("9", "9", "never used", "thread"),
)
NAMES = (
    "aten::mm",
    "",
    " ",
    "a.b[0].c",
    "\u65e5\u672c\u8a9e \U0001f525 \u0301",
    "line\nbreak\ttab\\ \"quoted\" 'single'",
    "void at::native::vectorized_elementwise_kernel<4, (lambda)#1>(int, T2)",
    "ProfilerStep#1",
    "NULL",
    "perfdiag.lane",
    "x" * 70_000,
    "cudaLaunchKernel",
    "Memcpy HtoD (Pinned -> Device)",
)
HUGE = (1 << 63) - 1
GROUPS = 6
"""Slices of one group have the same arguments, with values of their own."""


def times(rng: np.random.Generator, n: int, shape: str) -> tuple[Int64s, Int64s]:
    """(n,) starts and durations that make it hard to nest."""
    if shape == "crossing":
        return rng.integers(0, 200, n), rng.integers(0, 60, n)
    if shape == "deep":  # each inside the one before, a few with equal ends
        starts = np.arange(n) // 2
        return starts, 4 * n - 2 * starts
    if shape == "empty":
        return rng.integers(0, 5, n), np.zeros(n, np.int64)
    if shape == "back to back":
        starts = np.cumsum(rng.integers(0, 3, n))
        return starts, np.diff(starts, append=starts[-1] + 1)
    return rng.integers(0, 1 << 61, n), rng.integers(0, 1 << 61, n)


def column(rng: np.random.Generator, group: Int64s, name: str) -> ArgColumn:
    """Values of one argument for the slices of some groups."""
    rows = np.flatnonzero(np.isin(group, np.flatnonzero(rng.random(GROUPS) < 0.4)))
    if ARG_TYPES[name] is str:
        texts = ["", "BFloat16", "all reduce", "\u00e9" * 300, "a.b", '{"k": [1]}']
        return ArgColumn(rows, rng.choice(np.array(texts, object), len(rows)))
    return ArgColumn(rows, rng.choice([0, 1, -1, 1 << 40, HUGE, -HUGE - 1], len(rows)))


def make_slices(rng: np.random.Generator, n: int, shape: str) -> Slices:
    """Slices of every kind on every lane but the last."""
    ts_ns, dur_ns = times(rng, n, shape)
    ids = np.array([ABSENT, 0, 1, 2, 1 << 33, HUGE, -HUGE - 1])
    group = rng.integers(0, GROUPS, n)
    raw = [None, b"{}", b'{"External id": 7, "x.y": "\xc3\xa9"}', b'{"Input Dims": [[], [1]]}']
    return Slices(
        ts_ns=ts_ns,
        dur_ns=dur_ns,
        lane=rng.integers(0, len(LANES) - 1, n).astype(np.int32),
        name=rng.integers(0, len(NAMES), n).astype(np.int32),
        category=rng.integers(0, len(NAMES), n).astype(np.int32),
        kind=rng.integers(0, len(Kind), n).astype(np.int8),
        correlation=rng.choice(ids, n),
        external_id=rng.choice(ids, n),
        args={name: column(rng, group, name) for name in ARG_TYPES if name != "reason"},
        raw_args=[raw[i] for i in rng.integers(0, len(raw), n).tolist()],
    )


def make_recording(seed: int, n: int, shape: str) -> Recording:
    """A recording of n slices."""
    rng = np.random.default_rng(seed)
    slices = make_slices(rng, n, shape)
    aside = make_slices(rng, 5, "crossing")
    reasons = ArgColumn(np.arange(5), np.full(5, "timestamp.zero", object))
    return Recording(
        source="random.json",
        format="kineto",
        strings=NAMES,
        lanes=LANES,
        slices=slices,
        set_aside=replace(aside, args={**aside.args, "reason": reasons}),
        clock=Clock(1_700_000_000_000_000_123, 1_700_000_000_000_000_123, "exact"),
        counters=[
            Counter(
                "SM", "%", 0.01, "gauge", 0, np.array([0, 5, 5, 9]), np.array([0, 0.5, 1, 2.0])
            ),
            Counter("SM", "", 1.0, "backward", 1, np.array([3]), np.array([-1e300])),
            Counter("\u00b5s", "us", 1.0, "rate", ABSENT, np.array([4, 5]), np.array([1.0, 7.0])),
        ],
        devices=[Device(0, "H100", "nvidia", 132, 1 << 36), Device(1, "", "", 0, 0)],
        rank=3,
        world_size=8,
        host="node-1",
        groups=[ProcessGroup("0", "default_pg", 8, (0, 3)), ProcessGroup("1", "", 2, ())],
        notices=[Notice("timestamp.zero", "warning", 5, "Device records without time.")],
        events_read=n + 7,
        events_skipped=2,
        metadata={"a.b[0]": '"text"', "record_shapes": "1"},
        normalised=True,
    )


def written_and_read(recording: Recording) -> Recording:
    """The recording after its way through the trace processor."""
    facts = facts_in_trace(recording, [], [])
    data = b"".join(write_trace(recording, facts))
    return read_perfetto(data, "random.pftrace", PerfettoOptions(keep_args=True))


def rows(recording: Recording, slices: Slices) -> Bag[tuple[object, ...]]:
    """Each slice with all that is known of it, in no order."""
    args: list[list[tuple[str, object]]] = [[] for _ in range(len(slices))]
    for name in sorted(slices.args):
        values = slices.args[name]
        for row, value in zip(values.rows.tolist(), values.values.tolist(), strict=True):
            args[row].append((name, value))
    columns = (
        slices.ts_ns.tolist(),
        slices.dur_ns.tolist(),
        slices.lane.tolist(),
        [recording.strings[i] for i in slices.name.tolist()],
        [recording.strings[i] for i in slices.category.tolist()],
        slices.kind.tolist(),
        slices.correlation.tolist(),
        slices.external_id.tolist(),
        map(tuple, args),
        slices.raw_args or [None] * len(slices),
    )
    return Bag(zip(*columns, strict=True))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", ["crossing", "empty", "back to back", "huge"])
def test_every_slice_comes_back(shape: str, seed: int) -> None:
    """Start, duration, lane, names, ids and arguments are exact for all slices."""
    recording = make_recording(seed, 700, shape)
    read = written_and_read(recording)
    assert rows(read, read.slices) == rows(recording, recording.slices)


def test_deep_nesting_comes_back() -> None:
    """Recursion is no reason to lose a slice."""
    recording = make_recording(3, 3000, "deep")
    lane = np.zeros(3000, np.int32)
    kind = np.full(3000, Kind.PYTHON, np.int8)
    recording = replace(recording, slices=replace(recording.slices, lane=lane, kind=kind))
    read = written_and_read(recording)
    assert rows(read, read.slices) == rows(recording, recording.slices)


def test_what_was_set_aside_comes_back() -> None:
    """Events without a place in time keep their own times, reasons and arguments."""
    recording = make_recording(4, 20, "crossing")
    read = written_and_read(recording)
    assert rows(read, read.set_aside) == rows(recording, recording.set_aside)


def test_everything_around_the_slices_comes_back() -> None:
    """Lanes, devices, groups, clock, notices and counts are those that were written."""
    recording = make_recording(5, 50, "crossing")
    read = written_and_read(recording)
    for name in (
        "lanes",
        "devices",
        "groups",
        "clock",
        "rank",
        "world_size",
        "host",
        "notices",
        "events_read",
        "events_skipped",
        "metadata",
        "normalised",
    ):
        expected, found = getattr(recording, name), getattr(read, name)
        if isinstance(expected, tuple | list):
            found, expected = list(found), list(expected)
        assert found == expected, name


def test_counters_come_back() -> None:
    """Samples are exact, also several at one time."""
    recording = make_recording(6, 50, "crossing")
    read = written_and_read(recording)
    assert len(read.counters) == len(recording.counters)
    for found, expected in zip(read.counters, recording.counters, strict=True):
        plain = ("name", "unit", "scale", "semantics", "device")
        assert [getattr(found, n) for n in plain] == [getattr(expected, n) for n in plain]
        assert found.ts_ns.tolist() == expected.ts_ns.tolist()
        assert found.values.tolist() == expected.values.tolist()


def test_nothing_but_slices() -> None:
    """A recording that says nothing of its rank, clock or world is not given any."""
    recording = replace(
        make_recording(7, 3, "back to back"),
        rank=None,
        world_size=None,
        host="",
        clock=Clock(0, None, "none"),
        counters=[],
        devices=[],
        groups=[],
        notices=[],
        metadata={},
    )
    read = written_and_read(recording)
    assert (read.rank, read.world_size, read.host) == (None, None, "")
    assert read.clock == recording.clock
    assert (list(read.counters), list(read.devices), list(read.groups)) == ([], [], [])


def test_reading_twice_is_reading_once() -> None:
    """What was read back and written again reads back the same, row by row."""
    once = written_and_read(make_recording(8, 300, "crossing"))
    twice = written_and_read(once)
    for name in ("ts_ns", "dur_ns", "lane", "kind", "correlation", "external_id"):
        assert getattr(twice.slices, name).tolist() == getattr(once.slices, name).tolist()
    assert rows(twice, twice.slices) == rows(once, once.slices)
