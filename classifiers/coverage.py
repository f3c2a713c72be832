"""Are the device records there? Without them idle time is not idle time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.model import Calls, Model
from perfdiag.trace_schemas.counted_steps import LEAST_COVERAGE
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["LEAST_COVERAGE", "Coverage", "lost_launches"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the device work is recorded.

    Attributes:
        steps: (steps,) share of launches whose device records are there; 1 without launches.
        launches, recorded: launches in the trace, and those with records.
        has_device, has_host: whether there is any device work, any host event.
        last_device_ns: end of the last device record.
        ended: launches after all records.
    """

    steps: NDArray[np.float64]
    launches: int
    recorded: int
    has_device: bool
    has_host: bool
    last_device_ns: int
    ended: int

    @classmethod
    def of(cls, model: Model, *, truncated: bool) -> "Coverage":
        """Count launches and records.

        Args:
            model: the rank.
            truncated: the input itself is cut: a step without records lost them.
        """
        calls, steps = model.calls, model.steps
        launch = _launches(calls)
        ts_ns, linked = calls.ts_ns[launch], calls.linked[launch]
        per_step = _shares(ts_ns, linked, steps.host_ts_ns, steps.host_end_ns)
        if truncated:
            per_step[~_have_work(model)] = 0.0
        late = ts_ns[~linked & (ts_ns > ts_ns[linked].max(initial=-1))]
        return cls(
            per_step,
            len(launch),
            int(linked.sum()),
            len(model.work.ts_ns) > 0,
            len(model.hosts.ts_ns) + len(calls.ts_ns) > 0,
            int(model.work.end_ns.max(initial=0)),
            len(late),
        )

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """(steps,) whether idle time in the step can be believed."""
        return (self.steps >= LEAST_COVERAGE) & (self.has_device or not self.launches)

    def notices(self) -> list[Notice]:
        """What is missing, said once."""
        lost = self.launches - self.recorded
        if self.launches and not self.has_device:
            message = f"{self.launches} launches, but not one device record: no device verdict."
            return [Notice("device.missing", "error", self.launches, message)]
        if not self.has_device:
            message = "No device in this trace: nothing can be said about device time."
            return [Notice("device.missing", "warning", 1, message)]
        if not self.has_host:
            message = "No host events: idle time cannot be attributed."
            return [Notice("host.missing", "warning", 1, message)]
        return [self._lost(lost)] if lost else []

    def _lost(self, lost: int) -> Notice:
        """Some records are missing: those of the end, or some of all."""
        untrusted = int((~self.trusted).sum())
        if not untrusted:
            message = (
                f"{lost} of {self.launches} launches have no device record: idle time in which "
                "their work may have run is unclassified."
            )
            return Notice("device.under_recorded", "warning", lost, message)
        if self.trusted.any() and self.ended >= LEAST_COVERAGE * lost:
            message = (
                f"Device records end at {self.last_device_ns / 1e6:.3f} ms; {self.ended} launches "
                f"after that have none: no verdict on {untrusted} steps."
            )
            return Notice("device.truncated", "error", lost, message)
        message = (
            f"{lost} of {self.launches} launches have no device record: idle time is not known in "
            f"{untrusted} steps."
        )
        return Notice("device.under_recorded", "error", lost, message)


def lost_launches(calls: Calls) -> Int64s:
    """(n,) times, in order, of the launches whose device records are not there."""
    launch = _launches(calls)
    return np.sort(calls.ts_ns[launch[~calls.linked[launch]]])


def _launches(calls: Calls) -> Int64s:
    """Rows of calls that launch kernels, those into a graph that is being captured apart."""
    launch = calls.role.where("launch", "graph_launch")
    depth = np.zeros(len(calls.ts_ns), np.int64)
    begin = calls.api.map(lambda name: "BeginCapture" in name, np.bool_)
    end = calls.api.map(lambda name: "EndCapture" in name, np.bool_)
    for lane in np.unique(calls.lane[begin]).tolist():
        here = calls.lane == lane
        depth[here] = np.cumsum(begin[here].astype(np.int64) - end[here])
    return np.flatnonzero(launch & (depth <= 0))


def _shares(
    ts_ns: Int64s, linked: NDArray[np.bool_], starts: Int64s, ends: Int64s
) -> NDArray[np.float64]:
    at = np.searchsorted(starts, ts_ns, "right") - 1
    inside = at >= 0
    inside[inside] = ts_ns[inside] < ends[at[inside]]
    total = np.bincount(at[inside], minlength=len(starts)).astype(np.float64)
    found = np.bincount(at[inside & linked], minlength=len(starts))
    return np.where(total > 0, found / np.maximum(total, 1), 1.0)


def _have_work(model: Model) -> NDArray[np.bool_]:
    work, steps = model.work, model.steps
    launched = np.where(work.launch_ts_ns < 0, work.ts_ns, work.launch_ts_ns)
    at = np.searchsorted(steps.host_ts_ns, launched, "right") - 1
    held = np.zeros(len(steps.ts_ns), bool)
    held[at[at >= 0]] = True
    return held
