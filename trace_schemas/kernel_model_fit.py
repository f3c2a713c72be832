"""Fit the model of kernel names with scikit-learn, which only the training needs."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.kernel_guess import REFUSED
from perfdiag.trace_schemas.kernel_words import kernel_words, word_grams
from perfdiag.trace_schemas.kernels import classify_by_table

__all__ = ["NAMES", "FittedNames", "NamedKernel", "fit_names", "gram_matrix", "read_names"]

NAMES = Path(__file__).with_name("kernel_names.csv")

_LEAST_NAMES = 3
_INVERSE_PENALTY = 20.0
"""Both chosen on vendors held out: 2 names or 10 to 100 change their accuracy by at most 1 %."""


@dataclass(frozen=True, slots=True)
class NamedKernel:
    """A row of `kernel_names.csv`.

    Attributes:
        name: as a trace would write it.
        family: what it is; `REFUSED` where the name is not to be guessed at.
        vendor: whose library, compiler or habit of naming it is.
    """

    name: str
    family: str
    vendor: str

    @property
    def key(self) -> str:
        """What is the same for names that differ in digits and punctuation only."""
        return " ".join(kernel_words(self.name))

    @property
    def in_table(self) -> bool:
        """Whether the rules know the name, so that no guess is needed."""
        return classify_by_table(self.name).family != REFUSED


@dataclass(frozen=True)
class FittedNames:
    """What scikit-learn found.

    Attributes:
        grams: pieces of names, sorted: the columns of `gram_matrix`.
        regression: the fitted `LogisticRegression`.
    """

    grams: tuple[str, ...]
    regression: Any

    @property
    def families(self) -> tuple[str, ...]:
        """The classes, sorted."""
        return tuple(map(str, self.regression.classes_))

    def scores(self, names: Sequence[str]) -> NDArray[np.float64]:
        """(names, families) scores before softmax and temperature."""
        matrix = gram_matrix(names, self.grams)
        return np.asarray(self.regression.decision_function(matrix), np.float64)


def read_names(path: Path = NAMES) -> list[NamedKernel]:
    """The names that the model learns from, with what they are."""
    with path.open(encoding="utf-8", newline="") as file:
        return [NamedKernel(**row) for row in csv.DictReader(file)]


def fit_names(kernels: Sequence[NamedKernel]) -> FittedNames:
    """Fit a multinomial logistic regression; the same names give the same weights."""
    from sklearn.linear_model import LogisticRegression

    names = [kernel.name for kernel in kernels]
    grams = _grams(names)
    regression = LogisticRegression(C=_INVERSE_PENALTY, tol=1e-3, max_iter=1000)
    regression.fit(gram_matrix(names, grams), np.array([kernel.family for kernel in kernels]))
    # Rounded here, not on writing: what is judged is then what is shipped.
    regression.coef_ = regression.coef_.astype(np.float16).astype(np.float64)
    regression.intercept_ = regression.intercept_.astype(np.float32).astype(np.float64)
    return FittedNames(grams, regression)


def _grams(names: Sequence[str]) -> tuple[str, ...]:
    """Pieces that occur in several names."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=_pieces, min_df=_LEAST_NAMES).fit(names)
    return tuple(sorted(counter.vocabulary_))


def _pieces(name: str) -> list[str]:
    return word_grams(kernel_words(name))


def gram_matrix(names: Sequence[str], grams: Sequence[str]) -> Any:
    """(names, grams) sparse: 1 over the root of the number of a name's pieces, where it has one.

    Args:
        names: of kernels.
        grams: the columns, sorted.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(analyzer=_pieces, vocabulary=list(grams), dtype=np.float64)
    lengths = np.array([max(len(_pieces(name)), 1) for name in names], np.float64)
    return counter.transform(names).multiply(1 / np.sqrt(lengths)[:, np.newaxis]).tocsr()
