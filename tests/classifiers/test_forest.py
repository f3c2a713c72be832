"""Boosted trees as arrays."""

import numpy as np
import pytest

from perfdiag.classifiers.forest import Forest

sklearn_ensemble = pytest.importorskip("sklearn.ensemble")
from perfdiag.classifiers.boosting import fit_forest  # noqa: E402

SETTINGS = {"max_iter": 20, "max_leaf_nodes": 7, "learning_rate": 0.2, "early_stopping": False}


def table(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    values = random.normal(size=(rows, 5))
    values[random.random(values.shape) < 0.15] = np.nan
    filled = np.nan_to_num(values)
    labels = (filled[:, 0] > 0).astype(int) + (filled[:, 1] + filled[:, 2] > 0.4)
    return values, labels


@pytest.fixture(scope="module")
def forest() -> Forest:
    values, labels = table()
    return fit_forest(values, labels, np.ones(len(labels)), SETTINGS, 0)


def test_probabilities_are_those_of_scikit_learn(forest: Forest) -> None:
    """The same trees say the same of rows that they have not seen, missing values included."""
    values, labels = table()
    theirs = sklearn_ensemble.HistGradientBoostingClassifier(random_state=0, **SETTINGS)
    theirs.fit(values, labels)
    unseen = np.random.default_rng(2).normal(size=(200, 5))
    unseen[::3, 1] = np.nan
    assert np.allclose(forest.probabilities(unseen), theirs.predict_proba(unseen), atol=1e-9)


def test_contributions_sum_to_the_score_less_its_mean(forest: Forest) -> None:
    """Nothing of a score is left over, for any class."""
    values = table(50)[0]
    for label in range(3):
        mean = forest.base[label] + forest.value[forest.root[forest.class_of == label]].sum()
        whole = forest.contributions(values, label).sum(axis=1)
        assert np.allclose(whole, forest.scores(values)[:, label] - mean)


def test_a_feature_that_no_tree_asks_contributes_nothing(forest: Forest) -> None:
    """The last two columns are noise: they move a score less than those that count."""
    moved = np.abs(forest.contributions(table()[0], 0)).sum(axis=0)
    assert moved[0] > 5 * moved[3:].max()


def test_arrays_go_there_and_back(forest: Forest) -> None:
    """A file of arrays holds the whole forest."""
    values = table(20)[0]
    again = Forest.from_arrays(forest.arrays())
    assert np.array_equal(again.scores(values), forest.scores(values))


def test_a_temperature_moderates_and_keeps_the_order(forest: Forest) -> None:
    """Above 1 the largest probability falls and stays the largest."""
    values = table(50)[0]
    cool = Forest.from_arrays(forest.arrays() | {"temperature": np.array([2.0])})
    sure, moderate = forest.probabilities(values), cool.probabilities(values)
    assert (sure.argmax(axis=1) == moderate.argmax(axis=1)).all()
    assert (moderate.max(axis=1) < sure.max(axis=1)).all()
