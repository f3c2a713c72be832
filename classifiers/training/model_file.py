"""The model's files: arrays, and the card that says what they are and how good."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from perfdiag.classifiers.learned import Card, features_version
from perfdiag.classifiers.training.fit import SETTINGS, Fitted
from perfdiag.classifiers.training.metrics import Scores, score
from perfdiag.classifiers.training.samples import CLASSES, Samples
from perfdiag.trace_schemas.packed import pack

__all__ = ["Described", "answers", "write_model"]

Described = tuple[Samples, dict[str, Any]]
"""Regions, and where their jobs were drawn from."""


def write_model(
    folder: Path, fitted: Fitted, train: Described, test: Described, risk: float
) -> Card:
    """Write `learned.npz` and `learned.json`.

    Args:
        folder: to write into.
        fitted: the model.
        train: what it was trained on.
        test: what it was not trained on; its metrics are those of the card.
        risk: see `Card`.
    """
    data = pack(fitted.forest.arrays(), compressed=True)
    card = Card(
        sha256=hashlib.sha256(data).hexdigest(),
        features=features_version(),
        least=fitted.least,
        risk=risk,
        train=train[1] | _sizes(train[0]) | {"labels": _labels(train[0])},
        test=test[1] | _sizes(test[0]),
        metrics=_metrics(fitted, test[0]),
        settings=dict(SETTINGS),
    )
    (folder / "learned.npz").write_bytes(data)
    text = msgspec.json.format(msgspec.json.encode(card, order="deterministic"), indent=2)
    (folder / "learned.json").write_bytes(text + b"\n")
    return card


def _sizes(samples: Samples) -> dict[str, Any]:
    return {
        "jobs": len(samples.about),
        "regions": len(samples.truth),
        "ambiguous": int(samples.ambiguous.sum()),
    }


def _labels(samples: Samples) -> dict[str, int]:
    """Regions by their true class, ambiguous ones apart."""
    count = np.bincount(samples.truth[~samples.ambiguous], minlength=len(CLASSES))
    return dict(zip(map(str, CLASSES), count.tolist(), strict=True))


def answers(fitted: Fitted, samples: Samples) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(n,) what the report would say: see `labels`; -1 for `unknown`."""
    shares = fitted.forest.probabilities(samples.values)
    best = shares.argmax(axis=1)
    silent = (shares.max(axis=1) < fitted.least) & (best != samples.rules)
    return np.where(silent | (samples.rules < 0), -1, best)


def _metrics(fitted: Fitted, samples: Samples) -> dict[str, Any]:
    clear = samples.take(~samples.ambiguous)
    found = {}
    for name, some in (("steps", clear.take(clear.step)), ("phases", clear.take(~clear.step))):
        shares = fitted.forest.probabilities(some.values)
        found[name] = _rounded(score(some.truth, answers(fitted, some), len(CLASSES), shares))
    return found


def _rounded(scores: Scores) -> dict[str, Any]:
    return {
        name: np.round(value, 4).tolist() if isinstance(value, np.ndarray) else round(value, 4)
        for name, value in scores._asdict().items()
    }
