"""From inputs to the report: the whole way, rank by rank."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiag import __version__
from perfdiag.classifiers.collectives import collective_rows, link_peaks
from perfdiag.classifiers.counter_places import Placed, place_counters, without_complaint
from perfdiag.classifiers.counter_regions import CounterRows, counter_rows
from perfdiag.classifiers.counter_report import counter_file
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import Diagnosed, diagnose_rank
from perfdiag.classifiers.job import Job, gather
from perfdiag.classifiers.labels import add_totals, withheld
from perfdiag.classifiers.outcome import outcome
from perfdiag.classifiers.peaks import chosen_peaks
from perfdiag.classifiers.reading import Read, read_all
from perfdiag.classifiers.rejudged import rejudge
from perfdiag.classifiers.roofs import roofline_row, utilisation_notices
from perfdiag.classifiers.thresholds import Diagnoses, Overrides, fingerprint
from perfdiag.classifiers.verdicts import RankVerdict, judge_rank
from perfdiag.profiler.counters import ClockHints
from perfdiag.profiler.counters.in_trace import trace_timelines
from perfdiag.profiler.counters.opening import OpenedCounters, open_counters
from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.opening import (
    ReadOptions,
    TimeUnit,
)
from perfdiag.profiler.slice_ids import slice_ids
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.notices import Notice

__all__ = ["Options", "Progress", "analyze"]

Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to analyse.

    Attributes:
        engine: trace processor to use.
        step_marker: regular expression for names of steps.
        device_track: regular expression for names of device tracks in foreign traces.
        time_unit: unit of the times of a JSON trace, where it is not the format's.
        max_memory_bytes: refuse inputs that need more.
        deadline_s: for a call to the trace processor.
        time_range_ns: look only at this part of the trace, from its start.
        thresholds: of diagnoses, where they are not the usual ones.
        config: where these were set.
        jobs: processes in which several traces are read; with more than 1 the caller's main
            module must be importable without running anything.
        counters: files of hardware counters.
        counters_offset_ns: is added to times of counters; of a file that does not say when it was
            recorded, the time from the start of the trace to its first sample.
        counters_utc_offset_s: seconds that local times in these files are ahead of UTC.
        device: name of a device of the table, in place of that of the trace.
        ceilings: file of roofs that were measured on the device.
    """

    engine: EngineName = "wasm"
    step_marker: str | None = None
    device_track: str | None = None
    time_unit: TimeUnit | None = None
    max_memory_bytes: int | None = None
    deadline_s: float = 600.0
    time_range_ns: tuple[int, int] | None = None
    thresholds: Overrides = field(default_factory=dict)
    config: str | None = None
    jobs: int = 1
    counters: Sequence[str] = ()
    counters_offset_ns: int | None = None
    counters_utc_offset_s: int | None = None
    device: str | None = None
    ceilings: str | None = None

    @property
    def reading(self) -> ReadOptions:
        """The part that concerns reading."""
        return ReadOptions(
            self.engine,
            self.step_marker,
            self.device_track,
            self.time_unit,
            self.deadline_s,
            self.max_memory_bytes,
            self.time_range_ns,
        )


@dataclass(frozen=True, slots=True)
class _Analysed:
    """One input, done."""

    input: report.Input
    verdict: RankVerdict
    diagnosed: Diagnosed
    notices: tuple[Notice, ...]
    engine: report.EngineInfo
    counters: CounterRows

    @property
    def facts(self) -> RankFacts:
        """What its verdict rests on."""
        return self.diagnosed.facts


def analyze(
    paths: Sequence[str], options: Options, progress: Progress | None = None
) -> report.Report:
    """Analyse the ranks that the paths name.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or name a device that is not known.
    """
    tell = progress or (lambda text, share: None)
    peaks = chosen_peaks(options.device, options.ceilings)
    beside = _Counters.read(options)
    skipped: list[Blob] = []
    diagnoses = Diagnoses(options.thresholds)
    traces = _traces(paths, options, skipped)
    found = read_all(traces, options.reading, options.jobs, tell, diagnoses.prepare, peaks)
    read = sorted(found, key=_by_rank)
    if not read:
        raise InputError(", ".join(paths), "holds no trace")
    tell("judging", 0.9)
    read = beside.placed(read)
    job = gather([item.facts for item in read])
    named = options.time_range_ns is None and options.step_marker is None
    done = [
        _judged(item, facts, diagnoses, counters, named=named)
        for item, facts, counters in zip(read, job.ranks, beside.found, strict=True)
    ]
    result = _report(done, job, skipped, _thresholds(options, diagnoses), beside)
    tell("done", 1.0)
    return result


