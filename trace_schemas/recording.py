"""The Recording: what every source format becomes.

Columns, not objects: a slice is a row number into the arrays of `Slices`. Times are integer
nanoseconds; 0 is the start of the trace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.notices import Notice

__all__ = [
    "ABSENT",
    "ARG_TYPES",
    "DEVICE_WORK",
    "RANGE_CATEGORY",
    "ArgColumn",
    "Clock",
    "Counter",
    "Device",
    "Int32s",
    "Int64s",
    "KeepArgs",
    "Kind",
    "Lane",
    "ProcessGroup",
    "Recording",
    "Slices",
]

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

ABSENT = -1
"""Marks a missing correlation or external id; real ones are never negative."""


class Kind(IntEnum):
    """What a slice is. The names, in lower case, are the categories of the canonical trace."""

    HOST_OP = 0
    """A CPU-side operator."""
    ANNOTATION = 1
    """A range that a user or framework put on a host thread."""
    PYTHON = 2
    """A Python frame."""
    RUNTIME = 3
    """A runtime or driver call: a launch, a copy, a synchronisation, an allocation."""
    KERNEL = 4
    COPY = 5
    FILL = 6
    COLLECTIVE = 7
    DEVICE_SYNC = 8
    """A wait drawn on a stream: not work."""
    DEVICE_ANNOTATION = 9
    """A host range projected onto a stream: not work."""
    OVERHEAD = 10
    """Overhead that the profiler names itself."""
    INSTANT = 11
    """A point in time; its duration is 0."""
    OTHER = 12


DEVICE_WORK = (Kind.KERNEL, Kind.COPY, Kind.FILL, Kind.COLLECTIVE)

RANGE_CATEGORY = "cuda_profiler_range"
"""Category of the slices that CUPTI's range profiler writes, with its counters as arguments."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread, a stream or queue, or an engine: a line on which events are ordered.

    Attributes:
        process: process id as the source writes it; text where it was text.
        thread: thread or stream id as the source writes it.
        name: name for people, for example `stream 7`.
        kind: `thread` for host lanes, `stream` for device lanes.
        device: ordinal of the device; `ABSENT` on host lanes.
        stream: stream or queue number; `ABSENT` on host lanes.
    """

    process: str
    thread: str
    name: str
    kind: Literal["thread", "stream"]
    device: int = ABSENT
    stream: int = ABSENT


@dataclass(frozen=True, slots=True)
class ArgColumn:
    """One argument of the fixed vocabulary, for the slices that have it.

    Attributes:
        rows: (n,) rows of `Slices`, ascending.
        values: (n,) int64, float64 or object (str).
    """

    rows: Int64s
    values: NDArray[np.int64] | NDArray[np.float64] | NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Slices:
    """All slices of a recording, one row each, in the order of the source.

    Attributes:
        ts_ns, dur_ns: (n,) start and duration.
        lane: (n,) index into `Recording.lanes`.
        name, category: (n,) index into `Recording.strings`.
        kind: (n,) values of `Kind`.
        correlation: (n,) id that joins a launch to its device work, or `ABSENT`.
        external_id: (n,) id that joins a host op to its launches and device work, or `ABSENT`.
        args: typed arguments by name, see `ARG_TYPES`.
        raw_args: (n,) the original arguments as JSON text, or None when they were not kept.
    """

    ts_ns: Int64s
    dur_ns: Int64s
    lane: Int32s
    name: Int32s
    category: Int32s
    kind: NDArray[np.int8]
    correlation: Int64s
    external_id: Int64s
    args: Mapping[str, ArgColumn] = field(default_factory=dict)
    raw_args: Sequence[bytes | None] | None = None

    def __len__(self) -> int:
        """Number of slices."""
        return len(self.ts_ns)

    @property
    def end_ns(self) -> Int64s:
        """(n,) end of each slice."""
        return self.ts_ns + self.dur_ns

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """The slices at `rows` (indices, ascending, or a mask)."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        raw = self.raw_args
        return replace(
            self,
            ts_ns=self.ts_ns[index],
            dur_ns=self.dur_ns[index],
            lane=self.lane[index],
            name=self.name[index],
            category=self.category[index],
            kind=self.kind[index],
            correlation=self.correlation[index],
            external_id=self.external_id[index],
            args={name: _take_arg(column, index) for name, column in self.args.items()},
            raw_args=None if raw is None else [raw[i] for i in index.tolist()],
        )


KeepArgs = bool | Literal["inputs"]
"""Which original arguments a source keeps: all, none, or those that say what kernels compute: of
operators with their inputs, and of the few kernels whose grid tells what no operator does."""

ARG_TYPES: dict[str, type] = {
    "bytes": int,
    "sequence_number": int,
    "fwd_thread": int,
    "collective_name": str,
    "group_name": str,
    "group_size": int,
    "collective_seq": int,
    "in_elements": int,
    "out_elements": int,
    "dtype": str,
    "src_rank": int,
    "dst_rank": int,
    "sync_kind": str,
    "wait_on_stream": int,
    "wait_on_correlation": int,
    "python_id": int,
    "python_parent_id": int,
    "reason": str,
}
"""The fixed vocabulary of typed arguments; everything else stays in `raw_args`."""


