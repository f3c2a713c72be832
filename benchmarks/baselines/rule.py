"""A rule that labels windows of a rank by what one trace shows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from baselines.spans import Windows
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.report import Label

__all__ = ["Baseline", "Judge", "heaviest"]

Judge = Callable[[RankFacts, Windows], list[Label]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A verdict by somebody else's rule, in the labels of this project.

    Attributes:
        name: as tables have it.
        source: where the rule is published.
        judge: labels windows of a rank; `unknown` where the rule abstains.
    """

    name: str
    source: str
    judge: Judge

    def label(self, facts: RankFacts, start_ns: int, end_ns: int) -> Label:
        """Label one window, on the clock of the rank."""
        return self.labels(facts, [(start_ns, end_ns)])[0]

    def labels(self, facts: RankFacts, windows: Iterable[tuple[int, int]]) -> list[Label]:
        """Label many windows of one rank at once; they may overlap."""
        bounds = np.array([*windows], np.int64).reshape(-1, 2)
        return self.judge(facts, (bounds[:, 0], bounds[:, 1]))


def heaviest(weights: Iterable[tuple[Label, float]]) -> Label:
    """The label of the largest weight, the first of equal ones; `unknown` if none is above 0."""
    label, weight = max(weights, key=lambda one: one[1])
    return label if weight > 0 else "unknown"
