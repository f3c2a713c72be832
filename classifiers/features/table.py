"""The features of all regions of a rank."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import (
    budgets,
    collectives,
    context,
    counters,
    kernels,
    launches,
    replays,
)
from perfdiag.classifiers.features.catalogue import FEATURES
from perfdiag.classifiers.features.spans import Floats, Spans
from perfdiag.classifiers.features.view import View
from perfdiag.classifiers.replayed_windows import ReplayedWindows
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["FeatureTable", "rank_features"]


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """(n,) the regions of a rank: each step, and behind it its phases.

    Attributes:
        kind: what each is.
        step: ordinal of its step.
        name: of the step or phase.
        start_ns, dur_ns: its window, on the rank's clock.
        values: (n, features) in the order of `FEATURES`; NaN where the trace does not tell.
    """

    kind: tuple[Literal["step", "phase"], ...]
    step: Int64s
    name: tuple[str, ...]
    start_ns: Int64s
    dur_ns: Int64s
    values: Floats

    def column(self, name: str) -> Floats:
        """(n,) one feature.

        Raises:
            ValueError: it is not known.
        """
        return self.values[:, [feature.name for feature in FEATURES].index(name)]


def rank_features(facts: RankFacts, replayed: ReplayedWindows | None) -> FeatureTable:
    """Describe the regions of a rank whose windows are not empty.

    Args:
        facts: of the rank.
        replayed: its windows in the job's replay; None where that is not believed.
    """
    view, rows = _view(facts)
    found = replays.columns(view, rows, replayed)
    for group in (budgets, launches, kernels, collectives, counters, context):
        found |= group.columns(view)
    nothing = np.full(len(rows), np.nan)
    values = np.stack([found.get(feature.name, nothing) for feature in FEATURES], axis=1)
    order = np.lexsort((view.spans.start_ns, ~view.is_step, view.step))
    is_step = view.is_step[order].tolist()
    steps = facts.model.steps
    names = [
        steps.name[step] if own else name
        for own, step, name in zip(
            is_step, view.step[order].tolist(), view.names[order].tolist(), strict=True
        )
    ]
    return FeatureTable(
        tuple("step" if own else "phase" for own in is_step),
        steps.ordinal[view.step[order]],
        tuple(names),
        view.spans.start_ns[order],
        view.spans.length_ns[order],
        values[order],
    )


def _view(facts: RankFacts) -> tuple[View, Int64s]:
    """The regions of a rank, and of each the row of `Steps` or `Regions`."""
    steps, regions = facts.model.steps, facts.model.regions
    own = np.flatnonzero(steps.end_ns > steps.ts_ns)
    phase = np.array([kind == "phase" for kind in regions.kind], np.bool_)
    parts = np.flatnonzero(phase & (regions.end_ns > regions.ts_ns))
    parts = parts[np.argsort(regions.ts_ns[parts], kind="stable")]
    spans = Spans(
        np.concatenate((steps.ts_ns[own], regions.ts_ns[parts])),
        np.concatenate((steps.end_ns[own], regions.end_ns[parts])),
        len(own),
    )
    step = np.concatenate((own, np.searchsorted(steps.ordinal, regions.step[parts])))
    names = [""] * len(own) + [regions.name[row] for row in parts.tolist()]
    rows = np.concatenate((own, parts))
    return View(facts, spans, step, np.array(names, object)), rows
