"""What a bundle consists of, as data."""

from dataclasses import dataclass

from perfdiag.classifiers.owners import Team
from perfdiag.classifiers.triage.cutting import Span
from perfdiag.classifiers.triage.figures import Figure
from perfdiag.classifiers.triage.signatures import Signature
from perfdiag.trace_schemas.report import Fix, Input, Report

__all__ = ["Bundle", "Sample", "Told", "Triage"]


@dataclass(frozen=True, slots=True)
class Told:
    """A fix in a bundle.

    Attributes:
        fix: redacted where that was asked for.
        reason: why it is this team's.
        lapsed: rules that would have decided, had they not expired.
        figures: that are about it.
    """

    fix: Fix
    reason: str
    lapsed: tuple[str, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a counter of a rank; `device` None for the host's."""

    rank: str
    device: int | None
    metric: str
    unit: str
    ts_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one team gets.

    Attributes:
        team: who.
        report: the part of the report that it needs.
        fixes: what it should do, the best first.
        general: figures about the job and the slice.
        span: of the slice, on the clock of the first of its ranks.
        ranks: names of the ranks in the slice, the one that it is about first.
        inputs: what these were read from.
        shrunk: whether the slice is less than the step.
        slice: a Perfetto trace.
        signatures: operators that the best fix is about.
        samples: counters in the time of the slice.
        left_out: how many figures were not stated because their query did not return them.
    """

    team: Team
    report: Report
    fixes: tuple[Told, ...]
    general: tuple[Figure, ...]
    span: Span
    ranks: tuple[str, ...]
    inputs: tuple[Input, ...]
    shrunk: bool
    slice: bytes
    signatures: tuple[Signature, ...]
    samples: tuple[Sample, ...]
    left_out: int

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in the order of their ids."""
        return (*self.general, *(one for told in self.fixes for one in told.figures))


@dataclass(frozen=True, slots=True)
class Triage:
    """All bundles of a job, with the report that they are parts of, redacted like them."""

    report: Report
    bundles: tuple[Bundle, ...]
    owners: str
    redacted: bool
