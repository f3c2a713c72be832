"""The learned classifier as it is shipped: plain arrays and a card, read when first asked for.

`learned.npz` holds the trees (`forest.Forest`), `learned.json` the card: on what they were trained,
how good they are on what they were not trained on, and the hash of the arrays. Both are made by
`make model` (`classifiers.training`), the same from the same seeds.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from perfdiag.classifiers.features import FEATURES, FeatureTable
from perfdiag.classifiers.forest import Floats, Forest
from perfdiag.trace_schemas.errors import PerfdiagError

__all__ = ["FOLDER", "Card", "Learned", "features_version", "learned", "read_learned"]

FOLDER = Path(__file__).parent

AT_ONCE = 1000
"""Regions that go down the trees together: 30 MB."""


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be known of a model.

    Attributes:
        sha256: of the arrays.
        features: hash of the names, units and meanings of the features.
        least: the probability of the best class below which the model abstains; `risk`: the share
            of wrong answers above it, on families that a model had not seen.
        train, test: where jobs were drawn from: families, platforms, seeds, number of regions.
        metrics: on the test set, ambiguous regions apart.
        settings: of the trees.
    """

    sha256: str
    features: str
    least: float
    risk: float
    train: dict[str, Any]
    test: dict[str, Any]
    metrics: dict[str, Any]
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Learned:
    """The classifier: its trees, and its card."""

    forest: Forest
    card: Card

    def probabilities(self, table: FeatureTable) -> Floats:
        """(regions, classes) calibrated probabilities, in the order of the labels."""
        parts = np.array_split(table.values, range(AT_ONCE, len(table.values), AT_ONCE))
        return np.concatenate([self.forest.probabilities(part) for part in parts])


def features_version() -> str:
    """Hash of what the features are; a model belongs to one."""
    described = "\n".join(f"{one.name} {one.unit} {one.meaning}" for one in FEATURES)
    return hashlib.sha256(described.encode()).hexdigest()


def read_learned(folder: Path) -> Learned:
    """Read a model.

    Raises:
        PerfdiagError: arrays and card do not belong together, or to these features.
    """
    data = (folder / "learned.npz").read_bytes()
    card = msgspec.json.decode((folder / "learned.json").read_bytes(), type=Card)
    if hashlib.sha256(data).hexdigest() != card.sha256:
        msg = f"{folder / 'learned.npz'}: is not the model that learned.json describes"
        raise PerfdiagError(msg)
    if card.features != features_version():
        msg = f"{folder / 'learned.npz'}: was trained on other features; run make model"
        raise PerfdiagError(msg)
    with np.load(folder / "learned.npz", allow_pickle=False) as stored:
        return Learned(Forest.from_arrays(stored), card)


@lru_cache(maxsize=1)
def learned() -> Learned | None:
    """The model that perfdiag ships; None in a checkout in which it was not made yet."""
    return read_learned(FOLDER) if (FOLDER / "learned.npz").exists() else None
