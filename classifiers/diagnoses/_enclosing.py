"""Which range of a kind device work comes from."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["AUTOGRAD", "enclosing", "of_autograd", "top_is"]

Bools = NDArray[np.bool_]

AUTOGRAD = "autograd::engine::evaluate_function"
"""What autograd records around each node of the graph; its name follows."""


def enclosing(facts: RankFacts, chosen: Bools) -> Int64s:
    """(work,) row of the innermost chosen range around each launch, or -1.

    Args:
        facts: the rank.
        chosen: (hosts,) operators and annotations that count.
    """
    # Row -1, which stands for no range, is the last one: it is not chosen and in nothing.
    parent, counts = np.append(facts.origins.parent, ABSENT), np.append(chosen, False)
    found = np.where(counts, np.arange(len(counts)), ABSENT)
    rows = np.flatnonzero((found == ABSENT) & (parent != ABSENT))
    above = parent[rows]
    while len(rows):
        hit = counts[above]
        found[rows[hit]] = above[hit]
        go_on = ~hit & (parent[above] != ABSENT)
        rows, above = rows[go_on], parent[above[go_on]]
    return np.asarray(found[facts.origins.around], np.int64)


def top_is(facts: RankFacts, wanted: Callable[[str], bool]) -> Bools:
    """(work,) whether the name of the outermost operator is wanted; asked once a name."""
    return np.append(facts.origins.named(wanted), False)[facts.origins.top]


def of_autograd(facts: RankFacts) -> Bools:
    """(hosts,) the nodes that the backward pass evaluates."""
    return facts.origins.named(lambda name: name.startswith(AUTOGRAD))
