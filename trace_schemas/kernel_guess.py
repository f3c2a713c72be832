"""A guess at what a kernel is, from pieces of its name: for names that the table does not know.

The weights come from `kernel_model_training`; numpy alone reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.kernel_words import kernel_words, word_grams

__all__ = ["REFUSED", "Bound", "Guess", "KernelModel", "guess_family", "kernel_model", "read_model"]

Bound = Literal["compute", "memory", "unclassified"]

REFUSED = "other"
"""The model's class of names that tell no family: markers, copies, collectives, gibberish."""

_LETTERS, _LETTERS_OF_ONE_WORD = 6, 8
"""Below so many letters, or in a single word of fewer, a name says too little; a choice."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What the name of a kernel looks like.

    Attributes:
        family: a key of `perfdiag.trace_schemas.kernels.FAMILIES`.
        bound: what the family is assumed to be bound by.
        probability: that the family is right, calibrated on vendors the model had not seen.
    """

    family: str
    bound: Bound
    probability: float


@dataclass(frozen=True, slots=True)
class KernelModel:
    """Multinomial logistic regression over pieces of names.

    Attributes:
        rows: piece to its row of `weights`.
        weights: (pieces, families).
        intercept: (families,).
        families: names of the columns, sorted; one of them is `REFUSED`.
        bounds: what each family is assumed to be bound by.
        temperature: by which scores are divided.
        threshold: the least probability that is worth a guess.
    """

    rows: Mapping[str, int]
    weights: NDArray[np.float32]
    intercept: NDArray[np.float32]
    families: tuple[str, ...]
    bounds: tuple[Bound, ...]
    temperature: float
    threshold: float

    def probabilities(self, words: list[str]) -> NDArray[np.float64]:
        """(families,) how probable each is for a kernel of these words; they add up to 1."""
        grams = word_grams(words)
        rows = [row for gram in grams if (row := self.rows.get(gram)) is not None]
        # Unknown pieces count in the length: a name of mostly unknown pieces stays undecided.
        scale = np.sqrt(max(len(grams), 1))
        scores = self.weights[rows].sum(axis=0, dtype=np.float64) / scale + self.intercept
        odds = np.exp((scores - scores.max()) / self.temperature)
        return np.asarray(odds / odds.sum(), np.float64)


def read_model(path: Path) -> KernelModel:
    """Read the weights that `kernel_model_training` wrote.

    Args:
        path: the archive; it holds plain arrays and no pickles.
    """
    with np.load(path, allow_pickle=False) as stored:
        grams, families, bounds = (
            stored[name].tobytes().decode().split("\n") for name in ("grams", "families", "bounds")
        )
        return KernelModel(
            rows={gram: row for row, gram in enumerate(grams)},
            weights=stored["weights"].astype(np.float32),
            intercept=stored["intercept"],
            families=tuple(families),
            bounds=cast("tuple[Bound, ...]", tuple(bounds)),
            temperature=float(stored["temperature"].item()),
            threshold=float(stored["threshold"].item()),
        )


@lru_cache(maxsize=1)
def kernel_model() -> KernelModel:
    """The model that perfdiag ships; read when the first name needs it."""
    return read_model(Path(__file__).with_name("kernel_names.npz"))


def guess_family(name: str) -> Guess | None:
    """What the kernel called `name` looks like; None where that is not sure enough.

    Args:
        name: as the trace writes it: demangled or mangled C++, a Triton, XLA or MTIA name.
    """
    words = kernel_words(name)
    if not _says_something(words):
        return None
    model = kernel_model()
    if not any(f"={word}" in model.rows for word in words if any(map(str.isalpha, word))):
        return None  # pieces of words alone also occur in "platform" and "samples"
    probabilities = model.probabilities(words)
    best = int(probabilities.argmax())
    family, probability = model.families[best], float(probabilities[best])
    if family == REFUSED or probability < model.threshold:
        return None
    return Guess(family, model.bounds[best], probability)


def _says_something(words: list[str]) -> bool:
    letters = [count for word in words if (count := sum(c.isalpha() for c in word))]
    enough = _LETTERS if len(letters) > 1 else _LETTERS_OF_ONE_WORD
    return sum(letters) >= enough
