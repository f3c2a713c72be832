"""How much longer a kernel takes while a collective runs beside it, fitted on the trace itself."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import cut, merge
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Contention", "fit_contention"]

PUBLISHED = 1.34
"""Times as long as collectives took beside compute: Daydream (USENIX ATC 2020) saw 34 %."""

ALONE, BESIDE = 0.01, 0.9
"""Of a kernel under collectives, to be counted as alone or beside them; a choice."""

LEAST = 3
"""Kernels of one name on either side that are compared."""

EVEN = 0.3
"""Spread of such kernels, as a share of their median, up to which they have one shape; a choice."""

ANOTHER_SHAPE = 3.0
"""Times as long from which on kernels of one name have other shapes: collectives take a few of a
device's multiprocessors and a part of its memory bandwidth; a choice."""


class Contention(NamedTuple):
    """How much longer kernels take beside collectives.

    Attributes:
        typical: times as long, weighted by time; 1 where the trace cannot tell.
        high: the same for the kernels that suffer most; `PUBLISHED` where it cannot tell.
        kernels: on how many names of kernels it rests.
    """

    typical: float
    high: float
    kernels: int


def fit_contention(ranks: Sequence[RankFacts]) -> Contention:
    """Compare kernels of one name that run beside collectives with those that do not."""
    found = [pair for facts in ranks for pair in _ratios(facts)]
    if not found:
        return Contention(1.0, PUBLISHED, 0)
    ratio, weight = np.array(found).T
    order = np.argsort(ratio)
    upto = np.cumsum(weight[order]) / weight.sum()
    typical, high = (float(ratio[order][np.searchsorted(upto, q)]) for q in (0.5, 0.9))
    return Contention(max(1.0, typical), max(1.0, high), len(found))


def _ratios(facts: RankFacts) -> list[tuple[float, float]]:
    """For each name of kernels that runs both ways: times as long, and time in all."""
    work = facts.model.work
    rows = np.flatnonzero(facts.kernels & (facts.length_ns > 0))
    if not len(rows) or not (facts.here & work.kind.where("collective")).any():
        return []
    under, with_others = _beside(facts, rows)
    code, length = work.name.codes[rows], facts.length_ns[rows]
    alone = (under <= ALONE) & ~with_others
    beside = (under >= BESIDE) & ~with_others
    names = len(work.name.texts)
    often = (np.bincount(code[alone], minlength=names) >= LEAST) & (
        np.bincount(code[beside], minlength=names) >= LEAST
    )
    found = []
    for name in np.flatnonzero(often).tolist():
        free, held = length[alone & (code == name)], length[beside & (code == name)]
        if _even(free) and _even(held):
            ratio = float(np.median(held) / np.median(free))
            if ratio <= ANOTHER_SHAPE:
                found.append((ratio, float(free.sum() + held.sum())))
    return found


def _beside(facts: RankFacts, rows: Int64s) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(n,) share of each kernel during which a collective runs, and whether other work does."""
    work = facts.model.work
    moving = facts.here & work.kind.where("collective")
    under = _covered(facts, rows, merge(work.ts_ns[moving], work.end_ns[moving]))
    others = facts.here & ~moving
    starts, ends = np.sort(work.ts_ns[others]), np.sort(work.end_ns[others])
    begun = np.searchsorted(starts, work.end_ns[rows], "left")
    done = np.searchsorted(ends, work.ts_ns[rows], "right")
    return under, begun - done > 1


def _covered(facts: RankFacts, rows: Int64s, union: tuple[Int64s, Int64s]) -> NDArray[np.float64]:
    work = facts.model.work
    parts = cut((work.ts_ns[rows], work.end_ns[rows]), union)
    time = np.bincount(parts.interval, parts.end_ns - parts.start_ns, len(rows))
    return np.asarray(time / facts.length_ns[rows], np.float64)


def _even(length_ns: Int64s) -> bool:
    low, middle, high = np.percentile(length_ns, (10, 50, 90))
    return bool(high - low <= EVEN * middle)
