"""From the facts of ranks to the report of their job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from perfdiag.classifiers.counter_regions import CounterRows
from perfdiag.classifiers.counters_beside import CountersBeside
from perfdiag.classifiers.diagnosis import Diagnose, Diagnosis
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import Diagnosed, diagnose_rank
from perfdiag.classifiers.job import Job, gather
from perfdiag.classifiers.opinions import RankOpinions, guarded_opinions
from perfdiag.classifiers.options import Options
from perfdiag.classifiers.outcome import guarded_replay
from perfdiag.classifiers.reading import Read
from perfdiag.classifiers.replay import Replay
from perfdiag.classifiers.reporting import Analysed, assemble
from perfdiag.classifiers.thresholds import fingerprint, tuned_diagnoses
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.profiler.slice_ids import slice_ids
from perfdiag.profiler.sources.files import Blob
from perfdiag.trace_schemas import report

__all__ = ["Judge", "Judged"]

Diagnoses = Sequence[tuple[Diagnosis, Diagnose]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A job with its verdict, and what the verdict rests on.

    Attributes:
        report: what is shown of it.
        ranks: as the report has them, in its order.
        job: all ranks together.
        replay: of the job.
    """

    report: report.Report
    ranks: list[Analysed]
    job: Job
    replay: Replay


@dataclass(frozen=True, slots=True)
class Judge:
    """What a verdict needs beside traces.

    Attributes:
        options: of the user.
        diagnoses: with the thresholds that they set.
        beside: the counters that they name.
    """

    options: Options
    diagnoses: Diagnoses
    beside: CountersBeside

    @classmethod
    def prepare(cls, options: Options) -> "Judge":
        """Look up the diagnoses, and read the counters.

        Raises:
            InputError: a file of counters cannot be read.
            UsageError: there is no diagnosis or threshold of a name that is given.
        """
        return cls(options, tuned_diagnoses(options.thresholds), CountersBeside.read(options))

    def judged(self, read: list[Read], skipped: list[Blob]) -> Judged:
        """Judge the ranks of a job, in their order.

        Args:
            read: the ranks.
            skipped: inputs that are no traces.
        """
        options = self.options
        read = self.beside.placed(read)
        job = gather([item.facts for item in read])
        named = options.time_range_ns is None and options.step_marker is None
        replay = guarded_replay(job)
        opinions, broken = guarded_opinions(job.ranks, replay)
        job = replace(job, notices=(*job.notices, *broken))
        ranks = zip(read, job.ranks, self.beside.found, opinions, strict=True)
        done = [_judged(_Rank(*rank), self.diagnoses, named=named) for rank in ranks]
        thresholds = report.Thresholds(
            sha256=fingerprint(self.diagnoses),
            config=options.config,
            overridden={name: dict(limits) for name, limits in options.thresholds.items()},
        )
        made = assemble(done, job, replay, skipped, thresholds, self.beside)
        return Judged(made, done, job, replay)


class _Rank(NamedTuple):
    """A rank and what is known of it; the job may have split the collectives of its facts."""

    item: Read
    facts: RankFacts
    counters: CounterRows
    opinions: RankOpinions


def _judged(rank: _Rank, diagnoses: Diagnoses, *, named: bool) -> Analysed:
    """Judge and diagnose a rank.

    Slices that prove findings are named only where a query sees the same trace with the same steps.
    """
    item, facts, counters, opinions = rank
    verdict = judge_rank(facts, opinions)
    diagnosed = diagnose_rank(facts, diagnoses, verdict.unknown)
    found = (*facts.notices, *verdict.notices, *counters.notices)
    notices = (*item.recording.notices, *found)
    diagnosed = _with_slice_ids(diagnosed, item) if named else diagnosed
    return Analysed(
        item.input, verdict, diagnosed, notices, item.engine, counters, opinions, item.whole
    )


def _with_slice_ids(diagnosed: Diagnosed, item: Read) -> Diagnosed:
    """Look up the slices that prove findings, unless the trace numbers its slices its own way."""
    spots = diagnosed.spots
    if item.recording.foreign or not spots:
        return diagnosed
    lane, start, end = (np.array(side, np.int64) for side in zip(*spots, strict=True))
    found = slice_ids(item.recording, item.meta, lane, (start, end)).tolist()
    known = {spot: number for spot, number in zip(spots, found, strict=True) if number >= 0}
    return replace(diagnosed, slice_ids=known)
