"""What the diagnoses find on one rank, and the time that each of its findings takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Pieces, Take
from perfdiag.classifiers.diagnosis import Diagnose, Diagnosis, Finding, Need, Spot
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Diagnosed", "Share", "diagnose_rank"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Windows = tuple[Int64s, Int64s]


@dataclass(frozen=True, slots=True)
class Share:
    """What one finding takes on one rank."""

    facts: RankFacts
    finding: Finding
    pieces: Pieces
    take: Take

    def per_step(self, shares: Floats) -> Floats:
        """(steps,) nanoseconds that these shares of its pieces save."""
        return self.pieces.saved(shares, self.take.taken)

    @property
    def steps(self) -> Bools:
        """(steps,) where it takes enough to show."""
        steps = self.facts.model.steps
        enough = self._least * (steps.end_ns - steps.ts_ns)
        return (self._taken >= enough) & self.facts.trusted

    @property
    def material(self) -> bool:
        """Whether it takes enough to show over all steps that have a verdict.

        Time that is labelled `unknown` counts here, though nothing is saved in it.
        """
        steps, trusted = self.facts.model.steps, self.facts.trusted
        window = (steps.end_ns - steps.ts_ns)[trusted].sum()
        return bool(window and self._taken[trusted].sum() >= self._least * window)

    @property
    def _taken(self) -> Floats:
        return self.pieces.taken(self.take.mid, self.take.taken)

    @property
    def _least(self) -> float:
        return self.finding.diagnosis.limits["share"]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """One rank with its findings.

    Attributes:
        facts: the rank.
        findings: of every diagnosis, in the order of their ids, whatever they are.
        shares: of those that fire, on one common cut of the rank's time line.
        slice_ids: of the spots that prove a share; missing where they are not known.
    """

    facts: RankFacts
    findings: tuple[Finding, ...]
    shares: tuple[Share, ...]
    slice_ids: Mapping[Spot, int] = field(default_factory=dict)

    @property
    def spots(self) -> list[Spot]:
        """The slices that prove the shares, each once."""
        proofs = [proof for share in self.shares for proof in share.finding.evidence]
        return list(dict.fromkeys(spot for proof in proofs for spot in proof.spots))

    def evidence(self, finding: Finding) -> list[report.Evidence]:
        """The figures of a finding as the report has them."""
        return [
            report.Evidence(
                sql=proof.sql,
                slices=[self.slice_ids[spot] for spot in proof.spots if spot in self.slice_ids],
                value=proof.value,
                unit=proof.unit,
            )
            for proof in finding.evidence
        ]


def diagnose_rank(
    facts: RankFacts, diagnoses: Sequence[tuple[Diagnosis, Diagnose]], unknown: Windows
) -> Diagnosed:
    """Run the diagnoses on a rank.

    Args:
        facts: the rank.
        diagnoses: with their thresholds as the user has set them.
        unknown: steps and phases labelled `unknown`: nothing can be saved in them.
    """
    findings = [_run(diagnosis, diagnose, facts) for diagnosis, diagnose in diagnoses]
    firing = [finding for finding in findings if finding.status == "fires"]
    if not firing:
        return Diagnosed(facts, tuple(findings), ())
    claims = [one for finding in firing for one in finding.claims]
    pieces = Pieces.of(facts, claims, unknown)
    shares = [Share(facts, f, pieces, pieces.take(f.claims)) for f in firing]
    material = [share for share in shares if share.material]
    worth = {share.finding.diagnosis.id for share in material}
    kept = [f if f.diagnosis.id in worth else _too_little(f) for f in findings]
    return Diagnosed(facts, tuple(kept), tuple(material))


def _too_little(finding: Finding) -> Finding:
    """A finding that fires without saving enough to be a fix; others stay as they are."""
    return replace(finding, status="minor") if finding.status == "fires" else finding


def _run(diagnosis: Diagnosis, diagnose: Diagnose, facts: RankFacts) -> Finding:
    missing = _missing(diagnosis.needs, facts)
    if missing:
        return diagnosis.not_applicable(missing)
    try:
        return replace(diagnose(facts, diagnosis.limits), diagnosis=diagnosis)
    except Exception as error:  # noqa: BLE001 - one broken diagnosis must not cost the report
        return diagnosis.failed(error)


def _missing(needs: tuple[Need, ...], facts: RankFacts) -> str:
    if "device" in needs and not facts.coverage.has_device:
        return "The trace holds no device work."
    if "host" in needs and not facts.coverage.has_host:
        return "The trace holds no host events."
    if "ranks" in needs and facts.waits is None:
        return "No other rank's trace tells for whom this one waits."
    if not facts.trusted.any():
        return "No step has a verdict: too much of the device work is missing."
    return ""
