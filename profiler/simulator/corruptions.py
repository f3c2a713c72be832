"""Damage to written traces as the field does it, and what an analysis should then do.

Every corruption takes the traces of all ranks of a job as Kineto JSON and gives damaged ones, the
same for the same input. What it damages is what tools, disks and people have been seen to damage;
the worst of it are the few records that nobody notices: seven of 55,423 durations turned a verdict
around in one report (github.com/AMD-AGI/Hyperloom/pull/1116).
"""

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from perfdiag.profiler.simulator.damage import (
    Event,
    changing,
    few,
    is_collective,
    is_device,
    is_host,
    is_launch,
    is_runtime,
    lacking,
    on_events,
    opened,
    share,
    written,
)

__all__ = ["CORRUPTIONS", "REFUSED", "Corruption", "Expected", "corrupt"]

Expected = Literal["stands", "withheld", "either"]

REFUSED = "refused"
"""In place of a kind of notice: the input is refused, and the error says why."""

FEW = 7
"""Records, where a few do the damage."""

TAIL = 0.4
"""Share of the device records that are lost where the end of them is."""

HOUR_US = 3.6e9
WRAPPED_US = 18_446_744_073_709_551.0
"""An end before the start, as an unsigned number of nanoseconds."""

SKEW_US = 3e6
DRIFT = 2e-4
"""How much faster one host's clock is than the one before: 200 ppm, twice what a crystal that
nobody disciplines is allowed."""


@dataclass(frozen=True, slots=True)
class Corruption:
    """A way in which traces are damaged.

    Attributes:
        id: for tables; `title`: for people.
        expected: `stands`: the verdict is the one on the whole traces; `withheld`: there is none;
            `either`: one of the two, by how much of the program is idle, for instance.
        notices: kinds of which one at least must be given, of any severity; none where the damage
            takes nothing that a verdict needs, or where the verdict itself says why there is none.
        change: from all ranks' traces to damaged ones, maybe fewer.
        ranks: least number of ranks that it makes sense for.
    """

    id: str
    title: str
    expected: Expected
    notices: tuple[str, ...]
    change: Callable[[Sequence[bytes]], list[bytes]]
    ranks: int = 1


def corrupt(name: str, traces: Sequence[bytes]) -> list[bytes]:
    """The traces of all ranks, damaged.

    Args:
        name: id of one of `CORRUPTIONS`.
        traces: Kineto JSON by rank.

    Raises:
        KeyError: there is no such corruption.
        msgspec.DecodeError: a trace is damaged already.
    """
    return CORRUPTIONS[name].change(traces)


def _each(change: Callable[[bytes], bytes]) -> Callable[[Sequence[bytes]], list[bytes]]:
    return lambda traces: [change(one) for one in traces]


def _events(
    change: Callable[[list[Event]], list[Event]],
) -> Callable[[Sequence[bytes]], list[bytes]]:
    return _each(on_events(change))


def _cut(part: float) -> Callable[[Sequence[bytes]], list[bytes]]:
    """Each file ends at a share of its bytes."""
    return _each(lambda data: data[: int(part * len(data))])


