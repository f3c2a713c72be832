"""The most frequent label of the training set, whatever the trace shows."""

from collections import Counter
from collections.abc import Iterable

from baselines.rule import Baseline
from baselines.spans import Windows
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.report import LABELS, Label

__all__ = ["fit_majority"]


def fit_majority(train: Iterable[Label]) -> Baseline:
    """The rule that always answers what training regions most often are.

    Of equally frequent labels the first of `LABELS` is taken.

    Raises:
        ValueError: there is no training label.
    """
    counts = Counter(train)
    if not counts:
        msg = "The majority class cannot be fitted to no labels."
        raise ValueError(msg)
    label = max(LABELS, key=lambda one: counts[one])

    def judge(facts: RankFacts, windows: Windows) -> list[Label]:
        return [label] * len(windows[0])

    return Baseline("majority", "the training set", judge)
