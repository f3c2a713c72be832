"""Events of a written trace, taken apart to be damaged and put together again."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import msgspec

__all__ = [
    "DEVICE",
    "Event",
    "changing",
    "few",
    "is_collective",
    "is_device",
    "is_host",
    "is_launch",
    "is_runtime",
    "lacking",
    "on_events",
    "opened",
    "share",
    "written",
]

Event = dict[str, Any]
"""One entry of `traceEvents`."""

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of device records."""

RUNTIME = ("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime")


def opened(data: bytes) -> tuple[dict[str, Any], list[Event]]:
    """What is beside the events of a trace, and the events.

    Raises:
        msgspec.DecodeError: it is no whole JSON.
    """
    whole: dict[str, Any] = msgspec.json.decode(data)
    return whole, whole.pop("traceEvents")


def written(whole: dict[str, Any], events: Iterable[Event]) -> bytes:
    """The trace of some events."""
    return msgspec.json.encode({**whole, "traceEvents": list(events)})


def on_events(change: Callable[[list[Event]], Iterable[Event]]) -> Callable[[bytes], bytes]:
    """A change of events as one of a trace."""

    def changed(data: bytes) -> bytes:
        whole, events = opened(data)
        return written(whole, change(events))

    return changed


def changing(
    chosen: Callable[[Sequence[Event]], Iterable[int]], change: Callable[[Event], Event]
) -> Callable[[list[Event]], list[Event]]:
    """A change of some events, by their places."""

    def changed(events: list[Event]) -> list[Event]:
        places = set(chosen(events))
        return [change(one) if at in places else one for at, one in enumerate(events)]

    return changed


def lacking(
    chosen: Callable[[Sequence[Event]], Iterable[int]],
) -> Callable[[list[Event]], list[Event]]:
    """A change that leaves out some events, by their places."""

    def changed(events: list[Event]) -> list[Event]:
        places = set(chosen(events))
        return [one for at, one in enumerate(events) if at not in places]

    return changed


def few(which: Callable[[Event], bool], count: int) -> Callable[[Sequence[Event]], list[int]]:
    """Places of so many events of a sort, at even distances between the first and the last."""

    def chosen(events: Sequence[Event]) -> list[int]:
        places = [at for at, one in enumerate(events) if which(one)]
        return [places[(2 * i + 1) * len(places) // (2 * count)] for i in range(count) if places]

    return chosen


def share(which: Callable[[Event], bool], part: float) -> Callable[[Sequence[Event]], list[int]]:
    """Places of about a share of the events of a sort, always the same ones."""

    def chosen(events: Sequence[Event]) -> list[int]:
        chance = Random(f"damage {part}")
        return [at for at, one in enumerate(events) if which(one) and chance.random() < part]

    return chosen


def is_device(event: Event) -> bool:
    """Whether it is work of a device."""
    return event.get("cat") in DEVICE


def is_runtime(event: Event) -> bool:
    """Whether it is a call of the runtime."""
    return event.get("cat") in RUNTIME


def is_launch(event: Event) -> bool:
    """Whether it is a call that launches kernels."""
    return is_runtime(event) and "Launch" in event["name"]


def is_collective(event: Event) -> bool:
    """Whether it is a collective on a device."""
    return event.get("cat") == "kernel" and "Collective name" in event.get("args", {})


def is_host(event: Event) -> bool:
    """Whether it happened on the host."""
    return event.get("ph") == "X" and (
        is_runtime(event)
        or event.get("cat") in ("cpu_op", "user_annotation", "python_function", "cuda_driver")
    )
