"""MFU and HFU of a rank, over its steps and in each of them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses import recomputation
from perfdiag.classifiers.diagnoses.recomputation import run_again
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.utilisation import Utilisation, utilisation
from perfdiag.trace_schemas.devices import DTYPES, DevicePeaks, Peak
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["RankUtilisation", "StepUtilisation", "in_steps", "utilise"]

Floats = NDArray[np.float64]

RECOMPUTED_KINDS = recomputation.DIAGNOSIS.limits["kinds"]


@dataclass(frozen=True, slots=True)
class StepUtilisation:
    """MFU and HFU of a step, as shares of the peak; None where they are not known."""

    mfu: float | None = None
    hfu: float | None = None


@dataclass(frozen=True, slots=True)
class RankUtilisation:
    """MFU and HFU of a rank.

    Attributes:
        mfu, hfu: over all steps with a verdict, as shares of the peak; None where not known.
        dtype: of the peak: the type that most FLOPs are in; '' where it has none.
        peak_flops_per_s: by data sheet; None where there is none.
        steps: of each step.
        problem: why there is no figure though there are FLOPs in a type that devices have peaks in.
    """

    mfu: float | None
    hfu: float | None
    dtype: str
    peak_flops_per_s: float | None
    steps: tuple[StepUtilisation, ...]
    problem: Notice | None


def utilise(facts: RankFacts) -> RankUtilisation:
    """Set the FLOPs of a rank's kernels beside what its device could do in the steps meanwhile."""
    roofline, costs = facts.roofline, facts.costs
    nothing = (StepUtilisation(),) * len(facts.trusted)
    step = in_steps(facts)
    rows = np.flatnonzero(facts.kernels & (step != ABSENT))
    name = "" if costs is None else _main_dtype(costs, rows)
    if roofline is None or costs is None or not name:
        return RankUtilisation(None, None, "", None, nothing, None)
    peak = _peak(roofline.peaks, name)
    again = run_again(facts, RECOMPUTED_KINDS)[rows]
    device = _Device(peak, roofline.peaks.name, name)
    model = _by_step(costs.flops, step, rows[~again], len(nothing))
    hardware = _by_step(costs.flops, step, rows, len(nothing))
    whole = device.over(hardware.sum(), facts.trusted_ns)
    return RankUtilisation(
        device.over(model.sum(), facts.trusted_ns).share,
        whole.share,
        "" if peak is None else name,
        None if peak is None else peak.datasheet,
        _each_step(facts, device, model, hardware),
        whole.problem if name in DTYPES and hardware.any() else None,
    )


def in_steps(facts: RankFacts) -> Int64s:
    """(work,) the step with a verdict in which each starts, as a row of `Steps`; -1 for none."""
    steps, starts = facts.model.steps, facts.model.work.ts_ns
    step = np.searchsorted(steps.ts_ns, starts, "right") - 1
    inside = (step >= 0) & (starts < steps.end_ns[np.maximum(step, 0)])
    return np.where(inside & facts.trusted[np.maximum(step, 0)], step, ABSENT)


def _main_dtype(costs: KernelCosts, rows: Int64s) -> str:
    """The type that most of the arithmetic of some kernels is in; '' where there is none."""
    some = rows[costs.dtype[rows] != ABSENT]
    if not len(some):
        return ""
    by_type = np.bincount(costs.dtype[some], costs.flops[some], len(costs.dtypes))
    return costs.dtypes[int(np.argmax(by_type))]


def _peak(peaks: DevicePeaks, name: str) -> Peak | None:
    return next((peaks.compute(dtype) for dtype in DTYPES if dtype == name), None)


def _by_step(flops: Floats, step: Int64s, rows: Int64s, count: int) -> Floats:
    """(steps,) FLOPs of some kernels, by the step that each starts in."""
    found = np.zeros(count)
    np.add.at(found, step[rows], flops[rows])
    return found


class _Device(NamedTuple):
    """What FLOPs are a share of: the peak, the name of its device, and the type."""

    peak: Peak | None
    name: str
    dtype: str

    def over(self, flops: float, time_ns: int) -> Utilisation:
        """FLOPs in a time, beside what the device could do in it."""
        flops_per_s = float(flops) / (max(time_ns, 1) / 1e9)
        return utilisation(flops_per_s, self.peak, self.name, self.dtype)


def _each_step(
    facts: RankFacts, device: _Device, model: Floats, hardware: Floats
) -> tuple[StepUtilisation, ...]:
    """Of steps with a verdict, by (steps,) FLOPs of the model and of all kernels."""
    steps = facts.model.steps
    rows = zip(model, hardware, (steps.end_ns - steps.ts_ns).tolist(), facts.trusted, strict=True)
    return tuple(
        StepUtilisation(device.over(useful, time).share, device.over(all_, time).share)
        if trusted
        else StepUtilisation()
        for useful, all_, time, trusted in rows
    )
