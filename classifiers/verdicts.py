"""Verdicts on one rank: its steps, their regions, and the rank as a whole."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.hotspots import Hotspots
from perfdiag.classifiers.intervals import merge
from perfdiag.classifiers.labels import (
    Opinion,
    Verdict,
    add_budgets,
    add_totals,
    judge,
    withheld,
)
from perfdiag.classifiers.opinions import RankOpinions
from perfdiag.classifiers.rank_utilisation import RankUtilisation, StepUtilisation, utilise
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["RankVerdict", "judge_rank"]


_SOURCES: dict[str, Literal["marker", "inferred", "whole"]] = {
    "marker": "marker",
    "inferred": "inferred",
    "whole": "whole",
}
_KINDS: dict[str, Literal["phase", "annotation", "module"]] = {
    "phase": "phase",
    "annotation": "annotation",
    "module": "module",
}


@dataclass(frozen=True, slots=True)
class RankVerdict:
    """A rank's verdict, the budget and totals of the steps that it rests on, its longest work.

    `used`: how much of its device's arithmetic the rank uses.
    """

    verdict: Verdict
    totals: report.Totals
    budget_ns: dict[str, int]
    steps: tuple[report.Step, ...]
    top: list[report.Hotspot]
    used: RankUtilisation

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Why there is no figure of what was judged, and where classifier and rules part."""
        problem = self.used.problem
        return (*([] if problem is None else [problem]), *_parted(self.steps))

    @property
    def unknown(self) -> tuple[Int64s, Int64s]:
        """Windows of the steps and phases of which the budget cannot tell what bounds them."""
        parts: list[report.Step | report.Region] = [*self.steps]
        parts += [r for step in self.steps for r in step.regions if r.kind == "phase"]
        bounds = [(p.start_ns, p.start_ns + p.dur_ns) for p in parts if p.by_rules == "unknown"]
        return merge(*np.array(bounds, np.int64).reshape(-1, 2).T)


def _parted(steps: Sequence[report.Step]) -> list[Notice]:
    parts: list[report.Step | report.Region] = [*steps]
    parts += [region for step in steps for region in step.regions]
    apart = [part for part in parts if part.label != part.by_rules]
    if not apart:
        return []
    first = max(apart, key=lambda part: part.dur_ns)
    message = (
        f"In {len(apart)} of {len(parts)} steps and regions the classifier does not say what the "
        f"budget alone would, such as {first.name!r}: {first.label}, not {first.by_rules}."
    )
    return [Notice("model.disagrees", "info", len(apart), message)]


SILENT = RankOpinions({}, None, 0)

WAITS = 0.05
"""Of a rank's steps. Where it waits for others for longer its label comes from its own budget, in
which waiting counts as collective: the classifier names what the late rank does. A choice."""


def judge_rank(facts: RankFacts, opinions: RankOpinions = SILENT) -> RankVerdict:
    """Judge every step and region, and from the steps with a verdict the rank.

    Steps without a verdict are left out of the rank's totals, unless there are no others: their
    idle time is not idle time.

    Args:
        facts: of the rank.
        opinions: of the classifier.
    """
    spots = Hotspots.of(facts)
    used = utilise(facts)
    parts = _Parts(facts, _regions_by_step(facts), spots, opinions)
    steps = tuple(_step(parts, i, one) for i, one in enumerate(used.steps))
    counted = [i for i, ok in enumerate(facts.trusted.tolist()) if ok]
    rest_on = counted or list(range(len(steps)))
    budget = add_budgets([steps[i].budget_ns for i in rest_on])
    totals = add_totals([steps[i].totals_ns for i in rest_on])
    whole = None if _waits(facts) else opinions.whole
    verdict = _rank_verdict(facts, budget, len(counted), whole)
    return RankVerdict(_with_dissent(verdict, steps), totals, budget, steps, spots.rank, used)


