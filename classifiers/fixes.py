"""Findings of all ranks, ranked and merged into the fixes of the report.

Fixes are ranked greedily by what is left for them to save, times how sure they are; each then
claims its time, and the next one is worth only what remains. So all fixes together never save
more than the time budget holds. Savings are static bounds: nothing is simulated here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Pieces, Take
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnose, Diagnosis, Finding, Need
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas import report

__all__ = ["diagnose_rank", "rank_fixes"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def rank_fixes(ranks: list[RankFacts]) -> list[report.Fix]:
    """One fix for each diagnosis that fires materially on some rank, the best first.

    `saving_ns_per_step` and its bounds are means over the steps with a verdict of the ranks that
    a fix concerns; `saving_after_previous_ns` is a mean over those of all ranks, so that these
    may be added up.
    """
    shares = [share for facts in ranks for share in _shares(facts)]
    by_id: dict[str, list[_Share]] = {}
    for share in shares:
        by_id.setdefault(share.finding.diagnosis.id, []).append(share)
    steps = sum(int(facts.trusted.sum()) for facts in ranks)
    claimed = {id(share.pieces): np.zeros(len(share.pieces.leaf), bool) for share in shares}
    fixes = []
    while by_id:
        best = max(sorted(by_id), key=lambda name: _worth(by_id[name], claimed))
        chosen = by_id.pop(best)
        fixes.append(_fix(chosen, _left(chosen, claimed) / steps, several=len(ranks) > 1))
        for share in chosen:
            claimed[id(share.pieces)] |= share.take.taken
    return fixes


def diagnose_rank(facts: RankFacts) -> list[Finding]:
    """The finding of every diagnosis, in the order of their ids, whatever it is."""
    return [_run(diagnosis, diagnose, facts) for diagnosis, diagnose in all_diagnoses()]


def _run(diagnosis: Diagnosis, diagnose: Diagnose, facts: RankFacts) -> Finding:
    missing = _missing(diagnosis.needs, facts)
    if missing:
        return diagnosis.not_applicable(missing)
    try:
        return diagnose(facts)
    except Exception as error:  # noqa: BLE001 - one broken diagnosis must not cost the report
        return diagnosis.failed(error)


def _missing(needs: tuple[Need, ...], facts: RankFacts) -> str:
    if "device" in needs and not facts.coverage.has_device:
        return "The trace holds no device work."
    if "host" in needs and not facts.coverage.has_host:
        return "The trace holds no host events."
    if not facts.trusted.any():
        return "No step has a verdict: too much of the device work is missing."
    return ""


@dataclass(frozen=True, slots=True)
class _Share:
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
        """(steps,) where it saves enough to show."""
        steps = self.facts.model.steps
        enough = MATERIAL.value * (steps.end_ns - steps.ts_ns)
        return (self.per_step(self.take.mid) >= enough) & self.facts.trusted

    @property
    def material(self) -> bool:
        """Whether it saves enough to show over all steps that have a verdict."""
        steps, trusted = self.facts.model.steps, self.facts.trusted
        window = (steps.end_ns - steps.ts_ns)[trusted].sum()
        saved = self.per_step(self.take.mid)[trusted].sum()
        return bool(window and saved >= MATERIAL.value * window)


def _shares(facts: RankFacts) -> list[_Share]:
    """The material findings of a rank, on one common cut of its time line."""
    firing = [finding for finding in diagnose_rank(facts) if finding.status == "fires"]
    if not firing:
        return []
    pieces = Pieces.of(facts, [one for finding in firing for one in finding.claims])
    shares = [_Share(facts, f, pieces, pieces.take(f.claims)) for f in firing]
    return [share for share in shares if share.material]


def _left(shares: list[_Share], claimed: dict[int, Bools]) -> float:
    """Nanoseconds that a fix still saves where others have claimed their time."""
    return sum(
        float(s.pieces.saved(s.take.mid, s.take.taken & ~claimed[id(s.pieces)]).sum())
        for s in shares
    )


def _worth(shares: list[_Share], claimed: dict[int, Bools]) -> float:
    return _left(shares, claimed) * shares[0].finding.diagnosis.confidence


def _fix(shares: list[_Share], left_ns: float, *, several: bool) -> report.Fix:
    steps = sum(int(share.facts.trusted.sum()) for share in shares)

    def mean(shares_of: str) -> int:
        saved = (share.per_step(getattr(share.take, shares_of)).sum() for share in shares)
        return _whole(sum(saved) / steps)

    worst = max(shares, key=lambda share: float(share.per_step(share.take.mid).sum()))
    diagnosis = worst.finding.diagnosis
    named = several and worst.facts.rank is not None
    return report.Fix(
        id=diagnosis.id,
        layer=diagnosis.layer,
        title=diagnosis.title,
        why=f"Rank {worst.facts.rank}: {worst.finding.why}" if named else worst.finding.why,
        saving_ns_per_step=mean("mid"),
        saving_low_ns=mean("low"),
        saving_high_ns=mean("high"),
        saving_after_previous_ns=_whole(left_ns),
        confidence=diagnosis.confidence,
        ranks=_ranks(shares),
        steps=_steps(shares),
        evidence=list(worst.finding.evidence),
        how=diagnosis.how,
        verify=f"{diagnosis.verify} It is refuted if {diagnosis.refuted_by}.",
    )


def _whole(time_ns: float) -> int:
    """Whole nanoseconds, rounded down; what a float lost on the way is given back first."""
    return int(time_ns + 1e-3)


def _ranks(shares: list[_Share]) -> list[int | None]:
    ranks = {share.facts.rank for share in shares}
    return sorted(ranks, key=lambda rank: (rank is None, rank or 0))


def _steps(shares: list[_Share]) -> list[int]:
    found = [share.facts.model.steps.ordinal[share.steps].tolist() for share in shares]
    return sorted({ordinal for ordinals in found for ordinal in ordinals})
