"""The part of the traces of a job that shows a finding, as one Perfetto trace."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.rereading import read_again
from perfdiag.classifiers.triage.cutting import Span, cut, cut_regions, cut_steps
from perfdiag.classifiers.triage.occurrences import leaf_pieces
from perfdiag.classifiers.triage.redacted_trace import (
    redact_recording,
    redact_regions,
    redact_steps,
)
from perfdiag.classifiers.triage.redactor import Redactor
from perfdiag.profiler.annotated_trace import RankTrace, write_annotated
from perfdiag.profiler.annotations import Annotations, PieceTrack, SliceTrack
from perfdiag.profiler.facts_in_trace import facts_in_trace
from perfdiag.profiler.opening import Adjust, ReadOptions, find_structure
from perfdiag.profiler.regions import Region
from perfdiag.profiler.steps import Step
from perfdiag.trace_schemas.recording import Recording
from perfdiag.trace_schemas.report import LEAF_LABEL, LEAVES

__all__ = ["Part", "Source", "Sources", "write_slice"]


@dataclass(frozen=True, slots=True)
class Source:
    """The whole trace of a rank, read once more with all that it holds.

    Attributes:
        recording: with the original arguments.
        steps, regions: found in it.
    """

    recording: Recording
    steps: Sequence[Step]
    regions: Sequence[Region]


Sources = Callable[[int], Source]
"""The trace of the rank at a position."""


class ReadSources:
    """Traces of ranks: what the analysis kept, else read again when asked for; two are kept.

    Args:
        judged: the job; its inputs must still be where they were.
        options: how they were read.
        adjust: what is done to each, None for nothing.
    """

    def __init__(self, judged: Judged, options: ReadOptions, adjust: Adjust | None = None) -> None:
        """Begin with none."""
        self._judged, self._options, self._adjust = judged, options, adjust
        self._kept: dict[int, Source] = {}

    def __call__(self, position: int) -> Source:
        """The trace of the rank at a position.

        Raises:
            InputError: it cannot be read again.
            UsageError: it came through a pipe.
        """
        if position not in self._kept:
            if len(self._kept) > 1:
                self._kept.pop(next(iter(self._kept)))
            self._kept[position] = self._source(position)
        return self._kept[position]

    def _source(self, position: int) -> Source:
        rank = self._judged.ranks[position]
        if rank.whole is None:
            recording, steps, regions = read_again(rank.input.path, self._options)
        else:
            recording = rank.whole.recording  # has its notices already
            _, steps, regions = find_structure(recording, self._options)
        return Source(
            recording if self._adjust is None else self._adjust(recording), steps, regions
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One rank of a slice.

    Attributes:
        position: in the job.
        span: on the rank's own clock.
        recording: cut to it, and redacted.
        steps, regions: likewise.
        tracks: what is drawn over it.
        shift_ns: when the rank's time 0 is on the clock of the slice.
    """

    position: int
    span: Span
    recording: Recording
    steps: Sequence[Step]
    regions: Sequence[Region]
    tracks: tuple[SliceTrack | PieceTrack, ...] = ()
    shift_ns: int = 0

    @property
    def name(self) -> str:
        """Of its process in the slice."""
        return f"rank {'?' if self.recording.rank is None else self.recording.rank}"


def part_of(source: Source, position: int, span: Span, redactor: Redactor) -> Part:
    """What a slice shows of one rank, without anything drawn over it."""
    whole = cut(source.recording, span)
    return Part(
        position,
        span,
        redact_recording(whole, redactor),
        redact_steps(cut_steps(source.steps, span), redactor),
        redact_regions(cut_regions(source.regions, span), redactor),
    )


def budget_track(judged: Judged, part: Part) -> PieceTrack:
    """The time budget of a part, as it lies in time."""
    pieces = leaf_pieces(judged.ranks[part.position].facts, part.span)
    start = np.array([piece[1] for piece in pieces], np.int64)
    end = np.array([piece[2] for piece in pieces], np.int64)
    code = np.array([LEAVES.index(piece[0]) for piece in pieces], np.int64)
    colors = [LEAF_LABEL[leaf] or leaf for leaf in LEAVES]
    return PieceTrack("budget", "perfdiag.budget", start, end - start, code, LEAVES, colors)


def shifts(judged: Judged, positions: Sequence[int]) -> Mapping[int, int]:
    """By position, when each rank's time 0 is on one clock that begins with the first of them."""
    clocks = judged.job.clocks
    if clocks is None or len(positions) < 2:
        return dict.fromkeys(positions, 0)
    shift = {one: int(clocks.shift_ns[one]) for one in positions}
    return {one: ns - min(shift.values()) for one, ns in shift.items()}


def write_slice(parts: Sequence[Part]) -> bytes:
    """The parts as one trace: a process for each, all on one clock."""
    with tempfile.TemporaryDirectory(prefix="perfdiag-triage-") as folder:
        path = Path(folder) / "slice.pftrace"
        write_annotated(path, [_traced(part) for part in parts])
        return path.read_bytes()


def _traced(part: Part) -> RankTrace:
    recording = part.recording
    unix_ns = recording.clock.unix_ns
    facts = facts_in_trace(recording, part.steps, part.regions)
    drawn = Annotations(recording.rank, part.tracks)
    return RankTrace(recording, facts, drawn, part.shift_ns, unix_ns)


def with_tracks(part: Part, *tracks: SliceTrack | PieceTrack) -> Part:
    """The part with more drawn over it."""
    return replace(part, tracks=(*part.tracks, *tracks))