@dataclass(slots=True)
class _Counters:
    """Files of counters beside the traces, and where their counters belong."""

    files: list[OpenedCounters]
    offset_ns: int | None
    places: Placed = field(default_factory=lambda: Placed([], []))
    found: list[CounterRows] = field(default_factory=list)

    @classmethod
    def read(cls, options: Options) -> "_Counters":
        hints = ClockHints(utc_offset_s=options.counters_utc_offset_s)
        return cls(open_counters(options.counters, hints), options.counters_offset_ns)

    def placed(self, read: list[Read]) -> list[Read]:
        """The ranks, each with its counters and with what these say of its kernels."""
        files = [opened.found for opened in self.files]
        ranks, hosts = [item.facts for item in read], [item.input.host for item in read]
        own = [(item.input.path, trace_timelines(item.recording)) for item in read]
        self.places = place_counters(files, ranks, hosts, self.offset_ns, own)
        facts = [
            replace(one, counters=counters) if counters else one
            for one, counters in zip(ranks, self.places.counters, strict=True)
        ]
        self.found = [counter_rows(one) for one in facts]
        return [
            replace(item, facts=rejudge(one, found.judged))
            for item, one, found in zip(read, facts, self.found, strict=True)
        ]

    @property
    def notices(self) -> list[tuple[str, Notice]]:
        """What must be known of the files, each with its path."""
        files = (without_complaint(opened.found, self.offset_ns) for opened in self.files)
        own = ((file.path, notice) for file in files for notice in file.notices)
        return [*own, *self.places.notices]

    def rows(self, ranks: Sequence[int | None]) -> list[report.CounterFile]:
        """The files as the report has them."""
        pairs = zip(self.files, self.places.ranks, strict=True)
        return [counter_file(opened, [ranks[i] for i in on]) for opened, on in pairs]


def _by_rank(item: Read) -> tuple[bool, int, str]:
    """Ranks in their order, those without a number last, whatever order they were named in."""
    rank = item.facts.rank
    return rank is None, rank or 0, item.input.path


def _traces(paths: Sequence[str], options: Options, skipped: list[Blob]) -> Iterator[Blob]:
    """The inputs that are traces; the others are noted."""
    limit = {} if options.max_memory_bytes is None else {"limit_bytes": options.max_memory_bytes}
    for blob in expand(paths, **limit):
        if blob.skipped:
            skipped.append(blob)
        else:
            yield blob


def _judged(
    item: Read, facts: RankFacts, diagnoses: Diagnoses, counters: CounterRows, *, named: bool
) -> _Analysed:
    """Judge and diagnose a rank by its facts, in which the job may have split its collectives.

    Slices that prove findings are named only where a query sees the same trace with the same steps.
    """
    verdict = judge_rank(facts)
    diagnosed = diagnose_rank(facts, diagnoses.known, verdict.unknown)
    found = (*facts.notices, *utilisation_notices(facts), *counters.notices)
    notices = (*item.recording.notices, *found)
    diagnosed = _with_slice_ids(diagnosed, item) if named else diagnosed
    return _Analysed(item.input, verdict, diagnosed, notices, item.engine, counters)


def _with_slice_ids(diagnosed: Diagnosed, item: Read) -> Diagnosed:
    """Look up the slices that prove findings, unless the trace numbers its slices its own way."""
    spots = diagnosed.spots
    if item.recording.foreign or not spots:
        return diagnosed
    lane, start, end = (np.array(side, np.int64) for side in zip(*spots, strict=True))
    found = slice_ids(item.recording, item.meta, lane, (start, end)).tolist()
    known = {spot: number for spot, number in zip(spots, found, strict=True) if number >= 0}
    return replace(diagnosed, slice_ids=known)


def _thresholds(options: Options, diagnoses: Diagnoses) -> report.Thresholds:
    return report.Thresholds(
        sha256=fingerprint(diagnoses.known),
        config=options.config,
        overridden={name: dict(limits) for name, limits in options.thresholds.items()},
    )


def _report(
    done: list[_Analysed],
    job: Job,
    skipped: list[Blob],
    thresholds: report.Thresholds,
    beside: "_Counters",
) -> report.Report:
    ranks = [_rank(item, offset) for item, offset in zip(done, _offsets(job), strict=True)]
    verdict = _job(done, ranks, job)
    found = outcome([item.diagnosed for item in done], job, verdict.label)
    several = [*_between_ranks(done), *job.notices, *found.notices]
    return report.Report(
        version=__version__,
        engine=done[0].engine,
        inputs=[item.input for item in done],
        notices=[
            *(_notice_row(notice, None) for notice in several),
            *(
                _notice_row(Notice("input.skipped", "info", 1, blob.skipped), blob.path)
                for blob in skipped
            ),
            *(_notice_row(n, item.input.path) for item in done for n in item.notices),
            *(_notice_row(notice, path) for path, notice in beside.notices),
        ],
        job=verdict,
        ranks=ranks,
        fixes=found.fixes,
        findings=found.findings,
        thresholds=thresholds,
        collectives=_collectives(done, job),
        counters=beside.rows([item.facts.rank for item in done]),
        replay=found.replay,
        model={},
    )


