"""Chrome trace entries that are not complete events: names, pairs, instants, counters."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from perfdiag.profiler.sources.chrome_json import (
    LARGEST_NS,
    ChromeTrace,
    Event,
    TimedEvents,
    hashable,
)
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT, Counter

__all__ = ["Others", "read_others"]


@dataclass(slots=True)
class Others:
    """What the other entries say.

    Attributes:
        pieces: begin/end and asynchronous pairs as complete events; the last piece holds the
            instants, `instants` of them.
        thread_names, process_names: from metadata events; a process keeps every name it got.
    """

    pieces: list[TimedEvents] = field(default_factory=list)
    instants: int = 0
    counters: list[Counter] = field(default_factory=list)
    thread_names: dict[tuple[Any, Any], str] = field(default_factory=dict)
    process_names: dict[Any, list[str]] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)


def read_others(trace: ChromeTrace, unit_ns: int) -> Others:
    """Sort the entries of `trace.others` by what they are; unknown phases are noted."""
    by_phase: dict[str, list[Event]] = defaultdict(list)
    for event in trace.others:
        by_phase[_TOGETHER.get(phase := str(event.ph), phase)].append(event)
    by_phase.pop("flow", None)  # flows repeat what correlation ids say
    for event in (event for events in by_phase.values() for event in events):
        event.pid, event.tid = hashable(event.pid), hashable(event.tid)
    others = Others()
    _read_names(others, by_phase.pop("M", []))
    pairs, alone = _pairs(by_phase.pop("B", []), lambda e: (e.pid, e.tid), unit_ns)
    spans, lone = _pairs(by_phase.pop("b", []), _span_of, unit_ns)
    points = [e for phase in ("i", "I", "R", "n") for e in by_phase.pop(phase, [])]
    samples = by_phase.pop("C", [])
    instants = [(e, start, 0) for e in points if (start := _ns(e.ts, unit_ns)) is not None]
    untimed = len(points) - len(instants) + sum(_ns(e.ts, unit_ns) is None for e in samples)
    others.pieces = [_piece(trace, found) for found in (pairs + spans, instants) if found]
    others.instants = len(instants)
    others.counters = _counters(samples, unit_ns)
    others.notices = _notices(alone + lone, by_phase)
    trace.bare_objects += untimed
    trace.skipped += sum(map(len, by_phase.values())) + alone + lone + untimed
    return others


_TOGETHER = {"E": "B", "e": "b", "s": "flow", "t": "flow", "f": "flow"}
"""Phases that are read with another one, in the order of the file."""

Span = tuple[Event, int, int]


def _ns(value: Any, unit_ns: int) -> int | None:
    """A time in ns, or None for what is no number or no clock can show."""
    try:
        time = None if value is None else round(Decimal(str(value)) * unit_ns)
    except (ArithmeticError, ValueError):
        return None
    return time if time is not None and -LARGEST_NS < time < LARGEST_NS else None


def _span_of(event: Event) -> tuple[str, str, Any]:
    """What an asynchronous begin and its end have in common."""
    return "" if event.cat is None else str(event.cat), str(event.id), event.pid


def _decode(args: msgspec.Raw) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(args)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _read_names(others: Others, events: list[Event]) -> None:
    for event in events:
        if event.name not in ("thread_name", "process_name"):
            continue
        name = str(_decode(event.args).get("name", "")).strip()
        if event.name == "thread_name":
            others.thread_names[(event.pid, event.tid)] = name
        elif name not in (known := others.process_names.setdefault(event.pid, [])):
            known.append(name)


def _pairs(
    events: list[Event], key: Callable[[Event], Any], unit_ns: int
) -> tuple[list[Span], int]:
    """Begin/end pairs, last in first out where the key is the same; and how many stay alone.

    At equal times the order of the file decides, as the format says: a pair without length has
    its end right behind its begin.
    """
    sides = [(_ns(e.ts, unit_ns), e) for e in events]
    stacks: dict[Any, list[tuple[int, Event]]] = defaultdict(list)
    found: list[Span] = []
    for ts, event in sorted(((t, e) for t, e in sides if t is not None), key=lambda side: side[0]):
        stack = stacks[key(event)]
        if event.ph in ("B", "b"):
            stack.append((ts, event))
        elif stack:
            start, begin = stack.pop()
            found.append((begin, start, ts - start))
    return found, len(sides) - 2 * len(found)


def _piece(trace: ChromeTrace, spans: list[Span]) -> TimedEvents:
    return TimedEvents(
        np.array([start for _, start, _ in spans], np.int64),
        np.array([dur for _, _, dur in spans], np.int64),
        trace.strings.codes([e.name for e, _, _ in spans]),
        trace.strings.codes([e.cat for e, _, _ in spans]),
        [e.pid for e, _, _ in spans],
        [e.tid for e, _, _ in spans],
        [e.args for e, _, _ in spans],
    )


def _counters(events: Iterable[Event], unit_ns: int) -> list[Counter]:
    """One timeline per process, name and key; values that are no numbers are gaps."""
    samples: dict[tuple[Any, str], list[tuple[int, float]]] = defaultdict(list)
    for event in events:
        ts = _ns(event.ts, unit_ns)
        for key, value in _decode(event.args).items() if ts is not None else ():
            if isinstance(value, int | float) and not isinstance(value, bool) and ts is not None:
                name = f"{event.name} {key}".strip()
                samples[(event.pid, name)].append((ts, float(value)))
    return [_counter(pid, name, sorted(points)) for (pid, name), points in samples.items()]


def _counter(pid: Any, name: str, points: list[tuple[int, float]]) -> Counter:
    device = pid if isinstance(pid, int) and 0 <= pid < 1 << 10 else ABSENT
    return Counter(
        name,
        "",
        1.0,
        "gauge",
        device,
        np.array([ts for ts, _ in points], np.int64),
        np.array([value for _, value in points], np.float64),
    )


def _notices(unfinished: int, unknown: dict[str, list[Event]]) -> list[Notice]:
    notices = [
        Notice(
            "slice.unfinished", "warning", unfinished, "Begin or end without the other; left out."
        )
    ]
    if unknown:
        phases = ", ".join(sorted(unknown))
        count = sum(map(len, unknown.values()))
        notices.append(
            Notice("event.skipped", "info", count, f"Entries of unknown phases left out: {phases}.")
        )
    return notices
