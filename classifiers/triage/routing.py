"""Which fixes go to which team."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from perfdiag.classifiers.findings import Share
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.owners import Owned, Owners, Subject, Team
from perfdiag.classifiers.triage.cutting import overlap_ns
from perfdiag.classifiers.triage.occurrences import main_leaf, shares_of, taken_spans
from perfdiag.profiler.model import Coded
from perfdiag.trace_schemas.report import LEAF_LABEL, Fix

__all__ = ["Assigned", "Assignment", "assign"]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A fix and whose it is.

    Attributes:
        fix: as the report has it.
        subject: what the rules looked at.
        owned: what they said.
        leaf: of the time budget, in which it takes most.
    """

    fix: Fix
    subject: Subject
    owned: Owned
    leaf: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """A team and its fixes, those that are worth most first."""

    team: Team
    fixes: tuple[Assigned, ...]


def assign(judged: Judged, owners: Owners, today: date) -> list[Assignment]:
    """The teams that have something to do, in the order of their best fix."""
    by_team: dict[str, list[Assigned]] = {}
    for fix in judged.report.fixes:
        shares = list(shares_of(judged, fix.id).values())
        if not shares:
            continue
        share = max(shares, key=lambda one: float(one.per_step(one.take.mid).sum()))
        subject = subject_of(fix, share)
        one = Assigned(fix, subject, owners.owner_of(subject, today), main_leaf(share))
        by_team.setdefault(one.owned.team.id, []).append(one)
    return [Assignment(fixes[0].owned.team, tuple(fixes)) for fixes in by_team.values()]


def subject_of(fix: Fix, share: Share) -> Subject:
    """What the rules are to look at: the work that takes most of the time of a finding."""
    facts = share.facts
    work = facts.model.work
    taken = taken_spans(share, facts.span_ns)
    shared = overlap_ns(work.ts_ns, work.end_ns, taken) * facts.here
    label = LEAF_LABEL[main_leaf(share)] or "unknown"
    return Subject(
        fix.layer, fix.id, _heaviest(work.family, shared), _heaviest(work.name, shared), label
    )


def _heaviest(names: Coded, weight: Sequence[int] | np.ndarray) -> str:
    """The text with most weight, '' where nothing has any."""
    if not np.any(weight):
        return ""
    return ["", *names.texts][int(np.argmax(np.bincount(names.codes + 1, weight)))]