def _collectives(done: list[_Analysed], job: Job) -> list[report.Collective]:
    """All ranks' collectives, beside the peak of the links of their devices."""
    hosts = [item.input.host for item in done]
    rows: list[report.Collective] = []
    for item in done:
        device = item.facts.timeline.device
        name = next((d.name for d in item.input.devices if d.ordinal == device), "")
        rows += collective_rows(item.facts, link_peaks(name, hosts, job.groups))
    return rows


def _notice_row(notice: Notice, path: str | None) -> report.NoticeRow:
    return report.NoticeRow(
        kind=notice.kind,
        severity=notice.severity,
        count=notice.count,
        input=path,
        message=notice.message,
    )


def _between_ranks(done: list[_Analysed]) -> list[Notice]:
    """What only shows with all inputs side by side."""
    ranks = [item.input.rank for item in done if item.input.rank is not None]
    twice = sorted({r for r in ranks if ranks.count(r) > 1})
    notices = []
    if twice:
        listed = ", ".join(map(str, twice))
        message = f"Several inputs claim to be rank {listed}: each is shown, none replaces another."
        notices.append(Notice("rank.duplicate", "error", len(twice), message))
    world = max((item.input.world_size or 0 for item in done), default=0)
    missing = sorted(set(range(world)) - set(ranks)) if len(done) > 1 and ranks else []
    if missing:
        named = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        message = (
            f"{len(missing)} of {world} ranks are not among the inputs ({named}): the verdict is "
            "on the others, any of the missing may be late, and what remains of a collective with "
            "one of them may be waiting."
        )
        notices.append(Notice("rank.missing", "warning", len(missing), message))
    return notices


def _offsets(job: Job) -> list[int | None]:
    """How far each rank's clock was off."""
    if job.clocks is None or not job.clocks.known:
        return [None] * len(job.ranks)
    return [int(offset) for offset in job.clocks.offset_ns]


def _rank(item: _Analysed, offset_ns: int | None) -> report.Rank:
    verdict = item.verdict
    return report.Rank(
        rank=item.facts.rank,
        label=verdict.verdict.label,
        confidence=verdict.verdict.confidence,
        why=verdict.verdict.why,
        totals_ns=verdict.totals,
        budget_ns=verdict.budget_ns,
        waits=[
            report.Wait(late_rank=w.late_rank, time_ns=w.time_ns, leaf_ns=dict(w.leaf_ns))
            for w in item.facts.waits or ()
        ],
        clock_offset_ns=offset_ns,
        top=verdict.top,
        roofline=roofline_row(item.facts),
        counters=item.counters.rows,
        steps=list(verdict.steps),
    )


def _job(done: list[_Analysed], ranks: list[report.Rank], job: Job) -> report.Job:
    """All ranks added up, waits charged; one rank speaks for itself."""
    budget = job.charged([rank.budget_ns for rank in ranks])
    culprit = job.culprit
    judged = [item for item in done if item.verdict.verdict.label != "unknown"]
    if len(done) == 1:
        verdict = done[0].verdict.verdict
    elif judged:
        verdict = job.verdict(job.charged([item.verdict.budget_ns for item in judged]))
    else:
        verdict = withheld("No rank has a verdict: see the notices.")
    return report.Job(
        label=verdict.label,
        confidence=verdict.confidence,
        runner_up=verdict.runner_up,
        probabilities={str(k): v for k, v in verdict.probabilities.items()},
        culprit_rank=None if culprit is None else job.ranks[culprit].rank,
        why=verdict.why,
        step_time_ns=_step_time(ranks),
        totals_ns=add_totals([rank.totals_ns for rank in ranks]),
        budget_ns=budget,
    )


def _step_time(ranks: list[report.Rank]) -> report.StepTime:
    times = [step.dur_ns for rank in ranks for step in rank.steps]
    if not times:
        return report.StepTime(n=0, median=None, p10=None, p90=None)
    p10, median, p90 = (int(v) for v in np.percentile(times, (10, 50, 90)))
    return report.StepTime(n=len(times), median=median, p10=p10, p90=p90)
