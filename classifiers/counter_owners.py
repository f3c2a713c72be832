"""Of which trace each counter of a file is, and how far its clock is from that of the trace."""

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.counters import CounterFile, Timeline, spans
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["Found", "Owner", "find_counters"]

_HOST_LABELS = frozenset(("hostname", "host", "node", "nodename", "instance"))
"""Labels of exporters and columns of tables that name the machine, in lower case; `instance` has a
port behind it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What decides which counters are of a trace, and when on its clock they were taken.

    Attributes:
        devices: ordinals of the devices that it drives.
        host: name of its host, '' where unknown.
        clock_unix_ns: Unix time of its time 0, None where it does not say.
        span_ns: start and end of what is looked at.
    """

    devices: tuple[int, ...]
    host: str
    clock_unix_ns: int | None
    span_ns: tuple[int, int]

    @classmethod
    def of(cls, facts: RankFacts, host: str) -> "Owner":
        """A rank, which is judged by its busiest device."""
        span = facts.span_ns if len(facts.model.steps.ts_ns) else (0, 0)
        return cls((facts.timeline.device,), host, facts.clock_unix_ns, span)


class Found(NamedTuple):
    """A timeline, the position of the trace that it is of, and what is added to its times."""

    owner: int
    timeline: Timeline
    shift_ns: int


def find_counters(
    file: CounterFile, owners: Sequence[Owner], offset_ns: int | None
) -> tuple[list[Found], list[Notice]]:
    """Find the traces that the counters of a file are of.

    Counters of a device belong to the trace that drives the device of that number, if only one
    does and the file has only one host's, or the labels of the counters name its host. Those
    without a number belong to all.

    Args:
        file: the counters.
        owners: the traces of a job.
        offset_ns: is added to times; where the file does not say when it was recorded, the time
            from the start of the trace to time 0 of the file.

    Returns:
        What has a place, and notices of what has none or is of another time.
    """
    owned = _owned(file, owners)
    shifts = [_shift_ns(file, owner, offset_ns) for owner in owners]
    found = [
        Found(i, timeline, shift)
        for i, timeline in owned
        for shift in shifts[i : i + 1]
        if shift is not None
    ]
    lost = _lost(file, owners, owned, shifts)
    return found, [*lost, *_elsewhere(file, owners, found)]


def _owned(file: CounterFile, owners: Sequence[Owner]) -> list[tuple[int, Timeline]]:
    shared = Tally(t.counter.name for t in file.timelines if t.counter.device == ABSENT)
    known = [t for t in file.timelines if t.known and t.counter.semantics != "cumulative"]
    hosts = frozenset().union(*map(_hosts, file.timelines))
    return [(i, t) for t in known for i in _owners_of(t, owners, shared, len(hosts) > 1)]


def _hosts(timeline: Timeline) -> frozenset[str]:
    """What the labels call the machine."""
    labels = timeline.labels.items()
    named = {text.partition(":")[0] for key, text in labels if key.casefold() in _HOST_LABELS}
    return frozenset(named - {""})


def _owners_of(
    timeline: Timeline, owners: Sequence[Owner], shared: Tally[str], several_hosts: bool
) -> list[int]:
    """Positions of those whose device or host a timeline is of."""
    device = timeline.counter.device
    if device == ABSENT:  # a host, or a device that the file does not number
        return [*range(len(owners))] if shared[timeline.counter.name] == 1 else []
    mine = [i for i, owner in enumerate(owners) if device in owner.devices]
    if len(mine) < 2 and not several_hosts:
        return mine
    there = [i for i in mine if owners[i].host in _hosts(timeline)]
    return there if len(there) == 1 else []


def _shift_ns(file: CounterFile, owner: Owner, offset_ns: int | None) -> int | None:
    """What is added to times of a file to be on a trace's clock; None where nothing tells."""
    if file.clock == "none":
        return offset_ns
    if owner.clock_unix_ns is None or (file.clock == "local" and offset_ns is None):
        return None
    return (offset_ns or 0) - owner.clock_unix_ns


def _lost(
    file: CounterFile,
    owners: Sequence[Owner],
    owned: list[tuple[int, Timeline]],
    shifts: list[int | None],
) -> Iterator[Notice]:
    """Samples of nobody, and samples whose time is not known."""
    if not file.timelines:
        return
    whole = sum(len(timeline.counter.ts_ns) for timeline in file.timelines)
    if not any(timeline.known for timeline in file.timelines):
        message = f"{file.path}: holds no counter of the vocabulary (docs/counters.md)."
        yield Notice("counter.unmatched", "warning", whole, message)
    elif not owned:
        devices = sorted({device for owner in owners for device in owner.devices} - {ABSENT})
        listed = ", ".join(map(str, devices)) or "none"
        message = (
            f"{file.path}: no counter can be told to be of the device of one of the ranks (devices "
            f"in the traces: {listed}); they stand in no verdict."
        )
        yield Notice("counter.unmatched", "warning", whole, message)
    without = [i for i in {i for i, _ in owned} if shifts[i] is None]
    if without and file.clock in ("exact", "given"):
        message = (
            f"{file.path}: the trace does not say when it was recorded, so its counters have no "
            "place in it. Record it with PyTorch 2.4 or later."
        )
        yield Notice("clock.unanchored", "warning", whole, message)


def _elsewhere(
    file: CounterFile, owners: Sequence[Owner], found: Sequence[Found]
) -> Iterator[Notice]:
    """A file that was recorded at another time than the traces; one notice is enough."""
    for i in sorted({one.owner for one in found}):
        begin, until = owners[i].span_ns
        mine = [one for one in found if one.owner == i]
        bounds = [spans(one.timeline) for one in mine]
        first = min(int(b[0][0]) + one.shift_ns for b, one in zip(bounds, mine, strict=True))
        last = max(int(b[1][-1]) + one.shift_ns for b, one in zip(bounds, mine, strict=True))
        if last <= begin or first >= until:
            apart = (begin - last if last <= begin else first - until) / 1e9
            side = "before" if last <= begin else "after"
            message = (
                f"{file.path}: its samples are {apart:.3g} s {side} what was traced: it is of "
                "another run, or its clock is wrong (--counters-utc-offset, --counters-offset)."
            )
            count = sum(len(one.timeline.counter.values) for one in mine)
            yield Notice("counter.unmatched", "warning", count, message)
            return
