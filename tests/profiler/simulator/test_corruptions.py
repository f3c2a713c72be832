"""Damage to written traces."""

import gzip
import json
from functools import cache
from typing import Any

import msgspec
import pytest

from perfdiag.profiler.simulator.corruptions import CORRUPTIONS, REFUSED, corrupt
from perfdiag.profiler.simulator.damage import FEW
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.families import DenseSize
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import TraceOptions, kineto_json
from perfdiag.profiler.simulator.platforms import platform_named
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.trace_events import DEVICE, few, is_device, share
from perfdiag.trace_schemas.notices import NOTICE_KINDS

Event = dict[str, Any]


@cache
def traces() -> tuple[bytes, ...]:
    """Of two ranks."""
    spec = JobSpec(DenseSize(2, 128, 256, 1, 4), "ddp", 2, steps=2, optimizer="fused")
    platform = platform_named("h100")
    job = build_job(spec)
    events = simulate(job, platform, 1)
    return tuple(kineto_json(one, job, platform, TraceOptions()) for one in events.ranks)


def events_of(data: bytes) -> list[Event]:
    found: list[Event] = json.loads(data)["traceEvents"]
    return found


def damaged(name: str) -> list[list[Event]]:
    return [events_of(one) for one in corrupt(name, traces())]


def device(events: list[Event]) -> list[Event]:
    return [one for one in events if one.get("cat") in DEVICE]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_damage_is_done_and_always_the_same(name: str) -> None:
    """Every rank's trace is another one afterwards, but the first where clocks are compared."""
    first, again = corrupt(name, traces()), corrupt(name, traces())
    assert first == again
    if name in ("skewed_clocks", "drifting_clocks"):
        assert events_of(first[0]) == events_of(traces()[0])
    changed = zip(first[1:], traces()[1:], strict=False) if len(first) > 1 else [(first[0], b"")]
    assert all(one != other for one, other in changed)


@pytest.mark.parametrize("one", CORRUPTIONS.values(), ids=lambda one: one.id)
def test_expected_notices_exist(one: Any) -> None:
    """Notices that are asked for are kinds that there are."""
    assert [kind for kind in one.notices if kind not in NOTICE_KINDS and kind != REFUSED] == []


def test_few_are_spread_over_all() -> None:
    """So many events of a sort, none of them twice."""
    places = few(is_device, FEW)(events_of(traces()[0]))
    assert len(set(places)) == FEW
    assert places == sorted(places)


def test_a_share_is_about_as_large() -> None:
    """A share of all events of a sort."""
    events = events_of(traces()[0])
    part = len(share(is_device, 0.33)(events)) / len(device(events))
    assert part == pytest.approx(0.33, abs=0.12)
    assert len(share(is_device, 1.0)(events)) == len(device(events))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("durations_hour", lambda one: one["dur"] == 3.6e9),
        ("durations_wrapped", lambda one: one["dur"] > 1.8e16),
        ("durations_covering", lambda one: one["dur"] == 2e5),
        ("durations_negative", lambda one: one["dur"] < 0),
        ("times_zero", lambda one: one["ts"] == 0),
    ],
)
def test_seven_records_are_wrong(name: str, wrong: Any) -> None:
    """Seven device records of each rank, and none before."""
    assert not any(wrong(one) for one in device(events_of(traces()[0])))
    assert [sum(map(wrong, device(events))) for events in damaged(name)] == [FEW, FEW]


def test_the_last_records_are_lost() -> None:
    """Device records end early; before that all are there."""
    before, after = device(events_of(traces()[0])), device(damaged("lost_device_tail")[0])
    end = max(one["ts"] for one in after)
    assert len(after) < 0.7 * len(before)
    assert after == [one for one in before if one["ts"] <= end]


def test_renamed_collectives_describe_nothing() -> None:
    """No name of a known library, no description, but still the link to their launch."""
    kernels = [one for one in damaged("renamed_collectives")[0] if one.get("cat") == "kernel"]
    assert not any("nccl" in one["name"].lower() for one in kernels)
    assert not any("Collective name" in one["args"] for one in kernels)
    renamed = [one for one in kernels if one["name"].startswith("fabricExchange")]
    assert renamed
    assert all("correlation" in one["args"] for one in renamed)


def test_clocks_are_seconds_apart() -> None:
    """Only the second rank's times are moved, all of them by as much."""
    before, after = events_of(traces()[1]), damaged("skewed_clocks")[1]
    moved = {round(b["ts"] - a["ts"], 2) for a, b in zip(before, after, strict=True) if "ts" in a}
    assert moved == {3e6}


def test_clocks_drift() -> None:
    """What happens later is moved further, 200 us in a second."""
    before, after = events_of(traces()[1]), damaged("drifting_clocks")[1]
    start, end = (f(one["ts"] for one in before if "ts" in one) for f in (min, max))
    last = next(at for at, one in enumerate(before) if one.get("ts") == end)
    assert after[last]["ts"] - end == pytest.approx(2e-4 * (end - start), abs=0.01)


def test_merged_ranks_are_one_file() -> None:
    """All events of both, with the metadata of the first."""
    (merged,) = corrupt("merged_ranks", traces())
    assert len(events_of(merged)) == sum(len(events_of(one)) for one in traces())


def test_cut_files_are_prefixes() -> None:
    """What is left is the beginning; of the last of them all events are whole."""
    for name in ("cut_at_start", "cut_in_middle", "cut_after_events"):
        (first, _) = corrupt(name, traces())
        assert traces()[0].startswith(first)
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(first)
    assert events_of(first + b"]}") == events_of(traces()[0])


def test_half_an_archive_does_not_unpack() -> None:
    """Half of a gzip file."""
    (first, _) = corrupt("cut_archives", traces())
    with pytest.raises(EOFError):
        gzip.decompress(first)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("not_a_number", b":NaN"),
        ("infinity", b":-Infinity"),
        ("not_utf8", b'\xe2\x82"'),
        ("bad_escapes", b"\\q\n"),
    ],
)
def test_words_that_json_does_not_know(name: str, word: bytes) -> None:
    """Seven of them in each file, which no strict reader takes."""
    (first, _) = corrupt(name, traces())
    assert first.count(word) == FEW
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        msgspec.json.decode(first, type=dict[str, Any])
