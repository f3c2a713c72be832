"""Makes the bundles of a job, one team after the other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np

from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.triage.bundle import Bundle, Sample, Told
from perfdiag.classifiers.triage.checking import reproduced
from perfdiag.classifiers.triage.cutting import Span
from perfdiag.classifiers.triage.figures import Figure, number_figures
from perfdiag.classifiers.triage.measured import Scope, measured_figures, named_figures, rank_figure
from perfdiag.classifiers.triage.occurrences import (
    Occurrence,
    shares_of,
    taken_spans,
    worst,
    zoomed,
)
from perfdiag.classifiers.triage.redactor import Redactor
from perfdiag.classifiers.triage.routing import Assigned, Assignment
from perfdiag.classifiers.triage.signatures import Signature, signatures
from perfdiag.classifiers.triage.slicing import (
    Part,
    Sources,
    budget_track,
    part_of,
    shifts,
    with_tracks,
    write_slice,
)
from perfdiag.classifiers.triage.subset import subset
from perfdiag.classifiers.triage.told import (
    Finding,
    budget_figures,
    finding_track,
    fix_figures,
    job_figures,
    job_track,
    length_figure,
)
from perfdiag.profiler.annotations import RawSlice, SliceTrack
from perfdiag.profiler.inputs import recorded_inputs
from perfdiag.profiler.opening import Adjust, ReadOptions
from perfdiag.trace_schemas.recording import Counter
from perfdiag.trace_schemas.report import LEAF_LABEL, Fix, Report

__all__ = ["Maker", "TriageOptions"]

LARGEST_SLICE = 10_000_000
"""Bytes, which a tracker of issues still takes as an attachment (GitHub: 25 MB, 10 MB on free
plans for images and videos)."""

MOST_ZOOMS = 12
"""Times that a slice is halved until it is small enough: a 4096th of the step is left."""


@dataclass(frozen=True, slots=True)
class TriageOptions:
    """How bundles are made.

    Attributes:
        today: on which rules may have expired.
        reading: how the traces were read.
        adjust: what was done to each trace, None for nothing.
        redact: hide hosts, users, paths and names of the user's own.
        largest_bytes: of a slice.
    """

    today: date
    reading: ReadOptions = field(default_factory=ReadOptions)
    adjust: Adjust | None = None
    redact: bool = False
    largest_bytes: int = LARGEST_SLICE


@dataclass(frozen=True, slots=True)
class Maker:
    """What all bundles of a job are made from.

    Attributes:
        judged: the job.
        report: of it, redacted if that is asked for.
        redactor: gives the pseudonyms.
        sources: the traces.
        options: how bundles are made.
    """

    judged: Judged
    report: Report
    redactor: Redactor
    sources: Sources
    options: TriageOptions

    def bundle(self, assignment: Assignment) -> Bundle:
        """What one team gets."""
        best = assignment.fixes[0]
        occurrence = worst(self.judged, best.fix.id)
        span, parts, data = self._small_enough(assignment, occurrence)
        general, told = self._figures(assignment, parts, occurrence.ordinal)
        sound = self._sound(data, general, told)
        fixes = {one.fix.id for one in assignment.fixes}
        return Bundle(
            team=assignment.team,
            report=subset(self.report, fixes),
            fixes=tuple(replace(t, figures=_kept(t.figures, sound)) for t in told),
            general=_kept(general, sound),
            span=span,
            ranks=tuple(part.name for part in parts),
            inputs=tuple(self.report.inputs[part.position] for part in parts),
            shrunk=span != occurrence.span,
            slice=data,
            signatures=tuple(self._signatures(best, occurrence, span)),
            samples=tuple(sample for part in parts for sample in _samples(part)),
            left_out=len(sound) - sum(sound.values()),
        )

    def _small_enough(
        self, assignment: Assignment, occurrence: Occurrence
    ) -> tuple[Span, list[Part], bytes]:
        """The step, or as much of it around the finding as a slice can hold."""
        span = occurrence.span
        share = shares_of(self.judged, assignment.fixes[0].fix.id)[occurrence.position]
        for _ in range(MOST_ZOOMS):
            parts = self._parts(assignment, occurrence, span)
            data = write_slice(parts)
            if len(data) < self.options.largest_bytes or span[1] - span[0] < 4:
                break
            span = zoomed(span, share)
        return span, parts, data

    def _parts(self, assignment: Assignment, occurrence: Occurrence, span: Span) -> list[Part]:
        positions = [occurrence.position, *occurrence.others]
        shift = shifts(self.judged, positions)
        parts = []
        for position in positions:
            by = shift[occurrence.position] - shift[position]
            own = (span[0] + by, span[1] + by)
            part = part_of(self.sources(position), position, own, self.redactor)
            part = with_tracks(part, budget_track(self.judged, part))
            parts.append(replace(part, shift_ns=shift[position]))
        first = parts[0]
        drawn = [job_track(self.report, span)]
        drawn += [self._drawn(one, first, occurrence.ordinal) for one in assignment.fixes]
        parts[0] = replace(first, tracks=(*drawn, *first.tracks))
        return parts

    def _drawn(self, assigned: Assigned, part: Part, step: int) -> SliceTrack:
        ids = [fix.id for fix in self.report.fixes]
        found = Finding(
            self._fix(assigned),
            ids.index(assigned.fix.id) + 1,
            assigned.leaf,
            step,
            self._spots(assigned, part),
            self._evidence(assigned, part),
        )
        return finding_track(found, part.span)

    def _evidence(self, assigned: Assigned, part: Part) -> tuple[RawSlice, ...]:
        """The slices that prove a fix on the rank of a part."""
        share = shares_of(self.judged, assigned.fix.id).get(part.position)
        proofs = () if share is None else share.finding.evidence
        return tuple(RawSlice(*spot) for proof in proofs for spot in proof.spots)

    def _spots(self, assigned: Assigned, part: Part) -> list[Span]:
        """The time in a part that a fix is about; none where it is not on that rank."""
        share = shares_of(self.judged, assigned.fix.id).get(part.position)
        if share is None:
            return []
        start, end = taken_spans(share, part.span)
        return list(zip(start.tolist(), end.tolist(), strict=True))

    def _fix(self, assigned: Assigned) -> Fix:
        """As the report has it that is given away."""
        return next(fix for fix in self.report.fixes if fix.id == assigned.fix.id)

    def _figures(
        self, assignment: Assignment, parts: Sequence[Part], step: int
    ) -> tuple[tuple[Figure, ...], list[Told]]:
        """Figures in the order in which they are read, numbered throughout."""
        scopes = [Scope(part.name, part.recording, len(parts) == 1) for part in parts]
        first = parts[0]
        leaves = self.judged.ranks[first.position].facts.timeline.budget(*first.span)
        general: list[Figure] = [
            *job_figures(self.report),
            length_figure(first.span),
            rank_figure(scopes),
            *budget_figures(leaves, scopes[0].where),
            *(figure for scope in scopes for figure in measured_figures(scope)),
        ]
        groups: list[list[Figure]] = [general]
        for one in assignment.fixes:
            spots = self._spots(one, first)
            taken = np.array(spots, np.int64).reshape(-1, 2)
            taken_ns = sum(end - start for start, end in spots)
            about = fix_figures(self._fix(one), step, taken_ns)
            of_host = LEAF_LABEL[one.leaf] in ("host-bound", None)
            named = named_figures(scopes[0], (taken[:, 0], taken[:, 1]), of_host=of_host)
            groups.append([*about, *named])
        numbered = iter(number_figures(figure for group in groups for figure in group))
        done = [tuple(next(numbered) for _ in group) for group in groups]
        told = [
            self._told(one, figures)
            for one, figures in zip(assignment.fixes, done[1:], strict=True)
        ]
        return done[0], told

    def _told(self, assigned: Assigned, figures: tuple[Figure, ...]) -> Told:
        prose = self.redactor.prose
        lapsed = tuple(prose(line) for line in assigned.owned.lapsed)
        return Told(self._fix(assigned), prose(assigned.owned.reason), lapsed, figures)

    def _sound(
        self, data: bytes, general: Sequence[Figure], told: Sequence[Told]
    ) -> dict[str, bool]:
        """By id, whether the query of each figure returns it: what does not is not stated."""
        figures = [*general, *(one for each in told for one in each.figures)]
        reading = self.options.reading
        found = reproduced(data, figures, reading.engine, reading.deadline_s)
        return {one.id: good for one, good in zip(figures, found, strict=True)}

    def _signatures(
        self, assigned: Assigned, occurrence: Occurrence, span: Span
    ) -> Iterable[Signature]:
        facts = self.judged.ranks[occurrence.position].facts
        recording = self.sources(occurrence.position).recording
        inputs = recorded_inputs(recording, facts.model.hosts)
        share = shares_of(self.judged, assigned.fix.id)[occurrence.position]
        return signatures(facts, inputs, span, taken_spans(share, span), self.redactor.name)


def _kept(figures: Sequence[Figure], sound: dict[str, bool]) -> tuple[Figure, ...]:
    return tuple(one for one in figures if sound[one.id])


def _samples(part: Part) -> Iterable[Sample]:
    for counter in part.recording.counters:
        yield from _of_counter(part.name, counter)


def _of_counter(rank: str, counter: Counter) -> Iterable[Sample]:
    device = None if counter.device < 0 else counter.device
    for ts_ns, value in zip(counter.ts_ns.tolist(), counter.values.tolist(), strict=True):
        yield Sample(rank, device, counter.name, counter.unit, ts_ns, value)
