"""One rank as what is drawn over its trace needs it."""

from dataclasses import dataclass

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.job import Job
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.reporting import Analysed
from perfdiag.trace_schemas import report

__all__ = ["Scene"]


@dataclass(frozen=True, slots=True)
class Scene:
    """One rank of a job that has its verdict.

    Attributes:
        judged: the job.
        position: of the rank in it.
        shift_ns: when the rank's time 0 is in the file; queries see times of the file.
    """

    judged: Judged
    position: int
    shift_ns: int

    @property
    def job(self) -> Job:
        """All ranks together."""
        return self.judged.job

    @property
    def done(self) -> Analysed:
        """The rank with its findings."""
        return self.judged.ranks[self.position]

    @property
    def facts(self) -> RankFacts:
        """What its verdict rests on."""
        return self.done.facts

    @property
    def rank(self) -> report.Rank:
        """What the report says of it."""
        return self.judged.report.ranks[self.position]

    @property
    def process(self) -> str:
        """Name of its process in a file of several ranks; '' where it is alone."""
        if len(self.judged.ranks) == 1:
            return ""
        return "rank ?" if self.facts.rank is None else f"rank {self.facts.rank}"
