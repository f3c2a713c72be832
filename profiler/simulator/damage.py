"""Ways to damage the traces of a job, as functions of their bytes or events."""

import gzip
from collections.abc import Callable, Sequence
from functools import partial

from perfdiag.profiler.simulator.trace_events import (
    Event,
    changing,
    few,
    is_device,
    is_host,
    on_events,
    opened,
    share,
    written,
)

__all__ = [
    "FEW",
    "bad_escapes",
    "by_rank",
    "cut",
    "cut_archive",
    "cut_tail",
    "device_early",
    "for_each",
    "for_events",
    "in_ns",
    "merged",
    "not_utf8",
    "renamed",
    "taking",
    "twice",
    "unmarked",
    "without_arg",
    "without_main_thread",
    "without_tail",
    "words_for_numbers",
]

FEW = 7
"""Records, where a few do the damage."""

TAIL = 0.4
"""Share of the device records that are lost where the end of them is."""

Traces = Callable[[Sequence[bytes]], list[bytes]]
"""Takes the traces of all ranks and gives damaged ones."""


def for_each(change: Callable[[bytes], bytes]) -> Traces:
    """A change of one trace as one of all ranks."""
    return lambda traces: [change(one) for one in traces]


def for_events(change: Callable[[list[Event]], list[Event]]) -> Traces:
    """A change of a trace's events as one of all ranks."""
    return for_each(on_events(change))


def cut(part: float) -> Traces:
    """Each file ends at a share of its bytes."""
    return for_each(lambda data: data[: int(part * len(data))])


def cut_archive(data: bytes) -> bytes:
    """A gzip file of which half was copied."""
    packed = gzip.compress(data, 1, mtime=0)
    return packed[: len(packed) // 2]


def cut_tail(data: bytes) -> bytes:
    """All events are there, what follows them is not."""
    return data[: data.rindex(b"}") - 1].rsplit(b"]", 1)[0]


def taking(us: float) -> Callable[[Event], Event]:
    """Of some duration, in microseconds."""
    return lambda event: {**event, "dur": us}


def renamed(event: Event) -> Event:
    """A collective of a library that nobody knows, which describes nothing."""
    size = event["args"].get("Group size", 0)
    args = {k: v for k, v in event["args"].items() if k in _LINKS}
    return {**event, "name": f"fabricExchangeKernel_v{size}(FabricWork*)", "args": args}


_LINKS = ("External id", "correlation", "stream", "device", "context", "queued", "grid", "block")


def without_arg(name: str) -> Callable[[Event], Event]:
    """Without one of its arguments."""

    def changed(event: Event) -> Event:
        return {**event, "args": {k: v for k, v in event["args"].items() if k != name}}

    return changed


def in_ns(event: Event) -> Event:
    """Nanoseconds in a format of microseconds."""
    return {**event, **{key: event[key] * 1000 for key in ("ts", "dur") if key in event}}


def twice(events: list[Event]) -> list[Event]:
    """A buffer that was written twice: every tenth device record."""
    places = set(share(is_device, 0.1)(events))
    return [one for at, one in enumerate(events) for _ in range(1 + (at in places))]


def without_tail(events: list[Event]) -> list[Event]:
    """The buffers of device records were full before the end."""
    starts = sorted(one["ts"] for one in events if is_device(one))
    if not starts:
        return events
    end = starts[int((1 - TAIL) * (len(starts) - 1))]
    return [one for one in events if not is_device(one) or one["ts"] <= end]


def unmarked(events: list[Event]) -> list[Event]:
    """No step bears a mark."""
    return [one for one in events if not str(one.get("name", "")).startswith("ProfilerStep#")]


def without_main_thread(events: list[Event]) -> list[Event]:
    """The thread that drives the steps was not recorded."""
    main = next((one["tid"] for one in events if is_host(one)), None)
    return [one for one in events if not (is_host(one) and one["tid"] == main)]


def by_rank(
    move: Callable[[int, float], float],
) -> Traces:
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


def device_early(event: Event) -> Event:
    """A device whose clock is behind that of its host."""
    return {**event, "ts": event["ts"] - 50.0}


def merged(traces: Sequence[bytes]) -> list[bytes]:
    """All ranks in one file, their devices under one number."""
    opened_ = [opened(one) for one in traces]
    return [written(opened_[0][0], (event for _, events in opened_ for event in events))]


def words_for_numbers(word: bytes) -> Callable[[bytes], bytes]:
    """Words that JSON does not know, in place of numbers that nothing hangs on."""

    def changed(data: bytes) -> bytes:
        mark = -987_654_321
        events = changing(few(is_device, FEW), lambda e: {**e, "args": {**e["args"], "Bw": mark}})
        return on_events(events)(data).replace(str(mark).encode(), word)

    return changed


def not_utf8(data: bytes) -> bytes:
    """Names that were cut in the middle of a character."""
    events = changing(
        few(lambda e: e.get("cat") == "cpu_op", FEW), lambda e: {**e, "name": e["name"] + "@@"}
    )
    return on_events(events)(data).replace(b'@@"', b'\xe2\x82"')


def bad_escapes(data: bytes) -> bytes:
    """Paths of Windows, and line breaks, as they are."""
    events = changing(
        few(lambda e: e.get("cat") == "cpu_op", FEW), lambda e: {**e, "name": e["name"] + "@@"}
    )
    return on_events(events)(data).replace(b'@@"', b'\\q\n"')
