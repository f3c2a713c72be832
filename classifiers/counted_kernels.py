"""Kernels under their roofs by what hardware counted in them, which is believed before shapes.

Counters of single launches replace what cost models say of operations and traffic, as shapes
replace what names say. Durations stay those of the trace: under the profiler kernels run alone, at
fixed clocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import build_timeline
from perfdiag.classifiers.counted_costs import Counted, count_kernels, counted_costs
from perfdiag.classifiers.counted_figures import bound_by_throughput
from perfdiag.classifiers.counted_notices import notices_of
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts, without_costs
from perfdiag.classifiers.kernel_matching import Grid
from perfdiag.classifiers.roofline import Bound, Roofline, draw_roofline
from perfdiag.profiler.counters.kernels import KernelMetrics
from perfdiag.profiler.model import Coded, Work
from perfdiag.trace_schemas.kernels import classify_kernel
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["on_device", "with_counted"]

Bools = NDArray[np.bool_]


def on_device(facts: RankFacts, kernels: Sequence[KernelMetrics]) -> bool:
    """Whether any of these launches may have been on the device of a rank."""
    return any(kernel.device in (ABSENT, facts.timeline.device) for kernel in kernels)


def with_counted(
    facts: RankFacts,
    kernels: Sequence[KernelMetrics],
    grids: Mapping[int, Grid] | None = None,
) -> tuple[RankFacts, list[Notice]]:
    """The rank with its counted kernels under the roofs by their counters, and its budget by it.

    Bounds of kernels that were not counted stay as they are.

    Args:
        facts: of the rank.
        kernels: launches in which was counted, in their order; those of other devices are left out.
        grids: blocks in x, y and z by row of `Work`, of the rows whose grid is known.

    Returns:
        The facts, and what must be known of the counters.
    """
    device = facts.timeline.device
    mine = [kernel for kernel in kernels if kernel.device in (ABSENT, device)]
    if not mine:
        return facts, []
    counted = count_kernels(facts, mine, grids or {})
    model = facts.costs or without_costs(len(facts.model.work.id))
    notices = notices_of(model, counted, facts.model.work, len(mine))
    if not counted.matched.any():
        return facts, notices
    return _redrawn(facts, counted_costs(model, counted), counted), notices


def _redrawn(facts: RankFacts, costs: KernelCosts, counted: Counted) -> RankFacts:
    work, roofline = facts.model.work, facts.roofline
    if facts.peaks is not None and costs.known.any():
        basis = "achievable" if roofline is None else roofline.basis
        roofline = draw_roofline(work, costs, facts.peaks, basis)
        facts = replace(facts, costs=costs, roofline=roofline)
    bound, told = _bounds(work, roofline, counted, costs.measured)
    told = told if facts.counted is None else told | facts.counted
    model = replace(facts.model, work=replace(work, bound=bound))
    timeline = build_timeline(model, facts.states, facts.timeline.device, facts.trusted)
    return replace(facts, model=model, timeline=timeline, counted=told)


def _bounds(
    work: Work, roofline: Roofline | None, counted: Counted, measured: Bools
) -> tuple[Coded, Bools]:
    """(work,) what bounds kernels, by roof, by throughput, by name; and of which counters tell."""
    named = Coded(work.name.codes, [classify_kernel(name).bound for name in work.name.texts])
    new = named if roofline is None else roofline.bounds(named)
    speaks = bound_by_throughput(counted.compute, counted.memory)
    if roofline is not None:
        speaks[roofline.bound != Bound.UNKNOWN] = Bound.UNKNOWN
    codes = np.where(new.codes >= 0, new.codes + 2, ABSENT)
    codes[speaks == Bound.COMPUTE], codes[speaks == Bound.MEMORY] = 0, 1
    texts = ["compute", "memory", *new.texts]
    old = np.where(work.bound.codes >= 0, work.bound.codes + len(texts), ABSENT)
    anew = counted.matched & (measured | (speaks != Bound.UNKNOWN))
    return Coded(np.where(anew, codes, old).astype(np.int32), [*texts, *work.bound.texts]), anew
