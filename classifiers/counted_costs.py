"""What was counted in single launches, put to the kernels of a rank and into their costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.counted_figures import Figures, figures_of, mean_figures
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts, without_costs
from perfdiag.classifiers.kernel_matching import Grid, Matching, match_kernels
from perfdiag.profiler.counters.kernels import KernelMetrics
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["Counted", "count_kernels", "counted_costs"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted, by row of `Work`.

    Attributes:
        matched: (work,) whether a launch was found for the row.
        flops, bytes, written, compute, memory: (work,) see `Figures`; nan where not counted.
        dtype: of most operations by row, of the rows where it is known.
        unmatched: names of launches without a row, in their order.
    """

    matched: Bools
    flops: Floats
    bytes: Floats
    written: Floats
    compute: Floats
    memory: Floats
    dtype: Mapping[int, str]
    unmatched: Sequence[str]


def count_kernels(
    facts: RankFacts, kernels: Sequence[KernelMetrics], grids: Mapping[int, Grid]
) -> Counted:
    """Put what was counted to the kernels of the rank's device; see `match_kernels`."""
    work, figures = facts.model.work, [figures_of(kernel) for kernel in kernels]
    seen = facts.here & work.kind.where("kernel", "collective")
    job = Matching(work, np.flatnonzero(seen), kernels, figures, _modelled(facts), grids)
    found = match_kernels(job)
    used = {kernel for several in found.values() for kernel in several}
    means = {several: mean_figures([figures[k] for k in several]) for several in found.values()}
    told = {row: means[several] for row, several in found.items() if facts.kernels[row]}
    return _by_row(told, len(work.id), [k.name for i, k in enumerate(kernels) if i not in used])


def _modelled(facts: RankFacts) -> Floats:
    """(work, 2) FLOPs and bytes by the model, nan where it says nothing."""
    costs = facts.costs or without_costs(len(facts.model.work.id))
    known = costs.known & ~costs.measured
    return np.stack([np.where(known, side, np.nan) for side in (costs.flops, costs.bytes)], axis=1)


def _by_row(told: Mapping[int, Figures], count: int, unmatched: Sequence[str]) -> Counted:
    rows = np.array(list(told), np.int64)
    values = np.full((len(Figures._fields) - 1, count), np.nan)
    matched = np.zeros(count, np.bool_)
    if told:
        matched[rows] = True
        values[:, rows] = np.array([figures[:-1] for figures in told.values()], np.float64).T
    dtype = {row: figures.dtype for row, figures in told.items() if figures.dtype}
    flops, moved, written, compute, memory = values
    return Counted(matched, flops, moved, written, compute, memory, dtype, unmatched)


def counted_costs(model: KernelCosts, counted: Counted) -> KernelCosts:
    """Costs in which what was counted replaces the model's.

    Where only operations or only traffic were counted the model gives the other; where it does not,
    the row has no cost: a 0 in its place would decide under which roof the kernel is. The type
    stays that of the operands, where the model knows it.
    """
    flops, moved = ~np.isnan(counted.flops), ~np.isnan(counted.bytes)
    measured = (flops | moved) & (flops | model.known) & (moved | model.known)
    flops, moved = flops & measured, moved & measured
    dtypes, dtype = list(model.dtypes), model.dtype.copy()
    for row, name in counted.dtype.items():
        if flops[row] and dtype[row] == ABSENT:
            dtypes += [] if name in dtypes else [name]
            dtype[row] = dtypes.index(name)
    return replace(
        model,
        known=model.known | measured,
        flops=np.where(flops, counted.flops, model.flops),
        bytes=np.where(moved, counted.bytes, model.bytes),
        written=np.where(moved, counted.written, model.written),
        dtype=dtype,
        dtypes=tuple(dtypes),
        measured=model.measured | measured,
    )