def _cut_archive(data: bytes) -> bytes:
    """A gzip file of which half was copied."""
    packed = gzip.compress(data, 1, mtime=0)
    return packed[: len(packed) // 2]


def _cut_tail(data: bytes) -> bytes:
    """All events are there, what follows them is not."""
    return data[: data.rindex(b"}") - 1].rsplit(b"]", 1)[0]


def _taking(us: float) -> Callable[[Event], Event]:
    return lambda event: {**event, "dur": us}


def _renamed(event: Event) -> Event:
    """A collective of a library that nobody knows, which describes nothing."""
    size = event["args"].get("Group size", 0)
    args = {k: v for k, v in event["args"].items() if k in _LINKS}
    return {**event, "name": f"fabricExchangeKernel_v{size}(FabricWork*)", "args": args}


_LINKS = ("External id", "correlation", "stream", "device", "context", "queued", "grid", "block")


def _without_arg(name: str) -> Callable[[Event], Event]:
    def changed(event: Event) -> Event:
        return {**event, "args": {k: v for k, v in event["args"].items() if k != name}}

    return changed


def _in_ns(event: Event) -> Event:
    """Nanoseconds in a format of microseconds."""
    return {**event, **{key: event[key] * 1000 for key in ("ts", "dur") if key in event}}


def _twice(events: list[Event]) -> list[Event]:
    """A buffer that was written twice: every tenth device record."""
    places = set(share(is_device, 0.1)(events))
    return [one for at, one in enumerate(events) for _ in range(1 + (at in places))]


def _without_tail(events: list[Event]) -> list[Event]:
    """The buffers of device records were full before the end."""
    starts = sorted(one["ts"] for one in events if is_device(one))
    if not starts:
        return events
    end = starts[int((1 - TAIL) * (len(starts) - 1))]
    return [one for one in events if not is_device(one) or one["ts"] <= end]


def _unmarked(events: list[Event]) -> list[Event]:
    return [one for one in events if not str(one.get("name", "")).startswith("ProfilerStep#")]


def _without_main_thread(events: list[Event]) -> list[Event]:
    """The thread that drives the steps was not recorded."""
    main = next((one["tid"] for one in events if is_host(one)), None)
    return [one for one in events if not (is_host(one) and one["tid"] == main)]


def _by_rank(
    move: Callable[[int, float], float],
) -> Callable[[Sequence[bytes]], list[bytes]]:
    """Times of each rank moved, in us from its start."""

    def changed(traces: Sequence[bytes]) -> list[bytes]:
        return [
            on_events(partial(_moved, partial(move, rank)))(data)
            for rank, data in enumerate(traces)
        ]

    return changed


def _moved(move: Callable[[float], float], events: list[Event]) -> list[Event]:
    start = min(one["ts"] for one in events if "ts" in one)
    return [
        {**one, "ts": start + move(one["ts"] - start)} if "ts" in one else one for one in events
    ]


def _device_early(event: Event) -> Event:
    """A device whose clock is behind that of its host."""
    return {**event, "ts": event["ts"] - 50.0}


def _merged(traces: Sequence[bytes]) -> list[bytes]:
    """All ranks in one file, their devices under one number."""
    opened_ = [opened(one) for one in traces]
    return [written(opened_[0][0], (event for _, events in opened_ for event in events))]


def _numbers(word: bytes) -> Callable[[bytes], bytes]:
    """Words that JSON does not know, in place of numbers that nothing hangs on."""

    def changed(data: bytes) -> bytes:
        mark = -987_654_321
        events = changing(few(is_device, FEW), lambda e: {**e, "args": {**e["args"], "Bw": mark}})
        return on_events(events)(data).replace(str(mark).encode(), word)

    return changed


def _not_utf8(data: bytes) -> bytes:
    """Names that were cut in the middle of a character."""
    events = changing(
        few(lambda e: e.get("cat") == "cpu_op", FEW), lambda e: {**e, "name": e["name"] + "@@"}
    )
    return on_events(events)(data).replace(b'@@"', b'\xe2\x82"')


def _bad_escapes(data: bytes) -> bytes:
    """Paths of Windows, and line breaks, as they are."""
    events = changing(
        few(lambda e: e.get("cat") == "cpu_op", FEW), lambda e: {**e, "name": e["name"] + "@@"}
    )
    return on_events(events)(data).replace(b'@@"', b'\\q\n"')


_ALL = (
    Corruption("cut_at_start", "files end after 5 %", "withheld", ("input.truncated",), _cut(0.05)),
    Corruption("cut_in_middle", "files end half-way", "withheld", ("input.truncated",), _cut(0.5)),
    Corruption(
        "cut_after_events",
        "files end right after the events",
        "stands",
        ("input.truncated",),
        _each(_cut_tail),
    ),
    Corruption(
        "cut_archives",
        "gzip files of which half is there",
        "withheld",
        ("input.truncated", "input.corrupt"),
        _each(_cut_archive),
    ),
    Corruption(
        "lost_device_share",
        "a third of the device records lost",
        "withheld",
        ("device.under_recorded",),
        _events(lacking(share(is_device, 0.33))),
    ),
    Corruption(
        "lost_device_few",
        "1 % of the device records lost",
        "stands",
        ("device.under_recorded",),
        _events(lacking(share(is_device, 0.01))),
    ),
    Corruption(
        "lost_device_tail",
        "the last 40 % of the device records lost",
        "stands",
        ("device.truncated",),
        _events(_without_tail),
    ),
    Corruption(
        "lost_device",
        "all device records lost",
        "withheld",
        ("device.missing",),
        _events(lacking(share(is_device, 1.0))),
    ),
    Corruption(
        "lost_calls",
        "a third of the runtime's events lost",
        "stands",
        ("link.no_launch",),
        _events(lacking(share(is_runtime, 0.33))),
    ),
    Corruption(
        "lost_launches",
        "all launches lost",
        "stands",
        ("link.no_launch",),
        _events(lacking(share(is_launch, 1.0))),
    ),
    Corruption(
        "lost_main_thread",
        "the main thread's events lost",
        "either",
        ("link.no_launch", "host.missing"),
        _events(_without_main_thread),
    ),
    Corruption(
        "lost_host",
        "all events of the host lost",
        "either",
        ("host.missing",),
        _events(lacking(share(is_host, 1.0))),
    ),
    Corruption(
        "durations_hour",
        f"{FEW} durations of an hour",
        "stands",
        ("duration.impossible",),
        _events(changing(few(is_device, FEW), _taking(HOUR_US))),
    ),
    Corruption(
        "durations_wrapped",
        f"{FEW} durations below zero, as unsigned numbers",
        "stands",
        ("duration.impossible", "duration.negative"),
        _events(changing(few(is_device, FEW), _taking(WRAPPED_US))),
    ),
    Corruption(
        "durations_covering",
        f"{FEW} durations of 0.2 s",
        "stands",
        ("duration.impossible",),
        _events(changing(few(is_device, FEW), _taking(2e5))),
    ),
    Corruption(
        "durations_negative",
        f"{FEW} durations below zero",
        "stands",
        ("duration.negative",),
        _events(changing(few(is_device, FEW), _taking(-3.0))),
    ),
    Corruption(
        "times_zero",
        f"{FEW} device records at time 0",
        "stands",
        ("timestamp.zero",),
        _events(changing(few(is_device, FEW), lambda event: {**event, "ts": 0.0})),
    ),
    Corruption(
        "times_in_ns",
        "nanoseconds where microseconds belong",
        "withheld",
        (REFUSED,),
        _events(lambda events: [_in_ns(one) for one in events]),
    ),
    Corruption(
        "device_clock",
        "the device's clock 50 us behind the host's",
        "stands",
        ("causality.violation",),
        _events(changing(share(is_device, 1.0), _device_early)),
    ),
    Corruption(
        "renamed_collectives",
        "collectives of a library that nobody knows",
        "withheld",
        (),
        _events(changing(share(is_collective, 1.0), _renamed)),
        ranks=2,
    ),
    Corruption(
        "skewed_clocks",
        "clocks of ranks seconds apart",
        "stands",
        ("clock.offset",),
        _by_rank(lambda rank, us: us + rank * SKEW_US),
        ranks=2,
    ),
    Corruption(
        "drifting_clocks",
        "clocks of ranks that drift apart",
        "stands",
        ("clock.offset",),
        _by_rank(lambda rank, us: us * (1 + rank * DRIFT)),
        ranks=2,
    ),
    Corruption(
        "merged_ranks",
        "all ranks in one file, under the same numbers",
        "withheld",
        ("merge.pid_collision",),
        _merged,
        ranks=2,
    ),
    Corruption(
        "written_twice",
        "a tenth of the device records twice",
        "stands",
        (),
        _events(_twice),
    ),
    Corruption(
        "no_markers",
        "no step is marked",
        "stands",
        ("steps.missing",),
        _events(_unmarked),
    ),
    Corruption(
        "lost_flows",
        "arrows between calls and work lost",
        "stands",
        (),
        _events(lacking(share(lambda event: event.get("cat") == "ac2g", 1.0))),
    ),
    Corruption(
        "lost_correlations",
        "correlations of work lost",
        "withheld",
        ("link.no_launch",),
        _events(
            changing(
                share(lambda event: is_device(event) or is_runtime(event), 1.0),
                _without_arg("correlation"),
            )
        ),
    ),
    Corruption("not_a_number", "NaN as a bare word", "stands", (), _each(_numbers(b"NaN"))),
    Corruption("infinity", "-Infinity as a bare word", "stands", (), _each(_numbers(b"-Infinity"))),
    Corruption(
        "not_utf8", "text that is no UTF-8", "stands", ("text.invalid_utf8",), _each(_not_utf8)
    ),
    Corruption(
        "bad_escapes",
        "escapes and characters that JSON forbids",
        "stands",
        ("json.bad_escape",),
        _each(_bad_escapes),
    ),
)

CORRUPTIONS: Mapping[str, Corruption] = {one.id: one for one in _ALL}
