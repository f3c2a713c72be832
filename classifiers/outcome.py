"""What comes of a job's findings: the fixes and their worth, by replay where it can be told."""

from collections.abc import Sequence
from typing import NamedTuple

from perfdiag.classifiers.findings import Diagnosed
from perfdiag.classifiers.fixes import concerns, merge_findings, rank_fixes, revalue
from perfdiag.classifiers.job import Job
from perfdiag.classifiers.replay import (
    Replay,
    disagreement,
    replay_job,
    replay_row,
    without_replay,
)
from perfdiag.classifiers.savings import replay_savings, worthwhile
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import Notice

__all__ = ["Outcome", "guarded_replay", "outcome"]


class Outcome(NamedTuple):
    """Fixes, all findings, the replay that they rest on, and what is to be known of it."""

    fixes: list[report.Fix]
    findings: list[report.Finding]
    replay: report.Replay
    notices: tuple[Notice, ...]


def guarded_replay(job: Job) -> Replay:
    """The job replayed, or the reason why it is not."""
    try:
        replay = replay_job(job)
        _ = replay.windows  # the classifier asks for them first
    except Exception as error:  # noqa: BLE001 - a broken replay must not cost the report
        return without_replay(job, _broken(error))
    return replay


def outcome(ranks: Sequence[Diagnosed], job: Job, label: report.Label, replay: Replay) -> Outcome:
    """Say what the fixes of a job are worth.

    Args:
        ranks: what was found on each.
        job: all of them together.
        label: what its budget says.
        replay: of the job.
    """
    try:
        return _outcome(ranks, job, label, replay)
    except Exception as error:  # noqa: BLE001 - a broken replay must not cost the report
        return _outcome(ranks, job, label, without_replay(job, _broken(error)))


def _broken(error: Exception) -> str:
    return f"It broke ({type(error).__name__}: {error}), which is a fault of perfdiag."


def _outcome(ranks: Sequence[Diagnosed], job: Job, label: report.Label, replay: Replay) -> Outcome:
    """Fixes are worth what the replayed job says, and none if that is too little.

    Where the job cannot be replayed, they are worth at most what the budget holds.
    """
    fixes, findings = rank_fixes(ranks), merge_findings(ranks)
    if replay.believed and fixes:
        savings = replay_savings(replay, job.waits, concerns(ranks))
        worth = worthwhile(savings)
        fixes = revalue(fixes, worth)
        findings = merge_findings(ranks, without=set(savings) - set(worth))
    return Outcome(fixes, findings, replay_row(replay), disagreement(replay, label))
