"""Costs of kernels as rows of `perfdiag_kernel_cost`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.roofs import NAMES
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["KernelRows", "kernel_rows"]


class KernelRows(NamedTuple):
    """Costs of kernels, and the roofs that they stand under.

    Attributes:
        rows: values in the order of the columns of `_kernel_cost`.
        peak_device, peak_basis: the roofs.
    """

    rows: Sequence[tuple[Any, ...]]
    peak_device: str
    peak_basis: str


def kernel_rows(facts: RankFacts) -> KernelRows | None:
    """A row for each kernel that is no collective, on every device; None without a roofline."""
    costs, line = facts.costs, facts.roofline
    if costs is None or line is None:
        return None
    rows = np.flatnonzero(facts.model.work.kind.where("kernel"))
    known = costs.known[rows]
    names = {int(bound): name for bound, name in NAMES.items()}
    columns = (
        facts.model.work.id[rows].tolist(),
        _operators(facts, costs.owner[rows]),
        *(_where(known, values[rows]) for values in (costs.flops, costs.bytes, costs.written)),
        _dtypes(costs, rows),
        *(_where(known, values[rows]) for values in (line.compute_share, line.memory_share)),
        [names[code] for code in line.bound[rows].tolist()],
        [names[code] for code in line.at_datasheet[rows].tolist()],
        _where(known, np.where(costs.measured[rows], "counters", "shapes")),
    )
    return KernelRows([*zip(*columns, strict=True)], line.peaks.name, line.basis)


def _where(known: NDArray[np.bool_], values: NDArray[Any]) -> list[Any]:
    """Values, None where no cost is known."""
    return [v if k else None for k, v in zip(known.tolist(), values.tolist(), strict=True)]


def _operators(facts: RankFacts, owner: Int64s) -> list[int | None]:
    ids = facts.model.hosts.id
    return [None if row == ABSENT else int(ids[row]) for row in owner.tolist()]


def _dtypes(costs: KernelCosts, rows: Int64s) -> list[str | None]:
    return [None if code == ABSENT else costs.dtypes[code] for code in costs.dtype[rows].tolist()]
