"""A rank's kernels under the roofs of its device, as the report has them."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.rank_utilisation import RankUtilisation, in_steps
from perfdiag.classifiers.roofline import Bound, Roofline
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.devices import DTYPES
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["roofline_row"]

MOST_KERNELS = 40
"""Kinds of kernels that the report lists, the longest first."""

MOST_UNCOVERED = 8

NAMES: dict[int, report.KernelBound] = {
    Bound.UNKNOWN: "unknown",
    Bound.COMPUTE: "compute",
    Bound.MEMORY: "memory",
    Bound.UNDERFILLED: "under-filled",
    Bound.IMPOSSIBLE: "above peak",
}


def roofline_row(facts: RankFacts, used: RankUtilisation) -> report.Roofline | None:
    """The roofline of a rank; None where it has none.

    Args:
        facts: of the rank.
        used: its MFU and HFU.
    """
    roofline, costs = facts.roofline, facts.costs
    if roofline is None or costs is None:
        return None
    rows = np.flatnonzero(facts.kernels & (in_steps(facts) != ABSENT))
    length, bound = facts.length_ns[rows], roofline.bound[rows]
    total = max(1, int(length.sum()))
    known = costs.known[rows]
    linked = known | (facts.origins.op[rows] != ABSENT)
    memory = roofline.peaks.memory
    return report.Roofline(
        device=roofline.peaks.name,
        basis=roofline.basis,
        peak_flops_per_s=_peaks(roofline, costs),
        peak_bytes_per_s=None if memory is None else memory.at(roofline.basis),
        unlinked=float(length[~linked].sum() / total),
        covered=float(length[known].sum() / max(1, int(length[linked].sum()))),
        uncovered=_uncovered(facts, rows[linked & ~known]),
        bound={
            NAMES[code]: float(length[bound == code].sum() / total)
            for code in Bound
            if (bound == code).any()
        },
        mfu=used.mfu,
        hfu=used.hfu,
        mfu_dtype=used.dtype,
        mfu_peak_flops_per_s=used.peak_flops_per_s,
        kernels=_kernels(facts, roofline, costs, rows),
    )


def _peaks(roofline: Roofline, costs: KernelCosts) -> dict[str, float]:
    found: dict[str, float] = {}
    for dtype in DTYPES:
        peak = roofline.peaks.compute(dtype)
        if peak is not None and dtype in costs.dtypes:
            found[dtype] = peak.at(roofline.basis)
    return found


def _uncovered(facts: RankFacts, rows: Int64s) -> list[str]:
    """The operators that take most of the time without a cost."""
    time: dict[str, int] = defaultdict(int)
    names = facts.model.hosts.name.take(facts.origins.op[rows])
    for name, length in zip(names, facts.length_ns[rows].tolist(), strict=True):
        time[name] += length
    return sorted(time, key=lambda name: (-time[name], name))[:MOST_UNCOVERED]


def _kernels(
    facts: RankFacts, roofline: Roofline, costs: KernelCosts, rows: Int64s
) -> list[report.Kernel]:
    """Kernels by name and the operator that told their cost, the longest first.

    Those that would be above a roof are apart: what is not believed is in no figure of the others.
    So are those that were counted.
    """
    rows = rows[costs.known[rows]]
    if not len(rows):
        return []
    work, hosts = facts.model.work, facts.model.hosts
    owner = np.append(hosts.name.codes, ABSENT)[_operators(facts, costs, rows)].astype(np.int64)
    pair = work.name.codes[rows].astype(np.int64) * (len(hosts.name.texts) + 1) + owner
    pair = 4 * pair + 2 * costs.measured[rows] + (roofline.bound[rows] == Bound.IMPOSSIBLE)
    _, group = np.unique(pair, return_inverse=True)
    order = np.argsort(-np.bincount(group, facts.length_ns[rows]), kind="stable")
    alike = (rows[group == one] for one in order[:MOST_KERNELS].tolist())
    return [_kernel(facts, roofline, costs, some) for some in alike]


def _kernel(
    facts: RankFacts, roofline: Roofline, costs: KernelCosts, rows: Int64s
) -> report.Kernel:
    """Kernels alike as one: shares are means over their time, the bound is that of most of it."""
    work, hosts, length = facts.model.work, facts.model.hosts, facts.length_ns[rows]
    weight, time_s = np.maximum(length, 1), max(1, int(length.sum())) / 1e9
    flops, moved = float(costs.flops[rows].sum()), float(costs.bytes[rows].sum())
    dtype, owner = int(costs.dtype[rows[0]]), _operators(facts, costs, rows[:1])
    return report.Kernel(
        name=work.name.take(rows[:1])[0],
        op=hosts.name.take(owner)[0] if owner[0] != ABSENT else "",
        source="counters" if costs.measured[rows[0]] else "shapes",
        count=len(rows),
        dur_ns=int(length.sum()),
        dtype=costs.dtypes[dtype] if dtype != ABSENT else "",
        flops=flops,
        bytes=moved,
        intensity=flops / moved if moved else None,
        flops_per_s=flops / time_s,
        bytes_per_s=moved / time_s,
        compute_share=float(np.average(roofline.compute_share[rows], weights=weight)),
        memory_share=float(np.average(roofline.memory_share[rows], weights=weight)),
        bound=_most(roofline.bound[rows], weight),
        at_datasheet=_most(roofline.at_datasheet[rows], weight),
    )


def _operators(facts: RankFacts, costs: KernelCosts, rows: Int64s) -> Int64s:
    """(n,) rows of the operators whose inputs told; around the launch where counters tell."""
    owner = costs.owner[rows]
    return np.where(owner == ABSENT, facts.origins.op[rows], owner)


def _most(bound: NDArray[np.int8], weight: Int64s) -> report.KernelBound:
    return NAMES[int(np.argmax(np.bincount(bound, weight, len(Bound))))]
