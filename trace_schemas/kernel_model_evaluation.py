"""How good guesses from names are on a vendor whose names the model has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.kernel_guess import REFUSED
from perfdiag.trace_schemas.kernel_model_fit import NamedKernel, fit_names
from perfdiag.trace_schemas.kernels import FAMILIES

__all__ = ["HeldOut", "Quality", "calibrate", "hold_out", "quality", "softmax"]

ACCURACY = 0.92
"""Asked of guesses at unknown names where the threshold is chosen, so that nine in ten are right on
yet another vendor. A wrong family moves time to a wrong class; no family leaves it unclassified."""

_TEMPERATURES = np.arange(0.2, 2.001, 0.02)
_THRESHOLDS = np.arange(0.3, 0.991, 0.01)
_UNSEEN = -50.0  # the score of a family of which no other vendor has a name
_BINS = 10

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Scores of each name by the model of all other vendors.

    Attributes:
        kernels: the names that were scored.
        families: sorted.
        scores: (kernels, families).
    """

    kernels: tuple[NamedKernel, ...]
    families: tuple[str, ...]
    scores: Floats

    @property
    def truth(self) -> NDArray[np.int64]:
        """(kernels,) index of the right family."""
        return np.searchsorted(self.families, [kernel.family for kernel in self.kernels])

    def part(self, chosen: Bools) -> "HeldOut":
        """Some of the names."""
        kernels = tuple(self.kernels[i] for i in np.flatnonzero(chosen))
        return HeldOut(kernels, self.families, self.scores[chosen])

    def of_vendor(self, vendor: str) -> Bools:
        """(kernels,) whose names are of a vendor."""
        return np.array([kernel.vendor == vendor for kernel in self.kernels], np.bool_)

    @property
    def strange(self) -> Bools:
        """(kernels,) names that the table does not know."""
        return np.array([not kernel.in_table for kernel in self.kernels], np.bool_)


@dataclass(frozen=True, slots=True)
class Quality:
    """How guesses fare.

    Attributes:
        count: names.
        accuracy: share of names whose most probable class is right.
        guessed: share of names for which a guess is made; the others stay `other`.
        guessed_accuracy: share of the guesses that are right; NaN where there are none.
        calibration_error: expected, in ten bins, of the probability of the most probable class.
    """

    count: int
    accuracy: float
    guessed: float
    guessed_accuracy: float
    calibration_error: float


def hold_out(kernels: Sequence[NamedKernel], vendors: Sequence[str]) -> HeldOut:
    """Score each vendor's names by a model that has seen none of them.

    Args:
        kernels: all names.
        vendors: those to be scored, each by a model of its own.
    """
    families = tuple(sorted({kernel.family for kernel in kernels}))
    parts = [_scored(kernels, vendor, families) for vendor in vendors]
    scored = tuple(kernel for vendor in vendors for kernel in kernels if kernel.vendor == vendor)
    return HeldOut(scored, families, np.concatenate(parts))


def _scored(kernels: Sequence[NamedKernel], vendor: str, families: Sequence[str]) -> Floats:
    names = [kernel.name for kernel in kernels if kernel.vendor == vendor]
    keys = {kernel.key for kernel in kernels if kernel.vendor == vendor}
    fitted = fit_names([k for k in kernels if k.vendor != vendor and k.key not in keys])
    scores = np.full((len(names), len(families)), _UNSEEN)
    scores[:, np.searchsorted(families, fitted.families)] = fitted.scores(names)
    return scores


def softmax(scores: Floats, temperature: float) -> Floats:
    """(names, families) probabilities."""
    odds = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float64)


def calibrate(held: HeldOut) -> tuple[float, float]:
    """Temperature and threshold that suit the names.

    Returns:
        the temperature with the least log loss, and the least probability above which guesses
        are right as often as `ACCURACY`; 1 where none is.
    """
    rows = np.arange(len(held.kernels))
    sure = [softmax(held.scores, t)[rows, held.truth] for t in _TEMPERATURES]
    losses = [-np.log(right + 1e-12).mean() for right in sure]
    temperature = float(_TEMPERATURES[int(np.argmin(losses))])
    for threshold in _THRESHOLDS:
        if quality(held, temperature, float(threshold)).guessed_accuracy >= ACCURACY:
            return round(temperature, 2), round(float(threshold), 2)
    return round(temperature, 2), 1.0


def quality(held: HeldOut, temperature: float, threshold: float, *, bound: bool = False) -> Quality:
    """How guesses at the names fare.

    Args:
        held: names with their scores.
        temperature: by which scores are divided.
        threshold: the least probability of a family that is worth a guess.
        bound: judge the class that follows from the family: compute, memory or neither.
    """
    probabilities = softmax(held.scores, temperature)
    best = probabilities.argmax(axis=1)
    refused = np.array(held.families)[best] == REFUSED
    guessed = ~refused & (probabilities.max(axis=1) >= threshold)
    truth, found = held.truth, best
    if bound:
        probabilities, columns = _by_bound(held.families, probabilities)
        truth, found = columns[truth], columns[best]
    right = truth == found
    sure = probabilities[np.arange(len(found)), found]
    return Quality(
        len(right),
        float(right.mean()),
        float(guessed.mean()),
        float(right[guessed].mean()) if guessed.any() else float("nan"),
        _calibration_error(sure, right),
    )


def _by_bound(families: Sequence[str], probabilities: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Probabilities added up by bound, and the column of each family in them."""
    bounds = [FAMILIES[family] for family in families]
    kinds = sorted(set(bounds))
    columns = np.array([kinds.index(bound) for bound in bounds])
    return probabilities @ np.eye(len(kinds))[columns], columns


def _calibration_error(sure: Floats, right: Bools) -> float:
    place = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
    gap = np.bincount(place, sure - right, _BINS)
    return float(np.abs(gap).sum() / len(sure))
