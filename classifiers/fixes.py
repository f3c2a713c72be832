"""Findings of all ranks, ranked and merged into the fixes of the report.

Fixes are ranked greedily by what is left for them to save, times how sure they are; each then
claims its time, and the next one is worth only what remains. So all fixes together never save
more than the time budget holds. These savings are static bounds; where the job could be replayed,
what the replay says takes their place.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnosis import Finding
from perfdiag.classifiers.findings import Diagnosed, Share
from perfdiag.classifiers.places import places
from perfdiag.classifiers.savings import Concern, Saving
from perfdiag.trace_schemas import report

__all__ = ["HELD_UP", "concerns", "merge_findings", "rank_fixes", "revalue"]

Bools = NDArray[np.bool_]


def rank_fixes(ranks: Sequence[Diagnosed]) -> list[report.Fix]:
    """One fix for each diagnosis that fires materially on some rank, the best first.

    `saving_ns_per_step` and its bounds are means over the steps with a verdict of the ranks that
    a fix concerns; `saving_after_previous_ns` is a mean over those of all ranks, so that these
    may be added up.
    """
    by_id: dict[str, list[_Part]] = {}
    for rank in ranks:
        for share in rank.shares:
            by_id.setdefault(share.finding.diagnosis.id, []).append(_Part(rank, share))
    steps = sum(int(rank.facts.trusted.sum()) for rank in ranks)
    claimed = {
        id(part.share.pieces): np.zeros(len(part.share.pieces.leaf), bool)
        for parts in by_id.values()
        for part in parts
    }
    fixes = []
    while by_id:
        best = max(sorted(by_id), key=lambda name: _worth(by_id[name], claimed))
        chosen = by_id.pop(best)
        fixes.append(_fix(chosen, _left(chosen, claimed) / steps, several=len(ranks) > 1))
        for part in chosen:
            claimed[id(part.share.pieces)] |= part.share.take.taken
    return fixes


class _Part(NamedTuple):
    """What a fix is worth on one rank."""

    rank: Diagnosed
    share: Share


def _left(parts: list[_Part], claimed: dict[int, Bools]) -> float:
    """Nanoseconds that a fix still saves where others have claimed their time."""
    return sum(
        float(s.pieces.saved(s.take.mid, s.take.taken & ~claimed[id(s.pieces)]).sum())
        for _, s in parts
    )


def _worth(parts: list[_Part], claimed: dict[int, Bools]) -> float:
    return _left(parts, claimed) * parts[0].share.finding.diagnosis.confidence


def _fix(parts: list[_Part], left_ns: float, *, several: bool) -> report.Fix:
    shares = [part.share for part in parts]
    steps = sum(int(share.facts.trusted.sum()) for share in shares)

    def mean(shares_of: str) -> int:
        saved = (share.per_step(getattr(share.take, shares_of)).sum() for share in shares)
        return _whole(sum(saved) / steps)

    worst = max(parts, key=lambda part: float(part.share.per_step(part.share.take.mid).sum()))
    rank, finding = worst.rank.facts.rank, worst.share.finding
    diagnosis = finding.diagnosis
    return report.Fix(
        id=diagnosis.id,
        layer=diagnosis.layer,
        title=diagnosis.title,
        why=f"Rank {rank}: {finding.why}" if several and rank is not None else finding.why,
        saving_ns_per_step=mean("mid"),
        saving_low_ns=mean("low"),
        saving_high_ns=mean("high"),
        saving_after_previous_ns=_whole(left_ns),
        basis="static bound",
        curve_ns=[],
        confidence=diagnosis.confidence,
        ranks=_ordered(share.facts.rank for share in shares),
        steps=_steps(shares),
        regions=places(shares, steps),
        evidence=worst.rank.evidence(finding),
        how=diagnosis.how,
        verify=diagnosis.verify,
        refuted_by=diagnosis.refuted_by,
    )


def concerns(ranks: Sequence[Diagnosed]) -> dict[str, list[Concern]]:
    """On which ranks each fix is, by its id."""
    found: dict[str, list[Concern]] = {}
    for position, rank in enumerate(ranks):
        for share in rank.shares:
            found.setdefault(share.finding.diagnosis.id, []).append(Concern(position, share))
    return found


def revalue(fixes: Sequence[report.Fix], savings: Mapping[str, Saving]) -> list[report.Fix]:
    """The fixes with what a replay says that they save, in its order."""
    by_id = {fix.id: fix for fix in fixes}
    return [_revalued(by_id[name], saving) for name, saving in savings.items()]


def _revalued(fix: report.Fix, saving: Saving) -> report.Fix:
    likely = _whole(saving.likely_ns)
    return msgspec.structs.replace(
        fix,
        saving_ns_per_step=likely,
        saving_low_ns=min(likely, _whole(saving.low_ns)),
        saving_high_ns=max(likely, _whole(saving.high_ns)),
        saving_after_previous_ns=_whole(saving.left_ns),
        basis="replay",
        curve_ns=[_whole(ns) for ns in saving.curve_ns],
        regions=[_scaled(place, likely, fix.saving_ns_per_step) for place in fix.regions],
    )


def _scaled(place: report.Place, likely_ns: int, static_ns: int) -> report.Place:
    """A place's part of a saving: the same share as of the static one."""
    part = place.saving_ns_per_step * likely_ns // max(1, static_ns)
    return msgspec.structs.replace(place, saving_ns_per_step=part)


def _whole(time_ns: float) -> int:
    """Whole nanoseconds, rounded down; what a float lost on the way is given back first."""
    return int(time_ns + 1e-3)


def _ordered(ranks: Iterable[int | None]) -> list[int | None]:
    return sorted(set(ranks), key=lambda rank: (rank is None, rank or 0))


def _steps(shares: list[Share]) -> list[int]:
    found = [share.facts.model.steps.ordinal[share.steps].tolist() for share in shares]
    return sorted({ordinal for ordinals in found for ordinal in ordinals})


HELD_UP = "Replayed without it the steps are about as long: something else holds them up."
"""What is said of a finding that saves too little to show."""


def merge_findings(
    ranks: Sequence[Diagnosed], *, without: Collection[str] = ()
) -> list[report.Finding]:
    """What every diagnosis says, ranks of which it says the same together.

    Sorted by how much there is to say: what fires first, what cannot tell last.

    Args:
        ranks: with their findings.
        without: ids of those that fire but save nothing that shows when the job is replayed.
    """
    found: dict[tuple[str, report.Status], list[tuple[int | None, Finding]]] = {}
    for rank in ranks:
        for finding in (_held_up(one, without) for one in rank.findings):
            key = (finding.diagnosis.id, finding.status)
            found.setdefault(key, []).append((rank.facts.rank, finding))
    merged = [_merged(same) for same in found.values()]
    return sorted(merged, key=lambda one: (report.STATUSES.index(one.status), one.id))


def _held_up(finding: Finding, without: Collection[str]) -> Finding:
    if finding.status != "fires" or finding.diagnosis.id not in without:
        return finding
    return replace(finding, status="minor", why=f"{finding.why} {HELD_UP}")


def _merged(same: list[tuple[int | None, Finding]]) -> report.Finding:
    first = same[0][1]
    return report.Finding(
        id=first.diagnosis.id,
        layer=first.diagnosis.layer,
        status=first.status,
        title=first.diagnosis.title_ok if first.status == "quiet" else first.diagnosis.title,
        why=first.why,
        ranks=_ordered(rank for rank, _ in same),
    )
