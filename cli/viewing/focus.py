"""Where to look first: the step that the best fix saves most in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfdiag.cli.viewing.startup import Command, Startup
from perfdiag.profiler.annotated_trace import RankTrace
from perfdiag.profiler.annotations import SliceTrack, TrackSlice
from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.model import model_sql
from perfdiag.profiler.querying import query_trace

__all__ = ["Focus", "Watch", "focus_in", "startup_of"]

PINNED = ("verdict", "budget", "waits", "fixes")
"""Tracks of ours that stay on top, in this order; of every rank, as all have the same names."""

_MARGIN = 0.05
"""Of the step, shown before and after it: enough to see that it begins and ends there. A choice."""

_FOCUS_SQL = """
INCLUDE PERFETTO MODULE perfdiag.results;

SELECT
  ifnull(fix.rank, -1) AS rank,
  ifnull(slice.ts, trace_bounds.start_ts) AS ts,
  ifnull(slice.ts + slice.dur, trace_bounds.end_ts) AS end_ts,
  trace_bounds.start_ts AS first_ts,
  trace_bounds.end_ts AS last_ts
FROM trace_bounds
JOIN perfdiag_verdict AS verdict ON verdict.scope = 'job'
LEFT JOIN perfdiag_fix AS fix ON TRUE
LEFT JOIN slice ON slice.id = fix.slice_id
ORDER BY fix.place
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Focus:
    """What is shown first, in the time of the file.

    Attributes:
        rank: None where the source does not say.
        step_ns: from when to when.
        bounds_ns: what the file certainly holds: the UI shows nothing beyond.
    """

    rank: int | None
    step_ns: tuple[int, int]
    bounds_ns: tuple[int, int]

    @property
    def visible_ns(self) -> tuple[int, int]:
        """The step with a margin."""
        (start, end), (first, last) = self.step_ns, self.bounds_ns
        margin = round((end - start) * _MARGIN)
        return max(start - margin, first), min(end + margin, last)


class Watch:
    """Sees the ranks of a job pass by on their way into a file, and keeps where to look first."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.focus: Focus | None = None
        self._place = 0

    def passing(self, ranks: Iterable[RankTrace]) -> Iterator[RankTrace]:
        """The same ranks."""
        for rank in ranks:
            self._see(rank)
            yield rank

    def _see(self, rank: RankTrace) -> None:
        slices = _drawn(rank)
        for one in slices:
            place = one.args.get("place")
            # One slice of a fix has this: in its first step on the rank that it costs most.
            if not isinstance(place, int) or not one.args.get("worst"):
                continue
            if self.focus is None or place < self._place:
                self._place = place
                self.focus = _focus(rank, one, slices)


def _drawn(rank: RankTrace) -> list[TrackSlice]:
    tracks = () if rank.annotations is None else rank.annotations.tracks
    return [one for track in tracks if isinstance(track, SliceTrack) for one in track.slices]


def _focus(rank: RankTrace, fix: TrackSlice, slices: list[TrackSlice]) -> Focus:
    number = None if rank.annotations is None else rank.annotations.rank
    start = fix.ts_ns + rank.shift_ns
    first = min(one.ts_ns for one in slices) + rank.shift_ns
    last = max(one.ts_ns + one.dur_ns for one in slices) + rank.shift_ns
    return Focus(number, (start, start + fix.dur_ns), (first, last))


def focus_in(path: str, engine: EngineName = "wasm") -> Focus | None:
    """Where to look first in a trace that has annotations; None where it has none.

    Args:
        path: a trace.
        engine: trace processor to use.

    Raises:
        InputError: the trace cannot be read.
        EngineError: the trace processor failed.
    """
    found = query_trace(path, _FOCUS_SQL, engine=engine)
    if not len(found):
        return None
    rank, *times = (int(found.ints(name)[0]) for name in found.names)
    return Focus(None if rank < 0 else rank, (times[0], times[1]), (times[2], times[3]))


def startup_of(focus: Focus | None) -> Startup:
    """The UI with our tracks pinned, the rank with the best fix open, and our tables at hand."""
    rank = r"\d+" if focus is None or focus.rank is None else focus.rank
    pins: list[Command] = [("PinTracksByRegex", rf"^{name}\b") for name in PINNED]
    # The UI writes the number of the process behind its name.
    opens: list[Command] = [("ExpandTracksByRegex", rf"^(rank {rank}( \d+)?|perfdiag)$")]
    tables: list[Command] = [("RunQuery", "INCLUDE PERFETTO MODULE perfdiag.results;")]
    return Startup(
        None if focus is None else focus.visible_ns,
        (*pins, *opens, *tables),
        {"perfdiag": model_sql()},
    )
