"""The time budget: every nanosecond of a window in exactly one leaf.

A rank's time is cut at every moment at which something changes. Each piece gets one leaf, so
that the leaves of any window sum to it exactly, whatever the trace holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.host_states import HostStates
from perfdiag.classifiers.idle import attribute_idle
from perfdiag.classifiers.intervals import covered, instants, merge
from perfdiag.profiler.model import Model, Work
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES, Totals

__all__ = ["LEAF", "Timeline", "build_timeline", "busiest_device"]

LEAF = {name: code for code, name in enumerate(LEAVES)}

_COMPUTE, _COLLECTIVE, _COPY = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Timeline:
    """One device of one rank, cut into pieces.

    Attributes:
        edges_ns: (m + 1,) where pieces begin and end.
        leaf: (m,) code of each piece's leaf.
        active: (m,) bits for compute, collective and copy under way.
        device: ordinal; -1 where the trace has no device.
    """

    edges_ns: Int64s
    leaf: NDArray[np.int8]
    active: NDArray[np.int8]
    device: int

    def budget(self, start_ns: int, end_ns: int) -> dict[str, int]:
        """Nanoseconds by leaf between two times; those that are not zero."""
        first, last = np.searchsorted(self.edges_ns, (start_ns, end_ns))
        lengths = self._lengths(start_ns, end_ns, int(first), int(last))
        sums = np.zeros(len(LEAVES), np.int64)
        np.add.at(sums, self.leaf[max(first - 1, 0) : last], lengths)
        return {name: int(sums[code]) for name, code in LEAF.items() if sums[code]}

    def time_in(self, leaves: Sequence[str], bounds: tuple[Int64s, Int64s]) -> Int64s:
        """(n,) nanoseconds in some leaves between each pair of bounds."""
        wanted = np.isin(self.leaf, [LEAF[name] for name in leaves])
        before = np.concatenate(([0], np.cumsum(np.diff(self.edges_ns) * wanted)))
        wanted = np.append(wanted, False)

        def until(times_ns: Int64s) -> Int64s:
            times_ns = np.clip(times_ns, self.edges_ns[0], self.edges_ns[-1])
            at = np.searchsorted(self.edges_ns, times_ns, "right") - 1
            return np.asarray(before[at] + (times_ns - self.edges_ns[at]) * wanted[at], np.int64)

        return until(bounds[1]) - until(bounds[0])

    def _lengths(self, start_ns: int, end_ns: int, first: int, last: int) -> Int64s:
        edges = np.clip(self.edges_ns[max(first - 1, 0) : last + 1], start_ns, end_ns)
        return np.diff(edges)

    def totals(self, start_ns: int, end_ns: int) -> Totals:
        """Unions of compute, collectives and copies between two times."""
        first, last = (int(i) for i in np.searchsorted(self.edges_ns, (start_ns, end_ns)))
        lengths = self._lengths(start_ns, end_ns, first, last)
        active = self.active[max(first - 1, 0) : last]
        compute = (active & _COMPUTE) > 0
        collective = (active & _COLLECTIVE) > 0
        copy = (active & _COPY) > 0
        busy = int(lengths[active > 0].sum())
        return Totals(
            window=end_ns - start_ns,
            busy=busy,
            idle=end_ns - start_ns - busy,
            compute=int(lengths[compute].sum()),
            collective=int(lengths[collective].sum()),
            exposed_collective=int(lengths[collective & ~compute].sum()),
            copy=int(lengths[copy].sum()),
            exposed_copy=int(lengths[copy & ~compute & ~collective].sum()),
        )


def busiest_device(work: Work) -> int:
    """The device with the longest union of work; -1 without work."""
    devices = np.unique(work.device)
    if not len(devices):
        return -1
    busy = [
        int(np.subtract(*merge(work.ts_ns[m], work.end_ns[m])[::-1]).sum())
        for m in (work.device == d for d in devices.tolist())
    ]
    return int(devices[int(np.argmax(busy))])


def build_timeline(
    model: Model, states: HostStates, device: int, trusted: NDArray[np.bool_]
) -> Timeline:
    """Cut the time from the first window's start to the last one's end.

    Args:
        model: the rank.
        states: of its host lanes.
        device: ordinal of the device.
        trusted: (steps,) whether idle time of the step can be believed; where not, it is
            `unclassified`.
    """
    here = model.work.device == device
    unions = _unions(model.work, here)
    begin, until = int(model.steps.ts_ns[0]), int(model.steps.end_ns[-1])
    busy = merge(*(np.concatenate(side) for side in zip(*unions.values(), strict=True)))
    idle = attribute_idle(model, states, here, busy, (begin, until))
    bounds = [model.steps.ts_ns, model.steps.end_ns, model.regions.ts_ns, model.regions.end_ns]
    cuts = [side for union in unions.values() for side in union]
    edges = instants(*cuts, *bounds, idle.start_ns, np.array([begin, until]))
    edges = edges[(edges >= begin) & (edges <= until)]
    leaf, active = _leaves(edges[:-1], unions)
    free = leaf < 0
    leaf[free] = idle.leaf_at(edges[:-1][free])
    doubted = ~trusted[np.searchsorted(model.steps.ts_ns, edges[:-1], "right") - 1]
    leaf[free & doubted] = LEAF["unclassified"]
    return Timeline(edges, leaf, active, device)


Union = tuple[Int64s, Int64s]


def _unions(work: Work, here: NDArray[np.bool_]) -> dict[str, Union]:
    """Unions of work by the leaf that it speaks for; earlier ones win."""
    kernel = here & work.kind.where("kernel")
    rows = {
        "compute_kernel": kernel & work.bound.where("compute"),
        "memory_kernel": kernel & work.bound.where("memory"),
        "kernel_unclassified": kernel & ~work.bound.where("compute", "memory"),
        "collective_unsplit": here & work.kind.where("collective"),
        "copy": here & work.kind.where("copy", "fill"),
    }
    return {leaf: merge(work.ts_ns[m], work.end_ns[m]) for leaf, m in rows.items()}


_ACTIVE = {
    "compute_kernel": _COMPUTE,
    "memory_kernel": _COMPUTE,
    "kernel_unclassified": _COMPUTE,
    "collective_unsplit": _COLLECTIVE,
    "copy": _COPY,
}


def _leaves(
    starts_ns: Int64s, unions: dict[str, Union]
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Leaf and activity of each piece; the leaf is -1 where the device is idle."""
    leaf = np.full(len(starts_ns), -1, np.int8)
    active = np.zeros(len(starts_ns), np.int8)
    for name, union in reversed(unions.items()):
        on = covered(*union, starts_ns)
        leaf[on] = LEAF[name]
        active[on] |= _ACTIVE[name]
    return leaf, active
