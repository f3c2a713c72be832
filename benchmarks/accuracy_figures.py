"""How good answers on regions are, with intervals from jobs drawn again.

The regions of one job are alike, so what is drawn again is jobs, with all their regions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.training.metrics import confusion, reliability
from perfdiag.classifiers.training.samples import CLASSES, Samples

__all__ = ["Figures", "Interval", "Said", "class_counts", "figures", "without_ambiguous"]

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

DRAWS = 1_000
LEVEL = 0.95


class Interval(NamedTuple):
    """A figure, and what holds it nineteen times in twenty; NaN where it cannot be told."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody says of (n,) regions: the class, -1 for no answer; (n, classes) how likely."""

    name: str
    answer: Int64s
    probabilities: Floats | None = None

    def take(self, rows: Bools) -> "Said":
        """Of some of them."""
        shares = None if self.probabilities is None else self.probabilities[rows]
        return Said(self.name, self.answer[rows], shares)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of answers on n regions of so many jobs.

    Attributes:
        macro_f1: over answered regions; `macro_f1_all`: an abstention is a miss of its class.
        ece, brier: of probabilities, over all regions; NaN for rules.
        abstained: share of the regions.
    """

    jobs: int
    n: int
    macro_f1: Interval
    macro_f1_all: Interval
    ece: Interval
    brier: Interval
    abstained: Interval


def without_ambiguous(samples: Samples, said: Said) -> tuple[Samples, Said]:
    """The regions whose truth is clear."""
    clear = ~samples.ambiguous
    return samples.take(clear), said.take(clear)


def figures(samples: Samples, said: Said, draws: int = DRAWS) -> Figures:
    """The figures of some answers; the same for the same arguments.

    Args:
        samples: whose truth is compared, the ambiguous ones among them.
        said: of each of them.
        draws: of jobs, from which the intervals are.
    """
    jobs, at = np.unique(samples.seed, return_inverse=True)
    weights = _weights(len(jobs), draws)
    tables = weights @ _by_job(samples, said, at, len(jobs))
    tables = tables.reshape(-1, len(CLASSES), len(CLASSES) + 1)
    ece, brier = _of_probabilities(samples, said, at, weights)
    seen = tables.sum(axis=(1, 2))
    with np.errstate(invalid="ignore"):
        abstained = tables[:, :, -1].sum(axis=1) / seen
    return Figures(
        len(jobs),
        len(samples.truth),
        _interval(_macro_f1(tables[:, :, :-1])),
        _interval(_macro_f1(tables)),
        ece,
        brier,
        _interval(abstained),
    )


def _weights(jobs: int, draws: int) -> Floats:
    """(1 + draws, jobs) how often each job counts: all once, then as they are drawn."""
    chance = np.random.default_rng(jobs)
    drawn = chance.multinomial(jobs, np.full(jobs, 1 / max(1, jobs)), draws)
    return np.concatenate((np.ones((1, jobs)), drawn))


def _by_job(samples: Samples, said: Said, at: Int64s, jobs: int) -> Floats:
    """(jobs, classes * (classes + 1)) regions by truth and answer."""
    classes = len(CLASSES)
    cell = samples.truth * (classes + 1) + np.where(said.answer < 0, classes, said.answer)
    width = classes * (classes + 1)
    counts = np.bincount(at * width + cell, minlength=jobs * width)
    return counts.reshape(jobs, width).astype(np.float64)


def _macro_f1(tables: Floats) -> Floats:
    """(draws,) mean F1 of the classes that occur; a last column beyond the classes is no answer."""
    classes = tables.shape[1]
    right = np.diagonal(tables, axis1=1, axis2=2)
    there, answered = tables.sum(axis=2), tables[:, :, :classes].sum(axis=1)
    f1 = 2 * right / np.maximum(there + answered, 1)
    occurs = there > 0
    with np.errstate(invalid="ignore"):
        return np.asarray((f1 * occurs).sum(axis=1) / occurs.sum(axis=1), np.float64)


def _of_probabilities(
    samples: Samples, said: Said, at: Int64s, weights: Floats
) -> tuple[Interval, Interval]:
    """Calibration error and Brier score."""
    if said.probabilities is None or not len(at):
        return (Interval(np.nan, np.nan, np.nan),) * 2
    parts = [
        reliability(said.probabilities[at == job], samples.truth[at == job])
        for job in range(weights.shape[1])
    ]
    bins = np.nan_to_num(np.stack(parts))
    count = weights @ bins[:, :, 0]
    sure, right = (weights @ (bins[:, :, 0] * bins[:, :, column]) for column in (1, 2))
    ece = np.abs(sure - right).sum(axis=1) / count.sum(axis=1)
    aim = np.eye(len(CLASSES))[samples.truth]
    off = np.bincount(at, ((said.probabilities - aim) ** 2).sum(axis=1), weights.shape[1])
    return _interval(ece), _interval(weights @ off / count.sum(axis=1))


def _interval(drawn: Floats) -> Interval:
    """From the figure itself, and from the draws behind it."""
    value, rest = float(drawn[0]), drawn[1:][~np.isnan(drawn[1:])]
    if not len(rest):
        return Interval(value, np.nan, np.nan)
    low, high = np.quantile(rest, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)).tolist()
    return Interval(value, low, high)


def class_counts(samples: Samples, said: Said) -> tuple[Int64s, Sequence[tuple[float, float]]]:
    """The confusion matrix, and precision and recall of each class over all regions."""
    table = confusion(samples.truth, said.answer, len(CLASSES))
    right, there = np.diagonal(table), table.sum(axis=1)
    said_so = table[:, : len(CLASSES)].sum(axis=0)
    shares = [
        (r / s if s else float("nan"), r / t if t else float("nan"))
        for r, s, t in zip(right.tolist(), said_so.tolist(), there.tolist(), strict=True)
    ]
    return table, shares
