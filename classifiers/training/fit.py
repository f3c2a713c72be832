"""The classifier fitted: trees, a temperature from workloads left out, and when to abstain."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.boosting import fit_forest
from perfdiag.classifiers.features import FEATURES
from perfdiag.classifiers.forest import Forest
from perfdiag.classifiers.training.samples import CLASSES, Samples

__all__ = ["SETTINGS", "Fitted", "fit", "left_out", "temperature_of", "weights_of"]

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

SETTINGS: Mapping[str, Any] = {
    "max_iter": 150,
    "learning_rate": 0.06,
    "max_leaf_nodes": 12,
    "min_samples_leaf": 20,
    "l2_regularization": 5.0,
    "max_features": 0.3,
    "max_bins": 64,
    "early_stopping": False,
}
"""Small trees and few features each: workloads that were never seen are what counts. With 255 bins
scikit-learn 1.9 spends most of the time on the weighted quantiles between them."""

DOUBTFUL = 0.2
"""Weight of a region whose truth is ambiguous, beside one whose truth is not."""


TRUSTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Weights of what a replay says that each class saves, that are tried beside each temperature."""

TEMPERATURES = np.geomspace(0.25, 8.0, 121)
"""That are tried: 3 % apart."""


_COLUMN = {one.name: at for at, one in enumerate(FEATURES)}
_SAVED = np.array([_COLUMN[f"saved_{one.removesuffix('-bound')}"] for one in CLASSES], np.int32)


class Fitted(NamedTuple):
    """A forest, and (rows, classes) probabilities of rows by forests that know nothing like them.

    `least`: of the most probable class, below which there is no answer.
    """

    forest: Forest
    out_of_fold: Floats
    least: float


def weights_of(samples: Samples) -> Floats:
    """(n,) a job's steps weigh as much as those of any other, and its phases likewise."""
    weight = np.where(samples.ambiguous, DOUBTFUL, 1.0)
    group = 2 * samples.seed + samples.step
    _, at, count = np.unique(group, return_inverse=True, return_counts=True)
    weight = weight / count[at]
    return np.asarray(weight * len(weight) / weight.sum(), np.float64)


def fit(samples: Samples, seed: int, risk: float, settings: Mapping[str, Any] = SETTINGS) -> Fitted:
    """Fit the classifier.

    The trust in savings, the temperature and the least probability come from families of models
    that the forest in question has not seen: what users bring is not what it was trained on.

    Args:
        samples: to train on.
        seed: of the trees' random choices.
        risk: share of the answers on families left out that may be wrong.
        settings: of the trees.
    """
    scores = left_out(samples, "family", seed, settings)
    clear, forest = ~samples.ambiguous, _forest(samples, seed, settings)
    truth, weights = samples.truth[clear], weights_of(samples)[clear]
    tried = []
    for trust in TRUSTS:
        trusting = replace(forest, trust=np.array([trust]))
        pooled = scores + trusting.by_savings(samples.values)
        temperature, loss = temperature_of(pooled[clear], truth, weights)
        tried.append((loss, trust, replace(trusting, temperature=np.array([temperature])), pooled))
    _, _, best, pooled = min(tried, key=lambda one: one[:2])
    probabilities = _softmax(pooled / best.temperature)
    return Fitted(best, probabilities, _least(probabilities[clear], truth, risk))


def _forest(samples: Samples, seed: int, settings: Mapping[str, Any]) -> Forest:
    forest = fit_forest(samples.values, samples.truth, weights_of(samples), dict(settings), seed)
    return replace(forest, saved=_SAVED)


def left_out(
    samples: Samples, key: str, seed: int, settings: Mapping[str, Any] = SETTINGS
) -> Floats:
    """(n, classes) scores by forests that were fitted without any job alike in `about[key]`."""
    of = np.array([samples.about[s][key] for s in samples.seed.tolist()])
    scores = np.zeros((len(of), len(CLASSES)))
    for value in np.unique(of):
        inside = of == value
        forest = _forest(samples.take(~inside), seed, settings)
        scores[inside] = forest.scores(samples.values[inside])
    return scores


def temperature_of(scores: Floats, truth: Int64s, weights: Floats) -> tuple[float, float]:
    """By which scores are divided for the truth to be most likely (Guo et al., ICML 2017).

    And how unlikely it then is: the mean of minus the logarithm of its probability.
    """
    rows = np.arange(len(truth))
    losses = []
    for temperature in TEMPERATURES.tolist():
        likely = np.maximum(_softmax(scores / temperature)[rows, truth], 1e-12)
        losses.append(-float((weights * np.log(likely)).sum()))
    best = int(np.argmin(losses))
    return float(TEMPERATURES[best]), losses[best] / float(weights.sum())


def _softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)


def _least(probabilities: Floats, truth: Int64s, risk: float) -> float:
    """The least confidence from which on at most that share of the answers is wrong."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    order = np.argsort(-sure)
    wrong = np.cumsum(~right[order]) / np.arange(1, len(order) + 1)
    allowed = np.flatnonzero(wrong <= risk)
    return float(sure[order][allowed[-1]]) if len(allowed) else 1.0
