"""Training of the trees that `forest` evaluates: scikit-learn's, turned into our arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.forest import Forest

__all__ = ["fit_forest"]

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]


def fit_forest(
    values: Floats, labels: Int64s, weights: Floats, settings: dict[str, Any], seed: int
) -> Forest:
    """Fit gradient-boosted trees; the temperature is 1.

    Args:
        values: (rows, features), NaN where one is missing.
        labels: (rows,) classes from 0 on, each of which occurs.
        weights: (rows,) of the samples.
        settings: of `HistGradientBoostingClassifier`.
        seed: of its random choices.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(random_state=seed, **settings)
    model.fit(values, labels, sample_weight=weights)
    return _converted(model)


def _converted(model: Any) -> Forest:
    trees = [(label, tree.nodes) for each in model._predictors for label, tree in enumerate(each)]
    sizes = np.array([len(nodes) for _, nodes in trees])
    first = np.cumsum(sizes) - sizes
    nodes = np.concatenate([nodes for _, nodes in trees])
    offset = np.repeat(first, sizes)
    leaf = nodes["is_leaf"].astype(np.bool_)
    own = np.arange(len(nodes))
    left, right = (np.where(leaf, own, nodes[side] + offset) for side in ("left", "right"))
    return Forest(
        feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
        threshold=np.where(leaf, 0.0, nodes["num_threshold"]),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        value=_means(nodes["value"], nodes["count"], leaf, (left, right)),
        root=first.astype(np.int32),
        class_of=np.array([label for label, _ in trees], np.int32),
        base=np.asarray(model._baseline_prediction, np.float64).ravel(),
        saved=np.zeros(model._baseline_prediction.size, np.int32),
        trust=np.zeros(1),
        temperature=np.ones(1),
    )


def _means(
    value: Floats, count: NDArray[Any], leaf: NDArray[np.bool_], below: tuple[Int64s, Int64s]
) -> Floats:
    """(nodes,) of inner nodes the mean of the leaves below them; children stand behind parents."""
    found, weight = value.copy(), count.astype(np.float64)
    left, right = below
    for node in np.flatnonzero(~leaf)[::-1].tolist():
        a, b = int(left[node]), int(right[node])
        whole = weight[a] + weight[b]
        found[node] = (found[a] * weight[a] + found[b] * weight[b]) / whole
    return found
