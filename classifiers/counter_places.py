"""Whose counters these are, and when they were taken: timelines put on the clocks of ranks."""

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiag.classifiers.counters import SLOWED, RankCounters, Track
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.counters import CounterFile, Timeline, spans
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["Placed", "place_counters", "without_complaint"]

_HOST_LABELS = ("Hostname", "hostname", "node", "nodename", "instance")
"""Labels of exporters that name the machine; `instance` has a port behind it."""


@dataclass(slots=True)
class Placed:
    """Counters by rank.

    Attributes:
        counters: of each rank, None where it has none.
        ranks: of each file the positions of the ranks that have counters of it.
        notices: what could not be placed, with the file that it is about.
    """

    counters: list[RankCounters | None]
    ranks: list[list[int]]
    notices: list[tuple[str, Notice]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Job:
    """The ranks, the devices that they drive, and the hosts that they are on."""

    ranks: Sequence[RankFacts]
    hosts: Sequence[str]
    offset_ns: int | None

    def owners(self, timeline: Timeline, shared: Tally[str]) -> list[int]:
        """Positions of the ranks whose device or host a timeline is of."""
        device = timeline.counter.device
        if device == ABSENT:  # a host, or a device that the file does not number
            return [*range(len(self.ranks))] if shared[timeline.counter.name] == 1 else []
        mine = [i for i, facts in enumerate(self.ranks) if facts.timeline.device == device]
        if len(mine) < 2:
            return mine
        named = {timeline.labels.get(key, "").partition(":")[0] for key in _HOST_LABELS} - {""}
        there = [i for i in mine if self.hosts[i] in named]
        return there if len(there) == 1 else []


def place_counters(
    files: Sequence[CounterFile],
    ranks: Sequence[RankFacts],
    hosts: Sequence[str],
    offset_ns: int | None = None,
    own: Sequence[tuple[str, Sequence[Timeline]]] = (),
) -> Placed:
    """Find for each rank the counters of its device and host, and put them on its clock.

    Counters of a device belong to the rank that drives the device of that number, if only one
    does or the labels of the counters name its host. Those without a number belong to all.

    Args:
        files: the counters.
        ranks: of the job.
        hosts: names of their hosts, '' where unknown.
        offset_ns: is added to times; where a file does not say when it was recorded, the time from
            the start of the trace to time 0 of the file.
        own: of each rank the path of its trace, and the counters that the trace itself holds.
    """
    job = _Job(ranks, hosts, offset_ns)
    found: list[dict[str, Track]] = [{} for _ in ranks]
    for facts, tracks, (path, timelines) in zip(ranks, found, own, strict=False):
        for timeline in timelines:
            if timeline.counter.device in (ABSENT, facts.timeline.device):
                _keep(tracks, _track(path, timeline, 0))
    placed = Placed([], [])
    for file in files:
        owned = _owned(job, file)
        shifts = [_shift_ns(file, facts, offset_ns) for facts in ranks]
        on = sorted({i for i, _ in owned if shifts[i] is not None})
        placed.ranks.append(on)
        placed.notices += ((file.path, notice) for notice in _lost(job, file, owned, shifts))
        for i, timeline in owned:
            shift = shifts[i]
            if shift is not None:
                _keep(found[i], _track(file.path, timeline, shift))
        placed.notices += ((file.path, notice) for notice in _elsewhere(job, file, found, on))
    placed.counters = [RankCounters(tracks) if tracks else None for tracks in found]
    return placed


def _owned(job: _Job, file: CounterFile) -> list[tuple[int, Timeline]]:
    unnumbered = (t.counter.name for t in file.timelines if t.counter.device == ABSENT)
    shared = Tally(unnumbered)
    known = [t for t in file.timelines if t.known and t.counter.semantics != "cumulative"]
    return [(i, timeline) for timeline in known for i in job.owners(timeline, shared)]


def _keep(tracks: dict[str, Track], track: Track) -> None:
    """Of two timelines of one counter the one with more samples a second stays."""
    other = tracks.get(track.metric)
    if other is None or 0 < track.period_ns < other.period_ns:
        tracks[track.metric] = track
        if track.unit == "mask":
            _keep(tracks, _throttled(track))


def _throttled(reasons: Track) -> Track:
    """Whether any reason that slows the device down was given, of a mask of reasons."""
    slowed = (reasons.values.astype(np.uint64) & np.uint64(SLOWED)) != 0
    return replace(reasons, metric="throttled", unit="flag", values=slowed.astype(np.float64))


def _shift_ns(file: CounterFile, facts: RankFacts, offset_ns: int | None) -> int | None:
    """What is added to times of a file to be on a rank's clock; None where nothing tells."""
    if file.clock == "none":
        return offset_ns
    if facts.clock_unix_ns is None or (file.clock == "local" and offset_ns is None):
        return None
    return (offset_ns or 0) - facts.clock_unix_ns


def _track(path: str, timeline: Timeline, shift_ns: int) -> Track:
    counter = timeline.counter
    start, end = spans(timeline)
    return Track(
        counter.name,
        counter.unit,
        path,
        timeline.period_ns,
        start + shift_ns,
        end + shift_ns,
        counter.values,
    )


def _lost(
    job: _Job, file: CounterFile, owned: list[tuple[int, Timeline]], shifts: list[int | None]
) -> Iterator[Notice]:
    """Samples of nobody, and samples whose time is not known."""
    if not file.timelines:
        return
    whole = sum(len(timeline.counter.ts_ns) for timeline in file.timelines)
    if not any(timeline.known for timeline in file.timelines):
        message = f"{file.path}: holds no counter of the vocabulary (docs/counters.md)."
        yield Notice("counter.unmatched", "warning", whole, message)
    elif not owned:
        devices = sorted({facts.timeline.device for facts in job.ranks} - {ABSENT})
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
    job: _Job, file: CounterFile, found: list[dict[str, Track]], on: list[int]
) -> Iterator[Notice]:
    """A file that was recorded at another time than the traces."""
    for i in on:
        begin, until = job.ranks[i].span_ns
        mine = [track for track in found[i].values() if track.file == file.path]
        first = min((int(track.start_ns[0]) for track in mine), default=begin)
        last = max((int(track.end_ns[-1]) for track in mine), default=until)
        if last <= begin or first >= until:
            apart = (begin - last if last <= begin else first - until) / 1e9
            side = "before the first step" if last <= begin else "after the last step"
            count = sum(len(track.values) for track in mine)
            message = (
                f"{file.path}: its samples are {apart:.3g} s {side}: it is of another run, or its "
                "clock is wrong (--counters-utc-offset, --counters-offset)."
            )
            yield Notice("counter.unmatched", "warning", count, message)
            return


def without_complaint(file: CounterFile, offset_ns: int | None) -> CounterFile:
    """The file without the notice that its clock is not known, where the user has said it."""
    if offset_ns is None:
        return file
    kept = [notice for notice in file.notices if notice.kind != "clock.unanchored"]
    return replace(file, notices=kept)
