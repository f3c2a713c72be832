"""From inputs to the features of each rank: the way of `analyze`, without its verdict."""

from collections.abc import Sequence

from perfdiag.classifiers.analysis import Options, Progress, read_ranks
from perfdiag.classifiers.counters_beside import CountersBeside
from perfdiag.classifiers.features import FeatureTable, rank_features
from perfdiag.classifiers.job import Job, gather
from perfdiag.classifiers.outcome import guarded_replay
from perfdiag.classifiers.replayed_windows import ReplayedWindows

__all__ = ["RankTable", "features_of_job", "job_features", "read_job"]

RankTable = tuple[int | None, FeatureTable]
"""A rank's number, None where its trace does not say, and its features."""


def job_features(
    paths: Sequence[str], options: Options, progress: Progress | None = None
) -> list[RankTable]:
    """Describe the regions of the ranks that the paths name.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or name a device that is not known.
    """
    return features_of_job(read_job(paths, options, progress))


def read_job(paths: Sequence[str], options: Options, progress: Progress | None = None) -> Job:
    """The ranks that the paths name, looked at together, with what counters say of them.

    Raises:
        InputError: an input cannot be read.
        EngineError: the trace processor failed.
        UsageError: options contradict each other, or name a device that is not known.
    """
    tell = progress or (lambda text, share: None)
    beside = CountersBeside.read(options)
    read = read_ranks(paths, options, tell, [], lambda: None)
    tell("replaying", 0.9)
    return gather([item.facts for item in beside.placed(read)])


def features_of_job(job: Job) -> list[RankTable]:
    """Describe the regions of the ranks of a job, which is replayed."""
    windows: Sequence[ReplayedWindows | None] = guarded_replay(job).windows or [None] * len(
        job.ranks
    )
    return [
        (facts.rank, rank_features(facts, replayed))
        for facts, replayed in zip(job.ranks, windows, strict=True)
    ]
