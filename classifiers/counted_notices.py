"""What must be known of counters of single launches: whom they contradict, whom they miss."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.counted_costs import Counted
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.profiler.model import Work
from perfdiag.trace_schemas.kernels import FAMILIES
from perfdiag.trace_schemas.notices import Notice, Severity
from perfdiag.trace_schemas.texts import shortened

__all__ = ["Disagreement", "disagreement", "notices_of"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

FROM_CACHES = 2.0
"""By which the traffic that a model counts may exceed what was counted. A choice: caches keep part
of a kernel's data from the kernel before; if it is more than half, its bytes say nothing."""

OTHER_FLOPS = 0.05
"""By which operations of products may differ. A choice: padding to tiles is of that order."""

_SHOWN, _CHARS = 3, 80


class Disagreement(NamedTuple):
    """Kernels of which counters say something else than the model.

    `kernels`: how many; `row`: of `Work`, the one that differs most; `what`: "bytes" or "FLOPs";
    `counted`, `modelled`: its figures.
    """

    kernels: int
    row: int
    what: str
    counted: float
    modelled: float


def notices_of(model: KernelCosts, counted: Counted, work: Work, launches: int) -> list[Notice]:
    """That counters differ from the model, and that launches are not found in the trace.

    Args:
        model: what cost models say.
        counted: what counters say.
        work: of the rank.
        launches: in which was counted.
    """
    differs = disagreement(model, counted, work)
    found = [] if differs is None else [_disagrees(differs, work)]
    return [*_unmatched(counted, launches), *found]


def disagreement(model: KernelCosts, counted: Counted, work: Work) -> Disagreement | None:
    """Whether counters and model differ in kernels that both know; None where they do not.

    Traffic differs if the model, which counts the least that must be moved, counts more than
    `FROM_CACHES` times as much; operations if they differ by more than `OTHER_FLOPS`. Only those
    of products are compared: a model counts 1 for any function of an element.
    """
    both = counted.matched & model.known & ~model.measured
    products = both & work.family.map(lambda family: FAMILIES.get(family) == "compute", np.bool_)
    moved = _excess(model.bytes, counted.bytes, both) / FROM_CACHES
    more = _excess(counted.flops, model.flops, products)
    flops = np.maximum(more, _excess(model.flops, counted.flops, products)) / (1 + OTHER_FLOPS)
    count = int(((moved > 1) | (flops > 1)).sum())
    if not count:
        return None
    what, side = ("bytes", moved) if moved.max() >= flops.max() else ("FLOPs", flops)
    row = int(np.argmax(side))
    pair = (counted.bytes, model.bytes) if what == "bytes" else (counted.flops, model.flops)
    return Disagreement(count, row, what, float(pair[0][row]), float(pair[1][row]))


def _excess(larger: Floats, smaller: Floats, rows: Bools) -> Floats:
    """(work,) how many times as much; 0 where either is not known or there is nothing."""
    told = rows & ~np.isnan(larger) & ~np.isnan(smaller) & (larger > 0)
    return np.where(told, larger / np.maximum(np.where(told, smaller, 1.0), 1.0), 0.0)


def _disagrees(differs: Disagreement, work: Work) -> Notice:
    name = shortened(work.name.take(np.array([differs.row]))[0], _CHARS)
    cause = "caches held its data" if differs.what == "bytes" else "it computes something else"
    message = (
        f"Counters differ from what shapes say of {differs.kernels} kernels, and are believed. "
        f"Most in {name!r}: {differs.counted:.3g} {differs.what} were counted, the shapes make "
        f"{differs.modelled:.3g}: {cause}."
    )
    return Notice("model.disagrees", "info", differs.kernels, message)


def _unmatched(counted: Counted, count: int) -> list[Notice]:
    lost = counted.unmatched
    if not lost:
        return []
    names = [shortened(name, _CHARS) or "(no name)" for name in dict.fromkeys(lost)]
    listed = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    message = (
        f"{len(lost)} of {count} launches in which was counted are not found in the trace: names, "
        f"numbers of launches and figures do not tell which kernels they are ({listed})."
    )
    severity: Severity = "warning" if len(lost) == count else "info"
    return [Notice("counter.unmatched", severity, len(lost), message)]
