"""What was counted in single kernel launches, as far as a roofline or a bound follows from it."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.roofline import Bound
from perfdiag.profiler.counters.kernels import KernelMetrics
from perfdiag.trace_schemas.kernels import classify_by_table

__all__ = ["Figures", "bound_by_throughput", "figures_of", "mean_figures"]

Floats = NDArray[np.float64]

LATENCY, AT_ROOF, BALANCED = 0.6, 0.8, 0.1
"""Nsight Compute's rule SOLBottleneck (sections/SpeedOfLight.py of its installation): below 60 % of
both peaks there are "typically latency issues"; from 80 % on the more used one is named; in between
it is if it is 10 points ahead, else "Compute and Memory are well-balanced"."""

_VECTOR = {"flops_fp16": "fp16", "flops_fp32": "fp32", "flops_fp64": "fp64"}

_MATRIX_UNITS = re.compile(r"pipe_tensor|tensor_share|_mfma", re.IGNORECASE)
"""Counters of instructions and cycles of tensor and matrix units."""

_NAN = float("nan")
_SLACK = 1e-9  # of shares that were printed in per cent


class Figures(NamedTuple):
    """What was counted in one launch; nan stands for what was not.

    `flops`: all operations. `bytes`: to and from device memory, `written` of them to it.
    `compute`, `memory`: shares of the peak that the tool itself gives. `dtype`: of most operations,
    '' where it is not known.
    """

    flops: float
    bytes: float
    written: float
    compute: float
    memory: float
    dtype: str


def figures_of(kernel: KernelMetrics) -> Figures:
    """What a launch says of its cost.

    Traffic is known where both directions were counted; operations where those of all types were,
    and those of matrix units too, or none ran there.
    """
    values = kernel.values
    read, written = (values.get(f"dram_{side}_bytes", _NAN) for side in ("read", "written"))
    flops, dtype = _operations(kernel)
    return Figures(
        flops,
        read + written,
        written,
        values.get("compute_share", _NAN),
        values.get("memory_share", values.get("dram_share", _NAN)),
        dtype,
    )


def _operations(kernel: KernelMetrics) -> tuple[float, str]:
    """Operations and the type of most of them."""
    values = kernel.values
    if not values.keys() >= _VECTOR.keys():
        return _NAN, ""
    vector = sum(values[name] for name in _VECTOR)
    most = max(_VECTOR, key=lambda name: values[name])
    dtype = _VECTOR[most] if values[most] else ""
    matrix = values.get("flops_matrix")
    if matrix is not None:
        return vector + matrix, dtype if vector > matrix else ""
    return (vector, dtype) if _without_matrix_units(kernel.name, values) else (_NAN, "")


def _without_matrix_units(name: str, values: Mapping[str, float]) -> bool:
    """Whether matrix units stood still: by their counters, else by what the kernel is called.

    Families that the table of names puts under the memory's roof hold no products.
    """
    told = [value for counter, value in values.items() if _MATRIX_UNITS.search(counter)]
    if told:
        return not any(told)
    return bool(name) and classify_by_table(name).bound == "memory"


def mean_figures(figures: Sequence[Figures]) -> Figures:
    """The mean of each figure over the launches in which it was counted."""
    flops, moved, written, compute, memory = (
        _mean([one[at] for one in figures]) for at in range(len(Figures._fields) - 1)
    )
    return Figures(flops, moved, written, compute, memory, figures[0].dtype)


def _mean(values: Sequence[float | str]) -> float:
    told = np.array(values, np.float64)
    told = told[~np.isnan(told)]
    return float(told.mean()) if len(told) else _NAN


def bound_by_throughput(compute: Floats, memory: Floats) -> NDArray[np.int8]:
    """What bounds kernels by the shares of peaks that Nsight Compute gives, without any roof.

    Its rule SOLBottleneck (sections/SpeedOfLight.py of its installation; `ncu --page details` has
    what it finds): below 60 % of both they wait (`UNDERFILLED`); the larger share bounds from 80 %
    on, or where it is 10 points ahead; else they are balanced, and this says nothing.

    Args:
        compute: (n,) of the busiest pipe of the multiprocessors; nan where not counted.
        memory: (n,) of the busiest part of the memory system.

    Returns:
        (n,) a `Bound`; `UNKNOWN` where either share is not known or neither is ahead.
    """
    known = ~np.isnan(compute) & ~np.isnan(memory)
    larger = np.fmax(compute, memory)
    ahead = (larger >= AT_ROOF - _SLACK) | (np.abs(compute - memory) >= BALANCED - _SLACK)
    side = np.where(compute > memory, Bound.COMPUTE, Bound.MEMORY)
    found = np.where(ahead & (compute != memory), side, Bound.UNKNOWN).astype(np.int8)
    found[larger < LATENCY - _SLACK] = Bound.UNDERFILLED
    found[~known] = Bound.UNKNOWN
    return found
