"""The truth about a simulated job, and its file."""

import msgspec

from perfdiag.profiler.simulator.program import Phase
from perfdiag.profiler.simulator.waits import CollectiveTruth, Late
from perfdiag.trace_schemas.report import Label

__all__ = [
    "SCHEMA_ID",
    "PhaseTruth",
    "RankTruth",
    "StepTruth",
    "Truth",
    "Verdict",
    "decode_truth",
    "encode_truth",
]

SCHEMA_ID = "perfdiag.truth/1"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a window.

    `saved_ns`: by which the window is shorter when what a label stands for is twice as fast, which
    is negative where it makes it longer. `ambiguous`: the runner-up saves nearly as much, or
    nothing saves much.
    """

    window_ns: float
    saved_ns: dict[str, float]
    label: Label
    runner_up: Label
    ambiguous: bool


class PhaseTruth(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces of one phase in a step."""

    phase: Phase
    verdict: Verdict


class StepTruth(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a rank. `warm_up`: it is the first, which finds nothing under way."""

    step: int
    warm_up: bool
    verdict: Verdict
    late: Late | None
    phases: list[PhaseTruth]


class RankTruth(msgspec.Struct, frozen=True, kw_only=True):
    """A rank; its verdict is on the mean of its steps but the first."""

    rank: int
    verdict: Verdict
    steps: list[StepTruth]
    collectives: list[CollectiveTruth]


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """A job; its verdict is on the mean of all ranks' steps but the first."""

    schema: str = SCHEMA_ID
    job: str
    family: str
    parallelism: str
    options: dict[str, str]
    platform: str
    vendor: str
    seed: int
    verdict: Verdict
    ranks: list[RankTruth]


def encode_truth(truth: Truth) -> bytes:
    """As JSON, the same bytes for the same truth."""
    return msgspec.json.encode(truth, order="deterministic")


def decode_truth(data: bytes) -> Truth:
    """The truth that `encode_truth` wrote.

    Raises:
        msgspec.ValidationError: it is something else.
    """
    return msgspec.json.decode(data, type=Truth)
