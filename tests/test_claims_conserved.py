"""No nanosecond is saved twice, and none that is not there, whatever the trace holds."""

from collections import defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from plain_model import facts_of
from random_jobs import random_job

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.findings import Diagnosed, diagnose_rank
from perfdiag.classifiers.fixes import rank_fixes
from perfdiag.classifiers.verdicts import RankVerdict, judge_rank
from perfdiag.trace_schemas.report import LEAVES, Region, Step

SEEDS = range(200)


@cache
def diagnosed(seed: int) -> tuple[Diagnosed, RankVerdict]:
    facts = facts_of(random_job(seed))
    verdict = judge_rank(facts)
    return diagnose_rank(facts, all_diagnoses(), verdict.unknown), verdict


def check_statuses(found: Diagnosed) -> None:
    """No diagnosis breaks."""
    assert [f.why for f in found.findings if f.status == "failed"] == []


def check_claims(found: Diagnosed) -> None:
    """Whoever comes first, each piece goes to one; by step and leaf no more is saved than is there.

    Counted piece by piece here, on the rank's own cut of its time line.
    """
    order = [fix.id for fix in rank_fixes([found])]
    shares = {share.finding.diagnosis.id: share for share in found.shares}
    assert sorted(order) == sorted(shares)
    owner = None
    saved: dict[tuple[int, int], float] = defaultdict(float)
    for name in order:
        pieces, take = shares[name].pieces, shares[name].take
        owner = np.full(len(pieces.leaf), "", object) if owner is None else owner
        free = take.taken & pieces.known & (owner == "")
        owner[free] = name
        for i in np.flatnonzero(free).tolist():
            length = float(pieces.edges_ns[i + 1] - pieces.edges_ns[i])
            assert 0 <= take.low[i] <= take.mid[i] + 1e-9
            assert take.mid[i] <= take.high[i] + 1e-9 <= 1 + 2e-9
            saved[int(pieces.step[i]), int(pieces.leaf[i])] += take.high[i] * length
    steps, timeline = found.facts.model.steps, found.facts.timeline
    for (step, leaf), ns in saved.items():
        budget = timeline.budget(int(steps.ts_ns[step]), int(steps.end_ns[step]))
        assert ns <= budget.get(LEAVES[leaf], 0) + 1e-3


def check_fixes(found: Diagnosed) -> None:
    """Bounds are in order, what is left after others is part of it, and the best comes first."""
    fixes = rank_fixes([found])
    for fix in fixes:
        assert 0 <= fix.saving_low_ns <= fix.saving_ns_per_step <= fix.saving_high_ns
        assert 0 <= fix.saving_after_previous_ns <= fix.saving_ns_per_step
        assert sum(p.saving_ns_per_step for p in fix.regions if p.kind == "phase") <= (
            fix.saving_ns_per_step + len(fix.regions)
        )
    worth = [fix.saving_after_previous_ns * fix.confidence for fix in fixes]
    # Whole nanoseconds: of two that are worth the same, one may be rounded down by more.
    assert all(later <= one + 1 for one, later in pairwise(worth))


def check_unknown(found: Diagnosed, verdict: RankVerdict) -> None:
    """Nothing is saved in a step or phase that is labelled `unknown`."""
    for share in found.shares:
        edges, counted = share.pieces.edges_ns, share.take.taken & share.pieces.known
        for step in verdict.steps:
            parts: list[Step | Region] = [step]
            parts += [region for region in step.regions if region.kind == "phase"]
            for part in parts:
                if part.label == "unknown":
                    end = part.start_ns + part.dur_ns
                    inside = (edges[:-1] >= part.start_ns) & (edges[:-1] < end)
                    assert not counted[inside].any()


@pytest.mark.parametrize("seed", SEEDS)
def test_savings_are_in_the_budget(seed: int) -> None:
    """On a trace made by chance, claims do not overlap and stay inside what the leaves hold."""
    found, verdict = diagnosed(seed)
    check_statuses(found)
    check_claims(found)
    check_fixes(found)
    check_unknown(found, verdict)


def test_chance_makes_most_diagnoses_fire() -> None:
    """The jobs are no empty promise: what is tried here is what diagnoses look for."""
    fired = {share.finding.diagnosis.id for seed in SEEDS for share in diagnosed(seed)[0].shares}
    assert len(fired) >= len(all_diagnoses()) // 3
