"""Traces of ranks with what perfdiag draws over them, on one clock, as one Perfetto trace."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.annotation_packets import Arrows, annotation_packets
from perfdiag.profiler.annotations import Annotations, RawSlice, SliceTrack
from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.nesting import nest
from perfdiag.profiler.sources.rank_parts import FIRST_CLOCK
from perfdiag.profiler.trace_file import is_gzip, write_pieces
from perfdiag.profiler.trace_packets import MetaSlice, clock_packet
from perfdiag.profiler.trace_writer import TraceOptions, track_base, write_trace
from perfdiag.profiler.whole_file import replacing
from perfdiag.trace_schemas.recording import ABSENT, DEVICE_WORK, Int64s, Kind, Recording

__all__ = ["RankTrace", "cut", "write_annotated"]

Bools = NDArray[np.bool_]

_FIRST_ARROW = 1 << 27
"""Offset of flows from `track_base`: those from launches to work are below."""


@dataclass(frozen=True, slots=True)
class RankTrace:
    """The whole trace of one rank, and what is drawn over it.

    Attributes:
        recording: with the original arguments of all slices.
        meta: facts that are written into the trace, steps and regions among them.
        annotations: on the rank's own clock, as the recording; None for none.
        shift_ns: when the rank's time 0 is on the clock of the file; not negative.
        unix_ns: Unix time of the rank's time 0, None where it is not known.
    """

    recording: Recording
    meta: Sequence[MetaSlice]
    annotations: Annotations | None = None
    shift_ns: int = 0
    unix_ns: int | None = None


def write_annotated(output: Path, ranks: Iterable[RankTrace]) -> int:
    """Write the traces of ranks into one file, in which each has a process of its own.

    Args:
        output: `.pftrace`; where its name ends in `.gz` it becomes a gzip archive.
        ranks: one after the other; each is dropped before the next one is asked for.

    Returns:
        The size of the file in bytes.

    Raises:
        UsageError: the file cannot be written.
    """
    pieces = (piece for rank in ranks for piece in _pieces(rank))
    with replacing(output) as file:
        write_pieces(file, pieces, gzipped=is_gzip(output))
        return file.tell()


def _pieces(trace: RankTrace) -> Iterator[bytes]:
    base = track_base(trace.recording)
    clock = FIRST_CLOCK + (base >> 28) % FIRST_CLOCK
    yield clock_packet(trace.unix_ns, trace.shift_ns, clock)
    arrows, beside = _arrows(trace.recording, trace.annotations, base + _FIRST_ARROW)
    how = TraceOptions(clock=clock, beside=beside)
    yield from write_trace(trace.recording, trace.meta, how)
    if trace.annotations is not None:
        yield from annotation_packets(trace.annotations, base, clock, arrows)


def _arrows(
    recording: Recording, annotations: Annotations | None, first: int
) -> tuple[Arrows, list[Int64s]]:
    """Flows from annotations to their evidence: ids by both ends, and columns by slice."""
    ids: dict[tuple[int, RawSlice], int] = {}
    columns: list[Int64s] = []
    if annotations is None:
        return ids, columns
    rows = _rows_of(recording, annotations.evidence)
    tracks = [track for track in annotations.tracks if isinstance(track, SliceTrack)]
    for number, one in enumerate(one for track in tracks for one in track.slices):
        for spot in one.evidence:
            if spot in rows and (number, spot) not in ids:
                ids[number, spot] = first + len(ids)
                _put(columns, rows[spot], ids[number, spot], len(recording.slices))
    return ids, columns


def _put(columns: list[Int64s], row: int, flow: int, count: int) -> None:
    """Note a flow in the first column in which the slice has none."""
    free = next((column for column in columns if not column[row]), None)
    if free is None:
        free = np.zeros(count, np.int64)
        columns.append(free)
    free[row] = flow


def _rows_of(recording: Recording, spots: Sequence[RawSlice]) -> dict[RawSlice, int]:
    """Rows of slices that a recording holds; of several in one place work comes first."""
    slices = recording.slices
    starts = np.array(sorted({spot.ts_ns for spot in spots}), np.int64)
    near = np.flatnonzero(np.isin(slices.ts_ns, starts))
    mark = np.isin(slices.kind[near], (Kind.DEVICE_ANNOTATION, Kind.DEVICE_SYNC))
    near = near[np.argsort(mark, kind="stable")][::-1]
    where = zip(
        slices.lane[near].tolist(),
        slices.ts_ns[near].tolist(),
        slices.end_ns[near].tolist(),
        strict=True,
    )
    found = dict(zip(map(RawSlice._make, where), near.tolist(), strict=True))
    return {spot: found[spot] for spot in spots if spot in found}


def cut(trace: RankTrace, window_ns: tuple[int, int]) -> RankTrace:
    """The part of a trace in a window: whole slices that overlap it, and what launched its work.

    Steps, regions and annotations are those that overlap it; times stay as they are.

    Args:
        trace: of a rank.
        window_ns: on the rank's clock.
    """
    recording, (start, end) = trace.recording, window_ns
    kept = _in_window(recording, start, end)
    counters = [counter.within(start, end) for counter in recording.counters]
    slices = recording.slices.take(kept)
    none = recording.set_aside.take(np.zeros(len(recording.set_aside), bool))
    part = replace(recording, slices=slices, set_aside=none, counters=counters)
    names = {recording.strings[code] for code in np.unique(slices.name).tolist()}
    return replace(
        trace,
        recording=part,
        meta=[fact for fact in trace.meta if _is_kept(fact, window_ns, names)],
        annotations=trace.annotations and trace.annotations.within(start, end),
    )


def _is_kept(fact: MetaSlice, window_ns: tuple[int, int], names: set[str]) -> bool:
    if fact.category in ("perfdiag.step", "perfdiag.region"):
        return fact.ts_ns < window_ns[1] and fact.ts_ns + fact.dur_ns > window_ns[0]
    if fact.category == "perfdiag.set_aside":
        return False
    return fact.category != "perfdiag.kernel_class" or fact.name in names


def _in_window(recording: Recording, start_ns: int, end_ns: int) -> Bools:
    """(n,) slices that overlap a window, launches of its work, and what is around these."""
    slices = recording.slices
    inside = (slices.ts_ns < end_ns) & (slices.end_ns > start_ns)
    inside |= (slices.ts_ns >= start_ns) & (slices.ts_ns < end_ns)
    launch = launch_rows(slices)
    launched = inside & np.isin(slices.kind, DEVICE_WORK) & (launch != ABSENT)
    above = np.unique(launch[launched])
    parent = nest(slices.ts_ns, slices.dur_ns, slices.lane).parent
    kept = np.asarray(inside, np.bool_).copy()
    while len(above):
        kept[above] = True
        above = np.unique(parent[above])
        above = above[above != ABSENT]
        above = above[~kept[above]]
    return kept
