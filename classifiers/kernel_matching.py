"""Which launches of a trace the launches are in which a profiler counted.

The profiler serialises kernels and saw the same run or another one of the same job, so times tell
nothing. Names, the order of launches and grids do; what these leave open is not matched.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.counted_figures import Figures
from perfdiag.profiler.counters.kernels import KernelMetrics
from perfdiag.profiler.model import Work
from perfdiag.trace_schemas.kernel_identity import KernelName, kernel_name
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["AGREE", "Matching", "match_kernels"]

Key = TypeVar("Key", bound=Hashable)
Floats = NDArray[np.float64]
Grid = tuple[int, ...]
Found = dict[int, tuple[int, ...]]
"""Launches, whose mean it is, by row of `Work`."""

AGREE = 0.05
"""By which the largest figure of launches may exceed the smallest for their mean to stand for any
of them. A choice: as far as counted and modelled operations may differ."""

_DIMENSIONS = 3


@dataclass(frozen=True, slots=True)
class Matching:
    """What is matched with what.

    Attributes:
        work: of the rank.
        rows: of `Work`, what the profiler may have seen: kernels and collectives of the device.
        kernels: the launches in which was counted, in their order.
        figures: of these.
        modelled: (work, k) what a cost model says of each row, nan where it does not.
        grids: blocks in x, y and z by row of `Work`, of the rows whose grid is known.
    """

    work: Work
    rows: Int64s
    kernels: Sequence[KernelMetrics]
    figures: Sequence[Figures]
    modelled: Floats
    grids: Mapping[int, Grid]

    def ordered(self, rows: Sequence[int]) -> list[int] | None:
        """Rows in the order of their launches; None where the trace does not tell it."""
        at = np.array(rows, np.int64)
        begin, launch, lane = (
            column[at] for column in (self.work.ts_ns, self.work.launch_ts_ns, self.work.lane)
        )
        if len(np.unique(lane)) == 1:
            return [int(row) for row in at[np.argsort(begin, kind="stable")]]
        if (launch == ABSENT).any():
            return None
        order = np.lexsort((begin, launch))
        tied = (np.diff(launch[order]) == 0) & (np.diff(lane[order]) != 0)
        return None if tied.any() else [int(row) for row in at[order]]

    def one_by_one(self, counted: Sequence[int], rows: Sequence[int]) -> Found | None:
        """The n-th with the n-th, if there are as many and neither name nor grid speaks against."""
        if len(counted) != len(rows) or self._means(counted):
            return None
        order = self.ordered(rows)
        if order is None:
            return None
        pairs = list(zip(order, counted, strict=True))
        if not all(self._may_be(row, kernel) for row, kernel in pairs):
            return None
        return {row: (kernel,) for row, kernel in pairs}

    def by_mean(self, counted: Sequence[int], rows: Sequence[int]) -> Found:
        """Each row with the mean of all launches, where these are alike and so are the rows."""
        one_name = len({self.work.name.codes[row] for row in rows}) == 1
        if len(counted) < 2 or self._means(counted) or not one_name:
            return {}
        told = np.array([self.figures[kernel][:-1] for kernel in counted], np.float64)
        if not _alike(told) or not _alike(self.modelled[list(rows)]):
            return {}
        return {row: tuple(counted) for row in rows}

    def grid_of(self, kernel: int) -> Grid:
        """Blocks in x, y and z; () where the tool tells another figure, or none."""
        grid = self.kernels[kernel].grid
        return grid if len(grid) == _DIMENSIONS else ()

    def _may_be(self, row: int, kernel: int) -> bool:
        """Whether name and grid agree as far as both sides tell them."""
        grids = self.grids.get(row, ()), self.grid_of(kernel)
        if all(grids) and grids[0] != grids[1]:
            return False
        name, code = self.kernels[kernel].name, int(self.work.name.codes[row])
        return not name or kernel_name(name).fits(kernel_name(self.work.name.texts[code]))

    def _means(self, counted: Sequence[int]) -> bool:
        """Whether a tool summed up launches: their order and spread are lost."""
        return any(self.kernels[kernel].launches > 1 for kernel in counted)


def match_kernels(job: Matching) -> Found:
    """Find the launches of the trace that launches in which was counted stand for.

    If all kernels of the device were counted, in the order of the trace, that is it. Else launches
    are put together by name, however much of it either side tells; then the n-th is the n-th where
    there are as many; then the same by grid, where both tell it; then their mean stands for each,
    if they are alike (`AGREE`).

    Returns:
        Positions of launches, whose mean is to be taken, by row of `Work`.
    """
    if not len(job.rows) or not job.kernels:
        return {}
    whole = job.one_by_one(range(len(job.kernels)), job.rows.tolist())
    if whole is not None:
        return whole
    found: Found = {}
    for counted, rows in _namesakes(job):
        found |= _matched(job, counted, rows)
    return found


def _matched(job: Matching, counted: list[int], rows: list[int]) -> Found:
    found = job.one_by_one(counted, rows)
    if found is not None:
        return found
    theirs = _grouped((job.grid_of(kernel), kernel) for kernel in counted)
    ours = _grouped((job.grids.get(row, ()), row) for row in rows)
    if () in theirs or () in ours:
        return job.by_mean(counted, rows)
    found = {}
    for grid in theirs.keys() & ours.keys():
        pair = theirs[grid], ours[grid]
        found |= job.one_by_one(*pair) or job.by_mean(*pair)
    return found


def _namesakes(job: Matching) -> Iterator[tuple[list[int], list[int]]]:
    """Launches and rows that may be the same kernels by their names."""
    counted = _grouped((kernel.name, at) for at, kernel in enumerate(job.kernels) if kernel.name)
    traced = _grouped(zip(job.work.name.take(job.rows), job.rows.tolist(), strict=True))
    sides = [[kernel_name(str(name)) for name in side] for side in (counted, traced)]
    for theirs, ours in _components(sides[0], sides[1]):
        yield (
            sorted(at for name in theirs for at in counted[name]),
            sorted(row for name in ours for row in traced[name]),
        )


def _components(
    counted: Sequence[KernelName], traced: Sequence[KernelName]
) -> list[tuple[set[str], set[str]]]:
    """Names of either side that may stand for one another; one that is the same is the one."""
    parts: list[tuple[set[str], set[str]]] = []
    texts = {name.text for name in traced}
    for name in counted:
        fits = {name.text} & texts or {other.text for other in traced if name.fits(other)}
        if not fits:
            continue
        joined = [part for part in parts if part[1] & fits]
        parts = [part for part in parts if not part[1] & fits]
        theirs = {name.text}.union(*(part[0] for part in joined))
        parts.append((theirs, fits.union(*(part[1] for part in joined))))
    return parts


def _grouped(pairs: Iterable[tuple[Key, int]]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)


def _alike(figures: Floats) -> bool:
    """Whether (n, k) figures differ by no more than `AGREE`; nan, not known, speaks for nothing."""
    low = np.where(np.isnan(figures), np.inf, figures).min(axis=0)
    high = np.where(np.isnan(figures), -np.inf, figures).max(axis=0)
    return bool((high <= low * (1 + AGREE)).all())
