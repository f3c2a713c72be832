"""The report of a job, put together from what was found on its ranks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from perfdiag import __version__
from perfdiag.classifiers.collectives import collective_rows, link_peaks
from perfdiag.classifiers.counter_regions import CounterRows
from perfdiag.classifiers.counters_beside import CountersBeside
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import Diagnosed
from perfdiag.classifiers.job import Job
from perfdiag.classifiers.labels import add_totals, withheld
from perfdiag.classifiers.learned import learned
from perfdiag.classifiers.opinions import RankOpinions, mean_opinion
from perfdiag.classifiers.outcome import outcome
from perfdiag.classifiers.replay import Replay
from perfdiag.classifiers.roofs import roofline_row
from perfdiag.classifiers.verdicts import RankVerdict
from perfdiag.profiler.annotated_trace import RankTrace
from perfdiag.profiler.sources.files import Blob
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import Notice

__all__ = ["Analysed", "assemble"]


@dataclass(frozen=True, slots=True)
class Analysed:
    """One input, done; `whole` is all that was read of it, where that is kept."""

    input: report.Input
    verdict: RankVerdict
    diagnosed: Diagnosed
    notices: tuple[Notice, ...]
    engine: report.EngineInfo
    counters: CounterRows
    opinions: RankOpinions
    whole: RankTrace | None = None

    @property
    def facts(self) -> RankFacts:
        """What its verdict rests on."""
        return self.diagnosed.facts


def assemble(
    done: list[Analysed],
    job: Job,
    replay: Replay,
    skipped: list[Blob],
    thresholds: report.Thresholds,
    beside: CountersBeside,
) -> report.Report:
    """Put the report together.

    Args:
        done: the ranks.
        job: all of them together.
        replay: of it.
        skipped: inputs that are no traces.
        thresholds: of the diagnoses.
        beside: counters.
    """
    ranks = [_rank(item, offset) for item, offset in zip(done, _offsets(job), strict=True)]
    verdict = _job(done, ranks, job)
    found = outcome([item.diagnosed for item in done], job, verdict.label, replay)
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
        model=_model(),
    )


def _model() -> dict[str, Any]:
    """Which classifier it was; empty where there is none."""
    model = learned()
    if model is None:
        return {}
    card = model.card
    return {"sha256": card.sha256, "features": card.features, "least": card.least}


def _collectives(done: list[Analysed], job: Job) -> list[report.Collective]:
    """All ranks' collectives, beside the peak of the links of their devices."""
    hosts = [item.input.host for item in done]
    rows: list[report.Collective] = []
    for item in done:
        rows += collective_rows(item.facts, link_peaks(item.facts.peaks, hosts, job.groups))
    return rows


def _notice_row(notice: Notice, path: str | None) -> report.NoticeRow:
    return report.NoticeRow(
        kind=notice.kind,
        severity=notice.severity,
        count=notice.count,
        input=path,
        message=notice.message,
    )


def _between_ranks(done: list[Analysed]) -> list[Notice]:
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


def _rank(item: Analysed, offset_ns: int | None) -> report.Rank:
    verdict = item.verdict
    return report.Rank(
        rank=item.facts.rank,
        label=verdict.verdict.label,
        confidence=verdict.verdict.confidence,
        by_rules=verdict.verdict.by_rules,
        why=verdict.verdict.why,
        totals_ns=verdict.totals,
        budget_ns=verdict.budget_ns,
        waits=[
            report.Wait(late_rank=w.late_rank, time_ns=w.time_ns, leaf_ns=dict(w.leaf_ns))
            for w in item.facts.waits or ()
        ],
        clock_offset_ns=offset_ns,
        top=verdict.top,
        roofline=roofline_row(item.facts, verdict.used),
        counters=item.counters.rows,
        steps=list(verdict.steps),
    )


def _job(done: list[Analysed], ranks: list[report.Rank], job: Job) -> report.Job:
    """All ranks added up, waits charged; one rank speaks for itself."""
    budget = job.charged([rank.budget_ns for rank in ranks])
    culprit = job.culprit
    judged = [item for item in done if item.verdict.verdict.by_rules != "unknown"]
    if len(done) == 1:
        verdict = done[0].verdict.verdict
    elif judged:
        budgets = [item.verdict.budget_ns for item in judged]
        verdict = job.verdict(job.charged(budgets), mean_opinion([one.opinions for one in judged]))
    else:
        why = done[0].verdict.verdict.why
        verdict = withheld(f"No rank has a verdict. The first: {why}")
    return report.Job(
        label=verdict.label,
        confidence=verdict.confidence,
        runner_up=verdict.runner_up,
        by_rules=verdict.by_rules,
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
