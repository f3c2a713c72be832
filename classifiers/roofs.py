"""A rank's kernels under the roofs of its device, as the report has them."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses import recomputation
from perfdiag.classifiers.diagnoses.recomputation import run_again
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.roofline import Bound, Roofline
from perfdiag.classifiers.utilisation import Utilisation, utilisation
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.devices import DTYPES, Dtype
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["roofline_row", "utilisation_notices"]

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

RECOMPUTED_KINDS = recomputation.DIAGNOSIS.limits["kinds"]


def roofline_row(facts: RankFacts) -> report.Roofline | None:
    """The roofline of a rank; None where it has none."""
    roofline, costs = facts.roofline, facts.costs
    if roofline is None or costs is None:
        return None
    rows = np.flatnonzero(facts.kernels & _in_steps(facts))
    length = facts.length_ns[rows]
    total = max(1, int(length.sum()))
    known, bound = costs.known[rows], roofline.bound[rows]
    dtype = _main_dtype(costs, rows)
    again = run_again(facts, RECOMPUTED_KINDS)[rows]
    memory = roofline.peaks.memory
    return report.Roofline(
        device=roofline.peaks.name,
        basis=roofline.basis,
        peak_flops_per_s=_peaks(roofline, costs),
        peak_bytes_per_s=None if memory is None else memory.at(roofline.basis),
        covered=float(length[known].sum() / total),
        uncovered=_uncovered(facts, rows[~known]),
        bound={
            NAMES[code]: float(length[bound == code].sum() / total)
            for code in Bound
            if (bound == code).any()
        },
        mfu=_share(_utilisation(facts, rows[~again], dtype)),
        hfu=_share(_utilisation(facts, rows, dtype)),
        mfu_dtype=dtype or "",
        kernels=_kernels(facts, roofline, costs, rows),
    )


def _in_steps(facts: RankFacts) -> NDArray[np.bool_]:
    """(work,) what starts in a step that has a verdict."""
    steps, starts = facts.model.steps, facts.model.work.ts_ns
    step = np.searchsorted(steps.ts_ns, starts, "right") - 1
    inside = (step >= 0) & (starts < steps.end_ns[np.maximum(step, 0)])
    return np.asarray(inside & facts.trusted[np.maximum(step, 0)], np.bool_)


def _peaks(roofline: Roofline, costs: KernelCosts) -> dict[str, float]:
    found: dict[str, float] = {}
    for dtype in DTYPES:
        peak = roofline.peaks.compute(dtype)
        if peak is not None and dtype in costs.dtypes:
            found[dtype] = peak.at(roofline.basis)
    return found


def _main_dtype(costs: KernelCosts, rows: Int64s) -> Dtype | None:
    """The type that most of the arithmetic is in; None where no roof is in it."""
    some = rows[costs.dtype[rows] != ABSENT]
    if not len(some):
        return None
    by_type = np.bincount(costs.dtype[some], costs.flops[some], len(costs.dtypes))
    name = costs.dtypes[int(np.argmax(by_type))]
    return next((dtype for dtype in DTYPES if dtype == name), None)


def utilisation_notices(facts: RankFacts) -> list[Notice]:
    """That the arithmetic of a rank would be more than its device can do."""
    if facts.roofline is None or facts.costs is None:
        return []
    rows = np.flatnonzero(facts.kernels & _in_steps(facts))
    found = _utilisation(facts, rows, _main_dtype(facts.costs, rows))
    return [] if found is None or found.problem is None else [found.problem]


def _share(found: Utilisation | None) -> float | None:
    return None if found is None else found.share


def _utilisation(facts: RankFacts, rows: Int64s, dtype: Dtype | None) -> Utilisation | None:
    """FLOPs as a share of what the data sheet's peak allows in the steps with a verdict."""
    roofline, costs = facts.roofline, facts.costs
    if roofline is None or costs is None or dtype is None or not facts.trusted_ns:
        return None
    flops_per_s = float(costs.flops[rows].sum()) / (facts.trusted_ns / 1e9)
    return utilisation(flops_per_s, roofline.peaks.compute(dtype), roofline.peaks.name)


def _uncovered(facts: RankFacts, rows: Int64s) -> list[str]:
    """The operators, or kernels without one, that take most of the time without a cost."""
    hosts, work = facts.model.hosts, facts.model.work
    time: dict[str, int] = defaultdict(int)
    ops = facts.origins.op[rows]
    names = hosts.name.take(np.maximum(ops, 0)) if len(hosts.id) else [""] * len(rows)
    told = zip(names, ops.tolist(), work.name.take(rows), strict=True)
    for (name, op, kernel), length in zip(told, facts.length_ns[rows].tolist(), strict=True):
        time[name if op != ABSENT else kernel] += length
    return sorted(time, key=lambda name: (-time[name], name))[:MOST_UNCOVERED]


def _kernels(
    facts: RankFacts, roofline: Roofline, costs: KernelCosts, rows: Int64s
) -> list[report.Kernel]:
    """Kernels by name and the operator that told their cost, the longest first.

    Those that would be above a roof are apart: what is not believed is in no figure of the others.
    """
    rows = rows[costs.known[rows]]
    if not len(rows):
        return []
    work, hosts = facts.model.work, facts.model.hosts
    owner = hosts.name.codes[costs.owner[rows]].astype(np.int64)
    pair = work.name.codes[rows].astype(np.int64) * (len(hosts.name.texts) + 1) + owner
    pair = 2 * pair + (roofline.bound[rows] == Bound.IMPOSSIBLE)
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
    dtype = int(costs.dtype[rows[0]])
    return report.Kernel(
        name=work.name.take(rows[:1])[0],
        op=hosts.name.take(costs.owner[rows[:1]])[0],
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


def _most(bound: NDArray[np.int8], weight: Int64s) -> report.KernelBound:
    return NAMES[int(np.argmax(np.bincount(bound, weight, len(Bound))))]
