"""How good probabilities of classes are: F1, calibration, abstention."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scores", "confusion", "expected_calibration_error", "macro_f1", "reliability", "score"]

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

BINS = 15
"""Of the calibration error (Guo et al., ICML 2017)."""


class Scores(NamedTuple):
    """Of answers on n regions.

    Attributes:
        n: how many.
        macro_f1: mean of the classes' F1 over the answered regions; an abstention counts as a miss
            of its class in `macro_f1_all`.
        macro_f1_all: likewise over all regions.
        precision, recall: (classes,) over all regions.
        accuracy: of the answered ones.
        ece: expected calibration error of the most probable class, over all; NaN for rules.
        brier: sum of squares over classes, mean over regions; NaN for rules.
        abstained: share of regions without an answer.
    """

    n: int
    macro_f1: float
    macro_f1_all: float
    precision: Floats
    recall: Floats
    accuracy: float
    ece: float
    brier: float
    abstained: float


def confusion(truth: Int64s, answer: Int64s, classes: int) -> Int64s:
    """(classes, classes + 1) regions by truth and by answer; the last column is no answer (-1)."""
    table = np.zeros((classes, classes + 1), np.int64)
    np.add.at(table, (truth, np.where(answer < 0, classes, answer)), 1)
    return table


def macro_f1(truth: Int64s, answer: Int64s, classes: int) -> float:
    """Mean of the F1 of the classes that occur in the truth."""
    table = confusion(truth, answer, classes)
    right = np.diagonal(table).astype(np.float64)
    there, said = table.sum(axis=1), table[:, :classes].sum(axis=0)
    f1 = 2 * right / np.maximum(there + said, 1)
    return float(f1[there > 0].mean()) if (there > 0).any() else float("nan")


def reliability(probabilities: Floats, truth: Int64s) -> Floats:
    """(bins, 3) regions, mean confidence and accuracy by confidence of the most probable class."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bin_of = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(bin_of, minlength=BINS).astype(np.float64)
    sums = [np.bincount(bin_of, column, BINS) for column in (sure, right.astype(np.float64))]
    with np.errstate(invalid="ignore"):
        return np.stack([count, *(column / count for column in sums)], axis=1)


def expected_calibration_error(probabilities: Floats, truth: Int64s) -> float:
    """Mean distance of confidence and accuracy over bins of confidence, weighted by regions."""
    count, sure, right = reliability(probabilities, truth).T
    some = count > 0
    return float((count[some] * np.abs(sure - right)[some]).sum() / count.sum())


def score(
    truth: Int64s, answer: Int64s, classes: int, probabilities: Floats | None = None
) -> Scores:
    """Score answers.

    Args:
        truth: (n,) classes.
        answer: (n,) classes, -1 where there is none.
        classes: how many there are.
        probabilities: (n, classes), of what gives them.
    """
    table = confusion(truth, answer, classes)
    right = np.diagonal(table).astype(np.float64)
    answered = answer >= 0
    ece = brier = float("nan")
    if probabilities is not None:
        ece = expected_calibration_error(probabilities, truth)
        aim = np.eye(classes)[truth]
        brier = float(((probabilities - aim) ** 2).sum(axis=1).mean())
    return Scores(
        n=len(truth),
        macro_f1=macro_f1(truth[answered], answer[answered], classes),
        macro_f1_all=macro_f1(truth, answer, classes),
        precision=right / np.maximum(table[:, :classes].sum(axis=0), 1),
        recall=right / np.maximum(table.sum(axis=1), 1),
        accuracy=float(right.sum() / max(1, int(answered.sum()))),
        ece=ece,
        brier=brier,
        abstained=float(1.0 - answered.mean()) if len(truth) else float("nan"),
    )
