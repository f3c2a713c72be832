"""Which roof each kernel is under: arithmetic or memory traffic, and how near to it."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.profiler.model import Coded, Work
from perfdiag.trace_schemas.devices import DTYPES, Basis, DevicePeaks
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["UNDERFILLED", "Bound", "Roofline", "draw_roofline"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

UNDERFILLED = 0.1
"""Of either roof that a kernel must reach for the nearer one to be what bounds it. A choice, far
below the 60 % under which Nsight Compute speaks of latency: the bytes of a cost model are the least
that must be moved."""

ABOVE = 1.0
"""Of the higher roofs: what is above was not measured right, or its data came from caches."""


class Bound(IntEnum):
    """What bounds a kernel."""

    UNKNOWN = 0
    """There is no cost model for it."""
    COMPUTE = 1
    MEMORY = 2
    UNDERFILLED = 3
    """It is far below both roofs: too small, or waiting."""
    IMPOSSIBLE = 4
    """It would be above a roof of the data sheet, and is set aside."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """A rank's kernels under the roofs of their device.

    Attributes:
        peaks: the device.
        basis: of `compute_share`, `memory_share` and `bound`.
        compute_share, memory_share: (work,) of each roof that is reached; 0 where not known.
        bound: (work,) a `Bound`.
        at_datasheet: (work,) the same on the data sheet's roofs: it differs where the answer hangs
            on the choice.
    """

    peaks: DevicePeaks
    basis: Basis
    compute_share: Floats
    memory_share: Floats
    bound: NDArray[np.int8]
    at_datasheet: NDArray[np.int8]

    def bounds(self, names: Coded) -> Coded:
        """(work,) what bounds each kernel, as `Work.bound` says it; by its name where not known."""
        texts = ["compute", "memory", *names.texts]
        codes = np.where(names.codes >= 0, names.codes + 2, ABSENT).astype(np.int32)
        codes[self.bound == Bound.COMPUTE] = 0
        codes[self.bound == Bound.MEMORY] = 1
        return Coded(codes, texts)


def draw_roofline(
    work: Work, costs: KernelCosts, peaks: DevicePeaks, basis: Basis = "achievable"
) -> Roofline:
    """Put kernels under the roofs of their device.

    Args:
        work: of the rank.
        costs: of its kernels.
        peaks: of the device.
        basis: the roofs that decide; where a figure is not there, the data sheet's.
    """
    length = np.maximum(work.end_ns - work.ts_ns, 1) / 1e9
    sheet = _shares(costs, peaks, "datasheet", length)
    chosen = _shares(costs, peaks, basis, length)
    above = np.minimum(np.maximum(*sheet), np.maximum(*chosen)) > ABOVE
    return Roofline(
        peaks, basis, *chosen, _bound(costs, chosen, above), _bound(costs, sheet, above)
    )


def _shares(
    costs: KernelCosts, peaks: DevicePeaks, basis: Basis, length_s: Floats
) -> tuple[Floats, Floats]:
    """(work,) of the compute and of the memory roof that kernels reach."""
    roofs = [_compute_roof(peaks, dtype, basis) for dtype in costs.dtypes]
    roof = np.array([*roofs, np.inf])[costs.dtype]
    memory = np.inf if peaks.memory is None else peaks.memory.at(basis)
    return costs.flops / length_s / roof, costs.bytes / length_s / memory


def _compute_roof(peaks: DevicePeaks, dtype: str, basis: Basis) -> float:
    """FLOP/s in a type; infinite where none is known, which no kernel reaches."""
    if dtype not in DTYPES:
        return np.inf
    peak = peaks.compute(dtype)
    return np.inf if peak is None else peak.at(basis)


def _bound(costs: KernelCosts, shares: tuple[Floats, Floats], above: Bools) -> NDArray[np.int8]:
    compute, memory = shares
    found = np.where(compute >= memory, Bound.COMPUTE, Bound.MEMORY).astype(np.int8)
    found[np.maximum(compute, memory) < UNDERFILLED] = Bound.UNDERFILLED
    found[~costs.known] = Bound.UNKNOWN
    found[costs.known & above] = Bound.IMPOSSIBLE
    return found
