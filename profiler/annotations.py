"""What perfdiag draws over a trace: slices and counters on tracks of its own, as plain data.

Times are integer nanoseconds on the clock of the rank, 0 at the start of its trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.recording import Int64s

__all__ = [
    "ANNOTATION_CATEGORIES",
    "Annotations",
    "Arg",
    "CounterTrack",
    "PieceTrack",
    "RawSlice",
    "SliceTrack",
    "TrackSlice",
]

Arg = int | float | str

ANNOTATION_CATEGORIES = (
    "perfdiag.verdict",
    "perfdiag.budget",
    "perfdiag.wait",
    "perfdiag.fix",
)
"""Categories of the slices that perfdiag draws: results, which readers of a trace pass over."""

MOST_NAME = 200
"""Characters of a name, more of which no track shows; a choice."""


class RawSlice(NamedTuple):
    """A slice of the trace itself, by where it lies: its lane, when it starts and ends."""

    lane: int
    ts_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class TrackSlice:
    """One slice.

    Attributes:
        ts_ns, dur_ns: start and length.
        name: what people read on it.
        category: one of `ANNOTATION_CATEGORIES`.
        color: slices of one text have one colour; '' leaves it to the name.
        args: what is shown of it beside its name.
        evidence: slices of the trace that prove it: an arrow is drawn to each.
    """

    ts_ns: int
    dur_ns: int
    name: str
    category: str
    color: str = ""
    args: Mapping[str, Arg] = field(default_factory=dict)
    evidence: tuple[RawSlice, ...] = ()


@dataclass(frozen=True, slots=True)
class SliceTrack:
    """A track of slices that may nest, a parent before its children, and do not cross."""

    name: str
    slices: Sequence[TrackSlice]

    def within(self, start_ns: int, end_ns: int) -> "SliceTrack":
        """The slices that overlap a part of the time, whole."""
        inside = [
            s for s in self.slices if _overlaps(s.ts_ns, s.ts_ns + s.dur_ns, start_ns, end_ns)
        ]
        return replace(self, slices=inside)


@dataclass(frozen=True, slots=True)
class PieceTrack:
    """A track of many slices without arguments, one after the other.

    Attributes:
        name: of the track.
        category: of all slices.
        ts_ns, dur_ns: (n,) start and length, in the order of time.
        code: (n,) what each is, as an index into the next two.
        names: what people read.
        colors: see `TrackSlice`.
    """

    name: str
    category: str
    ts_ns: Int64s
    dur_ns: Int64s
    code: Int64s
    names: Sequence[str]
    colors: Sequence[str]

    def within(self, start_ns: int, end_ns: int) -> "PieceTrack":
        """What lies in a part of the time, cut at its ends."""
        begin = np.maximum(self.ts_ns, start_ns)
        length = np.minimum(self.ts_ns + self.dur_ns, end_ns) - begin
        kept = length > 0
        return replace(self, ts_ns=begin[kept], dur_ns=length[kept], code=self.code[kept])


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """A number over time; each holds until the next one, NaN is none.

    Attributes:
        name: of the track.
        unit: of the values.
        ts_ns: (n,) when a value begins, ascending.
        values: (n,).
    """

    name: str
    unit: str
    ts_ns: Int64s
    values: NDArray[np.float64]

    def within(self, start_ns: int, end_ns: int) -> "CounterTrack":
        """The values of a part of the time, the one that holds at its start included."""
        first = max(0, int(np.searchsorted(self.ts_ns, start_ns, "right")) - 1)
        last = int(np.searchsorted(self.ts_ns, end_ns, "left"))
        ts_ns = np.maximum(self.ts_ns[first:last], start_ns)
        return replace(self, ts_ns=ts_ns, values=self.values[first:last])


@dataclass(frozen=True, slots=True)
class Annotations:
    """All that is drawn over the trace of one rank, in the order from top to bottom."""

    rank: int | None
    tracks: tuple[SliceTrack | PieceTrack, ...]
    counters: tuple[CounterTrack, ...] = ()

    def within(self, start_ns: int, end_ns: int) -> "Annotations":
        """What lies in a part of the time."""
        return replace(
            self,
            tracks=tuple(track.within(start_ns, end_ns) for track in self.tracks),
            counters=tuple(counter.within(start_ns, end_ns) for counter in self.counters),
        )

    @property
    def evidence(self) -> list[RawSlice]:
        """The slices of the trace that prove anything, one for each arrow."""
        tracks = [track for track in self.tracks if isinstance(track, SliceTrack)]
        return [spot for track in tracks for one in track.slices for spot in one.evidence]


def _overlaps(start_ns: int, end_ns: int, from_ns: int, to_ns: int) -> bool:
    return start_ns < to_ns and (end_ns > from_ns or start_ns >= from_ns)
