"""Whose counters these are, and when they were taken: timelines put on the clocks of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiag.classifiers.counter_owners import Owner, find_counters
from perfdiag.classifiers.counters import SLOWED, RankCounters, Track
from perfdiag.profiler.counters import CounterFile, Timeline, spans
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["Placed", "is_finer", "place_counters", "without_complaint"]


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


def place_counters(
    files: Sequence[CounterFile],
    ranks: Sequence[Owner],
    offset_ns: int | None = None,
    own: Sequence[tuple[str, Sequence[Timeline]]] = (),
) -> Placed:
    """Find for each rank the counters of its device and host, and put them on its clock.

    Args:
        files: the counters.
        ranks: of the job.
        offset_ns: see `find_counters`.
        own: of each rank the path of its trace, and the counters that the trace itself holds.
    """
    tracks: list[dict[str, Track]] = [{} for _ in ranks]
    for owner, mine, (path, timelines) in zip(ranks, tracks, own, strict=False):
        for timeline in timelines:
            if timeline.counter.device in (ABSENT, *owner.devices):
                _keep(mine, _track(path, timeline, 0))
    placed = Placed([], [])
    for file in files:
        found, notices = find_counters(file, ranks, offset_ns)
        for one in found:
            _keep(tracks[one.owner], _track(file.path, one.timeline, one.shift_ns))
        placed.ranks.append(sorted({one.owner for one in found}))
        placed.notices += ((file.path, notice) for notice in notices)
    placed.counters = [RankCounters(mine) if mine else None for mine in tracks]
    return placed


def _keep(tracks: dict[str, Track], track: Track) -> None:
    """Of two timelines of one counter the one with more samples a second stays."""
    other = tracks.get(track.metric)
    if other is None or is_finer(track.period_ns, other.period_ns):
        tracks[track.metric] = track
        if track.unit == "mask":
            _keep(tracks, _throttled(track))


def is_finer(period_ns: int, than_ns: int) -> bool:
    """Whether samples of one timeline are closer than those of another; 0 is not known."""
    return 0 < period_ns < than_ns


def _throttled(reasons: Track) -> Track:
    """Whether any reason that slows the device down was given, of a mask of reasons."""
    slowed = (reasons.values.astype(np.uint64) & np.uint64(SLOWED)) != 0
    return replace(reasons, metric="throttled", unit="flag", values=slowed.astype(np.float64))


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


def without_complaint(file: CounterFile, offset_ns: int | None) -> CounterFile:
    """The file without the notice that its clock is not known, where the user has said it."""
    if offset_ns is None:
        return file
    kept = [notice for notice in file.notices if notice.kind != "clock.unanchored"]
    return replace(file, notices=kept)
