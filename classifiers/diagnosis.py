"""What a diagnosis is, and what it finds.

A diagnosis is one module of `classifiers/diagnoses/`: its metadata as `DIAGNOSIS`, a function
`diagnose(facts, limits) -> Finding`, and a docstring with the headings of `HEADINGS`. Adding such
a file is all that it takes to add one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from perfdiag.classifiers.claims import Claim
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.options import Limits
from perfdiag.trace_schemas.report import Layer, Status

__all__ = [
    "HEADINGS",
    "MATERIAL",
    "Diagnose",
    "Diagnosis",
    "Finding",
    "Limits",
    "Need",
    "Proof",
    "Spot",
    "Threshold",
]

HEADINGS = (
    "What it finds",
    "Why it costs time",
    "How it is told apart",
    "Example",
    "What to do",
    "References",
)

Need = Literal["device", "host", "ranks"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides, and where it comes from: words or a URL."""

    value: float
    unit: str
    source: str

    def set_to(self, value: float) -> "Threshold":
        """Another value, which the user has set."""
        source = f"set in the configuration; {self.value:g} without it: {self.source}"
        return replace(self, value=value, source=source)


MATERIAL = Threshold(
    0.01,
    "share of the step",
    "nsys-ai 0.3.0 takes changes of a step by less than 1 % for noise",
)
"""What is worth less is no fix: it would not show in a measurement."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of a diagnosis before it looks at a trace.

    Attributes:
        id: name of its module.
        layer: whose fix it is.
        title: what is wrong, where it fires.
        title_ok: the same where it does not.
        needs: what a trace must hold for it to say anything.
        confidence: how likely its findings are right; a judgement until it has been measured.
        thresholds: by name; `share` is what a finding must save of the steps to be a fix.
        how: what to change.
        verify: how to see that the change worked.
        refuted_by: what would show that the finding is wrong.
    """

    id: str
    layer: Layer
    title: str
    title_ok: str
    needs: tuple[Need, ...]
    confidence: float
    how: str
    verify: str
    refuted_by: str
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        """The values of the thresholds."""
        return {name: threshold.value for name, threshold in self.thresholds.items()}

    def tuned(self, limits: Limits) -> "Diagnosis":
        """The same with other values for some thresholds."""
        changed = {name: self.thresholds[name].set_to(value) for name, value in limits.items()}
        return replace(self, thresholds={**self.thresholds, **changed})

    def fires(self, why: str, claims: list[Claim], evidence: list["Proof"]) -> "Finding":
        """It is there: a sentence with its numbers, what it costs, and the proof."""
        return Finding(self, "fires", why, tuple(claims), tuple(evidence))

    def quiet(self, why: str) -> "Finding":
        """It is not there."""
        return Finding(self, "quiet", why)

    def not_applicable(self, why: str) -> "Finding":
        """The trace cannot tell."""
        return Finding(self, "not applicable", why)

    def failed(self, error: Exception) -> "Finding":
        """The diagnosis itself broke."""
        return Finding(self, "failed", f"{type(error).__name__}: {error}")


class Spot(NamedTuple):
    """A slice, by where it lies: its lane, when it starts and ends."""

    lane: int
    ts_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Proof:
    """A figure, the query that returns it, and some of the slices that it counts."""

    sql: str
    value: float
    unit: str
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a diagnosis says of one rank.

    Attributes:
        diagnosis: which.
        status: only one that `fires` becomes a fix; `minor` is one that is worth too little.
        why: a sentence with its numbers.
        claims: the time that it costs.
        evidence: figures of the sentence, each with the query that returns it.
    """

    diagnosis: Diagnosis
    status: Status
    why: str
    claims: tuple[Claim, ...] = ()
    evidence: tuple[Proof, ...] = ()


Diagnose = Callable[[RankFacts, Limits], Finding]
