"""What counters of activity say holds up the kernels of a part of a step.

That some kernel was resident (`gpu_busy`) is no evidence: a kernel that waits for another rank is
resident, too.
"""

from collections.abc import Mapping
from typing import NamedTuple

from perfdiag.classifiers.counters import Figure
from perfdiag.classifiers.roofline import UNDERFILLED
from perfdiag.trace_schemas.report import Roof

__all__ = ["COMPUTE_METRICS", "ENOUGH", "RoofVerdict", "contradicts", "roof_of"]

COMPUTE_METRICS = ("tensor_active", "fp64_active", "fp32_active", "fp16_active", "int_active")
"""Shares of cycles in which a pipe works; the busiest is what arithmetic comes to."""

SATURATED, RELAXED = 0.7, 0.5
"""XProf (openxla/xprof a27d00aa, smart suggestions): bound by compute where MXU utilisation is
above 70 % and HBM utilisation below 50 %, by memory the other way round."""

LATENCY = 0.6
"""Nsight Compute, speed of light: below 60 % of both peaks the kernel has a latency issue."""

INEFFECTIVE = 0.5
"""DCGM user guide, profiling metrics, SM activity: below 0.5 usage is ineffective."""

ENOUGH = 0.8
"""Of the time that samples must stand for. A choice: what a fifth of the time does cannot turn a
mean from one side of XProf's bounds to the other."""

RUNNING = 0.1
"""Of the time that kernels must run. A choice: shares of less are divided by too little."""


class RoofVerdict(NamedTuple):
    """Which roof, the sentence, and the activity of arithmetic units and of memory (or -1)."""

    roof: Roof
    why: str
    compute: float = -1.0
    memory: float = -1.0


def roof_of(figures: Mapping[str, Figure], running: float) -> RoofVerdict:
    """Tell by activity what holds up kernels.

    Args:
        figures: counters over a part of the time, by metric.
        running: share of that time in which kernels that are no collectives run; activity is put
            down to these.
    """
    if running < RUNNING:
        return RoofVerdict("unknown", f"Kernels run for only {running:.0%} of the time.")
    held = {name: figure for name, figure in figures.items() if figure.coverage >= ENOUGH}
    pipes = [held[name].mean for name in COMPUTE_METRICS if name in held]
    busy = held.get("sm_active")
    if not pipes or "dram_active" not in held:
        return _without(busy, running)
    compute, memory = (min(1.0, v / running) for v in (max(pipes), held["dram_active"].mean))
    roof = _roof(compute, memory)
    multiprocessors = "" if busy is None else f", multiprocessors {busy.mean / running:.0%}"
    why = (
        f"While kernels run arithmetic units are active for {compute:.0%} and memory for "
        f"{memory:.0%} of the cycles{multiprocessors}: {_MEANING[roof]}."
    )
    return RoofVerdict(roof, why, compute, memory)


_MEANING: dict[Roof, str] = {
    "compute": "arithmetic holds them up",
    "memory": "memory traffic holds them up",
    "both": "neither alone holds them up",
    "neither": "they wait for neither",
}


def _roof(compute: float, memory: float) -> Roof:
    if compute > SATURATED and memory < RELAXED:
        return "compute"
    if memory > SATURATED and compute < RELAXED:
        return "memory"
    return "neither" if max(compute, memory) < LATENCY else "both"


def _without(busy: Figure | None, running: float) -> RoofVerdict:
    """Multiprocessors without a warp tell that neither holds kernels up, and nothing else."""
    if busy is None:
        lacking = f"No counters of arithmetic units and memory cover {ENOUGH:.0%} of the time."
        return RoofVerdict("unknown", lacking)
    share = min(1.0, busy.mean / running)
    text = f"While kernels run multiprocessors hold work for {share:.0%} of the cycles"
    if share < INEFFECTIVE:
        return RoofVerdict("neither", f"{text}: they are not filled.", share, share)
    return RoofVerdict("unknown", f"{text}, which does not say what kind of work.")


def contradicts(verdict: RoofVerdict, compute_ns: int, memory_ns: int) -> bool:
    """Whether counters say something else than the budget of the same time.

    Args:
        verdict: of the counters.
        compute_ns: time of kernels that arithmetic is said to bound.
        memory_ns: time of kernels that memory traffic is said to bound.
    """
    if not compute_ns and not memory_ns:
        return False
    if verdict.roof == "compute":
        return memory_ns > compute_ns
    if verdict.roof == "memory":
        return compute_ns > memory_ns
    return verdict.roof == "neither" and max(verdict.compute, verdict.memory) < UNDERFILLED