def _take_arg(column: ArgColumn, index: Int64s) -> ArgColumn:
    where = np.searchsorted(column.rows, index)
    where[where == len(column.rows)] = 0
    found = column.rows[where] == index if len(column.rows) else np.zeros(len(index), bool)
    return ArgColumn(np.flatnonzero(found), column.values[where[found]])


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter timeline.

    Attributes:
        name: metric.
        unit: unit of `values` after `scale`.
        scale: factor that was applied to the source's numbers.
        semantics: `gauge`, `rate`, `cumulative`, or `backward` (a value describes the time
            before its timestamp).
        device: ordinal, or `ABSENT` for a host counter.
        ts_ns, values: (n,) samples; a gap is a missing sample, never a 0.
        period_ns: usual time between samples, missing ones counted; 0 where only these samples
            tell.
        spans: (n,) start and end of the time that each sample stands for, disjoint and in order;
            None where a value holds until the next one.
    """

    name: str
    unit: str
    scale: float
    semantics: Literal["gauge", "rate", "cumulative", "backward"]
    device: int
    ts_ns: Int64s
    values: NDArray[np.float64]
    period_ns: int = 0
    spans: tuple[Int64s, Int64s] | None = None

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """The samples at `rows` (indices or a mask)."""
        spans = None if self.spans is None else (self.spans[0][rows], self.spans[1][rows])
        return replace(self, ts_ns=self.ts_ns[rows], values=self.values[rows], spans=spans)

    def within(self, start_ns: int, end_ns: int) -> Self:
        """The samples of a part of the time, both ends included.

        Where it is known for which time they stand, those that stand in it; the first may begin
        before it, and begins with it then.
        """
        if self.spans is None:
            return self.take((self.ts_ns >= start_ns) & (self.ts_ns <= end_ns))
        kept = self.take((self.spans[1] > start_ns) & (self.spans[0] <= end_ns))
        begin, end = kept.spans or self.spans
        begin = np.maximum(begin, start_ns)
        ts_ns = end if self.semantics == "backward" else begin
        return replace(kept, ts_ns=ts_ns, spans=(begin, end))

    def moved(self, by_ns: int) -> Self:
        """The same, later."""
        spans = None if self.spans is None else (self.spans[0] + by_ns, self.spans[1] + by_ns)
        return replace(self, ts_ns=self.ts_ns + by_ns, spans=spans)


@dataclass(frozen=True, slots=True)
class Device:
    """A device that the trace names; 0 and '' where the trace does not say."""

    ordinal: int
    name: str
    vendor: str
    sm_count: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A group of ranks that communicate; `ranks` is empty where the trace does not list them."""

    name: str
    description: str
    size: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time 0 of the recording lies.

    Attributes:
        origin_ns: the source's own timestamp of time 0, including its base time.
        unix_ns: the same instant as Unix time, or None where the source does not say.
        quality: `exact` (the format defines the anchor), `guess` (it looks like an epoch),
            or `none`.
    """

    origin_ns: int
    unix_ns: int | None
    quality: Literal["exact", "guess", "none"]


@dataclass(frozen=True, slots=True)
class Recording:
    """One rank's trace.

    Attributes:
        source: what the user named, for messages.
        format: `kineto`, `perfetto`, ...
        strings: names and categories that `Slices` points to.
        lanes: the lines on which events are ordered.
        slices: all events with a usable time.
        set_aside: events that cannot be placed in time; the argument `reason` is the notice kind.
        events_read: entries that the source held, `set_aside` and skipped ones included.
        events_skipped: entries that are neither in `slices`, `set_aside`, `counters` nor metadata.
        metadata: what else the source says of itself, as JSON text by key.
        normalised: 0 is the start of the trace, and what cannot be believed is set aside.
        foreign: a Perfetto trace that perfdiag has not written, so that queries on it see slices
            of its own and not those of the canonical trace.
        drawn_ns: starts of the slices that perfdiag has drawn over the trace, which queries on it
            see too.
    """

    source: str
    format: str
    strings: Sequence[str]
    lanes: Sequence[Lane]
    slices: Slices
    set_aside: Slices
    clock: Clock
    counters: Sequence[Counter] = ()
    devices: Sequence[Device] = ()
    rank: int | None = None
    world_size: int | None = None
    host: str = ""
    groups: Sequence[ProcessGroup] = ()
    notices: Sequence[Notice] = ()
    events_read: int = 0
    events_skipped: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    normalised: bool = False
    foreign: bool = False
    drawn_ns: Sequence[int] = ()

    def noting(self, *notices: Notice) -> "Recording":
        """A copy with more notices; those that concern nothing (count 0) are left out."""
        return replace(self, notices=(*self.notices, *(n for n in notices if n.count)))