def _with_dissent(verdict: Verdict, steps: Sequence[report.Step]) -> Verdict:
    """Say so where most steps are bound by something else: one slow step decides a sum."""
    labels = Counter(step.label for step in steps)
    usual, count = labels.most_common(1)[0]
    if usual == verdict.label or "unknown" in (usual, verdict.label) or 2 * count <= len(steps):
        return verdict
    slowest = max(steps, key=lambda step: step.dur_ns)
    share = slowest.dur_ns / sum(step.dur_ns for step in steps)
    more = f" But {count} of {len(steps)} steps are {usual}: {slowest.name!r} alone is {share:.0%}."
    return replace(verdict, why=verdict.why + more)


def _waits(facts: RankFacts) -> bool:
    waited = sum(wait.time_ns for wait in facts.waits or ())
    return waited > WAITS * facts.trusted_ns


def _rank_verdict(
    facts: RankFacts, budget: dict[str, int], counted: int, opinion: Opinion | None
) -> Verdict:
    if not counted:
        return withheld(_reason(facts))
    if not facts.coverage.has_device:
        return withheld("A trace of the host alone: no device, so no verdict on device time.")
    return judge(budget, noun="trace" if _whole(facts) else "steps", opinion=opinion)


def _whole(facts: RankFacts) -> bool:
    return facts.model.steps.source == ["whole"]


def _reason(facts: RankFacts) -> str:
    errors = [n.message for n in facts.notices if n.severity == "error"]
    return errors[0] if errors else "Too few device records for a verdict."


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the parts of a rank are judged by; `regions`: rows by the ordinal of their step."""

    facts: RankFacts
    regions: dict[int, list[int]]
    spots: Hotspots
    opinions: RankOpinions


def _step(parts: _Parts, index: int, used: StepUtilisation) -> report.Step:
    facts = parts.facts
    steps, timeline = facts.model.steps, facts.timeline
    start, end = int(steps.ts_ns[index]), int(steps.end_ns[index])
    budget = timeline.budget(start, end)
    verdict = _step_verdict(facts, index, budget, parts.opinions.of("step", start, end))
    ordinal = int(steps.ordinal[index])
    return report.Step(
        ordinal=ordinal,
        name=steps.name[index],
        source=_SOURCES[steps.source[index]],
        start_ns=start,
        dur_ns=end - start,
        host_start_ns=int(steps.host_ts_ns[index]),
        host_dur_ns=int(steps.host_end_ns[index] - steps.host_ts_ns[index]),
        label=verdict.label,
        confidence=verdict.confidence,
        runner_up=verdict.runner_up,
        by_rules=verdict.by_rules,
        coverage=float(facts.coverage.steps[index]),
        why=verdict.why,
        totals_ns=timeline.totals(start, end),
        budget_ns=budget,
        mfu=used.mfu,
        hfu=used.hfu,
        regions=[_region(parts, row, index) for row in parts.regions.get(ordinal, [])],
    )


def _step_verdict(
    facts: RankFacts, index: int, budget: dict[str, int], opinion: Opinion | None
) -> Verdict:
    if not facts.coverage.has_device:
        return withheld("No device in this trace.")
    if not facts.trusted[index]:
        share = facts.coverage.steps[index]
        return withheld(f"Device records are there for {share:.0%} of its launches.")
    return judge(budget, noun="trace" if _whole(facts) else "step", opinion=opinion)


def _regions_by_step(facts: RankFacts) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, step in enumerate(facts.model.regions.step.tolist()):
        rows.setdefault(step, []).append(row)
    return rows


def _region(parts: _Parts, row: int, step: int) -> report.Region:
    facts = parts.facts
    regions = facts.model.regions
    start, end = int(regions.ts_ns[row]), int(regions.end_ns[row])
    budget = facts.timeline.budget(start, end)
    phase = regions.kind[row] == "phase"
    opinion = parts.opinions.of("phase", start, end) if phase else None
    doubted = not facts.trusted[step] or not facts.coverage.has_device
    judged = judge(budget, noun="region", opinion=opinion)
    verdict = withheld("See its step.") if doubted else judged
    return report.Region(
        kind=_KINDS[regions.kind[row]],
        name=regions.name[row],
        start_ns=start,
        dur_ns=end - start,
        label=verdict.label,
        confidence=verdict.confidence,
        by_rules=verdict.by_rules,
        budget_ns=budget,
        top=parts.spots.regions[row],
    )
