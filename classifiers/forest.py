"""Boosted trees as plain arrays: what a verdict needs of the learned model, and nothing that runs.

The arrays are those of scikit-learn's `HistGradientBoostingClassifier`, which trains them
(`classifiers.training`). Importing scikit-learn would cost a second of every analysis.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Forest"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

_LEAF = -1

LEAST_SAVED = 1e-3
"""Of a window: less is as good as nothing, and a replay may lose what a class gains."""


class _Step(NamedTuple):
    """One level down in all trees: nodes before and after, (rows, trees)."""

    before: Ints
    after: Ints


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees that add up to a score for each class.

    Attributes:
        feature: (nodes,) column that a node asks; -1 for a leaf.
        threshold: (nodes,) what is at most this goes left.
        left, right: (nodes,) the nodes below; a leaf leads to itself.
        missing_left: (nodes,) where a missing value goes.
        value: (nodes,) of a leaf what it adds to the score; of others the mean below, weighted by
            the training samples.
        root: (trees,) where each begins.
        class_of: (trees,) the class to which it adds.
        base: (classes,) scores to begin with.
        saved: (classes,) columns with what is saved of the window if the class is twice as fast.
        trust: by how much the logarithm of that adds to the score of a class; 0 leaves it to the
            trees, which know ratios of columns only roughly.
        temperature: by which scores are divided before they become probabilities: above 1 where
            they are too sure of themselves.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: NDArray[np.bool_]
    value: Floats
    root: Ints
    class_of: Ints
    base: Floats
    saved: Ints
    trust: Floats
    temperature: Floats

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Forest":
        """The forest that `arrays` wrote.

        Raises:
            KeyError: an array is missing.
        """
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def scores(self, values: Floats) -> Floats:
        """(rows, classes) scores of (rows, features) values, NaN where one is missing."""
        leaves = np.broadcast_to(self.root, (len(values), len(self.root)))
        for step in self._descent(values):
            leaves = step.after
        scores = np.tile(self.base, (len(values), 1))
        for label in range(len(self.base)):
            scores[:, label] += self.value[leaves[:, self.class_of == label]].sum(axis=1)
        return scores + self.by_savings(values)

    def by_savings(self, values: Floats) -> Floats:
        """(rows, classes) what savings add to the scores; nothing where there is no replay."""
        added = self.trust * np.log(np.clip(values[:, self.saved], LEAST_SAVED, 1.0))
        return np.where(np.isnan(added).any(axis=1, keepdims=True), 0.0, added)

    def probabilities(self, values: Floats) -> Floats:
        """(rows, classes) calibrated probabilities; each row sums to 1."""
        scores = self.scores(values) / self.temperature
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)

    def contributions(self, values: Floats, label: int) -> Floats:
        """(rows, features) what each feature adds to the score of a class, beside the mean.

        Walking down a tree every node moves the expected score; the move belongs to the feature
        that the node asks (A. Saabas, "Interpreting random forests", 2014). With what the savings
        add it sums exactly to the score less the trees' mean over the training samples.
        """
        found = np.zeros(values.shape)
        mine = self.class_of == label
        rows = np.arange(len(values))[:, None]
        for before, after in self._descent(values):
            moved = np.where(before == after, 0.0, self.value[after] - self.value[before])
            asked = np.maximum(self.feature[before], 0)
            at = (np.broadcast_to(rows, before.shape)[:, mine], asked[:, mine])
            np.add.at(found, at, moved[:, mine])
        found[:, self.saved[label]] += self.by_savings(values)[:, label]
        return found

    def _descent(self, values: Floats) -> list[_Step]:
        """Level by level, until every tree is at a leaf."""
        node = np.broadcast_to(self.root, (len(values), len(self.root)))
        steps = []
        rows = np.arange(len(values))[:, None]
        while (self.feature[node] != _LEAF).any():
            asked = values[rows, np.maximum(self.feature[node], 0)]
            left = np.where(np.isnan(asked), self.missing_left[node], asked <= self.threshold[node])
            below = np.where(left, self.left[node], self.right[node])
            steps.append(_Step(node, below))
            node = below
        return steps
