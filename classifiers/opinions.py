"""What the learned classifier says of the regions of a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import rank_features
from perfdiag.classifiers.labels import DOUBTED, Opinion
from perfdiag.classifiers.learned import Learned, learned
from perfdiag.classifiers.replay import Replay
from perfdiag.classifiers.replayed_windows import ReplayedWindows
from perfdiag.trace_schemas.notices import Notice

__all__ = ["RankOpinions", "form_opinions", "guarded_opinions", "like_training", "mean_opinion"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Region = tuple[Literal["step", "phase"], int, int]
"""Kind, start and end: a phase may fill its step."""

ENOUGH = 30
"""Pieces of device work in a step from which on the classifier is asked. It was trained on steps of
50 and more, of which medians and shares say something; of fewer the rules know as much."""

DOUBT = 0.25
"""Of a step that may speak for no class. In training next to nothing does."""


@dataclass(frozen=True, slots=True)
class RankOpinions:
    """Of one rank.

    Attributes:
        regions: of steps and phases.
        whole: of its steps with a verdict, weighted by their windows; None without any.
        weight_ns: length of these windows.
    """

    regions: Mapping[Region, Opinion]
    whole: Opinion | None
    weight_ns: int

    def of(self, kind: Literal["step", "phase"], start_ns: int, end_ns: int) -> Opinion | None:
        """Of the step or phase of this window."""
        return self.regions.get((kind, start_ns, end_ns))


def guarded_opinions(
    ranks: Sequence[RankFacts], replay: Replay
) -> tuple[list[RankOpinions], tuple[Notice, ...]]:
    """What the classifier that is shipped says of a job; nothing, and why, where it breaks.

    Args:
        ranks: of the job.
        replay: of it.
    """
    try:
        return form_opinions(ranks, replay, learned()), ()
    except Exception as error:  # noqa: BLE001 - a broken classifier must not cost the report
        message = (
            f"The classifier broke ({type(error).__name__}: {error}), which is a fault of "
            "perfdiag: labels are those of the rules alone."
        )
        notice = Notice("model.broken", "warning", 1, message)
        return form_opinions(ranks, replay, None), (notice,)


def form_opinions(
    ranks: Sequence[RankFacts], replay: Replay, model: Learned | None
) -> list[RankOpinions]:
    """Ask the classifier about all steps and phases of a job; without one nothing is said.

    Args:
        ranks: of the job.
        replay: of it.
        model: the classifier.
    """
    if model is None:
        return [RankOpinions({}, None, 0) for _ in ranks]
    windows: Sequence[ReplayedWindows | None] = replay.windows or [None] * len(ranks)
    tables = [rank_features(facts, one) for facts, one in zip(ranks, windows, strict=True)]
    found = []
    for facts, table in zip(ranks, tables, strict=True):
        shares, ends = model.probabilities(table), table.start_ns + table.dur_ns
        spans = zip(table.kind, table.start_ns.tolist(), ends.tolist(), strict=True)
        least = model.card.least
        step = np.searchsorted(facts.model.steps.ordinal, table.step)
        asked = like_training(facts)[step]
        regions = {
            span: Opinion(p, least)
            for span, p, ok in zip(spans, shares, asked.tolist(), strict=True)
            if ok
        }
        counted = np.array([kind == "step" for kind in table.kind], np.bool_)
        counted &= facts.trusted[step]
        whole = None
        if asked[counted].all():
            whole = _mean(shares[counted], table.dur_ns[counted], least)
        found.append(RankOpinions(regions, whole, int(table.dur_ns[counted].sum())))
    return found


def like_training(facts: RankFacts) -> Bools:
    """(steps,) whether the classifier knows steps like it.

    They have enough work, of which the budget leaves little in doubt, and are some of several.
    """
    steps = facts.model.steps
    starts = np.sort(facts.model.work.ts_ns[facts.here])
    count = np.searchsorted(starts, steps.end_ns) - np.searchsorted(starts, steps.ts_ns)
    doubt = facts.timeline.time_in(DOUBTED, (steps.ts_ns, steps.end_ns))
    clear = doubt <= DOUBT * (steps.end_ns - steps.ts_ns)
    several = len(steps.ts_ns) > 1 and "whole" not in steps.source
    return np.asarray((count >= ENOUGH) & clear & several, np.bool_)


def _mean(shares: Floats, dur_ns: NDArray[np.int64], least: float) -> Opinion | None:
    weight = int(dur_ns.sum())
    return None if not weight else Opinion(dur_ns @ shares / weight, least)


def mean_opinion(ranks: Sequence[RankOpinions]) -> Opinion | None:
    """Of a job: that of its ranks, weighted by their windows; None unless all have one."""
    wholes = [one.whole for one in ranks]
    said = [(whole, one.weight_ns) for whole, one in zip(wholes, ranks, strict=True) if whole]
    if not said or len(said) < len(ranks):
        return None
    weight = sum(ns for _, ns in said)
    shares = np.sum([opinion.probabilities * (ns / weight) for opinion, ns in said], axis=0)
    return Opinion(shares, said[0][0].least)
