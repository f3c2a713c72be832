"""Counters on the clocks of ranks: what a device was doing in a part of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.trace_schemas.recording import Int64s

__all__ = ["FAULTS", "SLOWED", "Figure", "RankCounters", "Track", "Windows", "summary"]

Floats = NDArray[np.float64]
Windows = tuple[Int64s, Int64s]
"""(n,) starts and ends, disjoint and in order."""

FAULTS = {
    0x8: "a hardware slowdown",
    0x20: "a thermal slowdown by software",
    0x40: "a thermal slowdown by hardware",
    0x80: "the power brake",
}
"""Reasons for low clocks (nvml.h, nvmlClocksEventReasons) that a healthy device does not have."""

SLOWED = 0x4 | sum(FAULTS)
"""These, and the software's power cap. Idle, chosen clocks and synchronised boost slow nothing."""


@dataclass(frozen=True, slots=True)
class Track:
    """One counter of a rank's device or host.

    Attributes:
        metric: canonical name.
        unit: base unit of its values.
        file: the file that it is from, as the user named it.
        period_ns: usual time between samples.
        start_ns, end_ns: (n,) the time that each sample stands for, on the rank's clock; disjoint
            and in order.
        values: (n,) in the base unit.
    """

    metric: str
    unit: str
    file: str
    period_ns: int
    start_ns: Int64s
    end_ns: Int64s
    values: Floats

    def inside(self, windows: Windows) -> tuple[Floats, Int64s]:
        """(k,) values of the samples that stand for a part of windows, and for how long."""
        if not len(windows[0]):
            return self.values[:0], self.start_ns[:0]
        first = int(np.searchsorted(self.end_ns, windows[0][0], "right"))
        last = int(np.searchsorted(self.start_ns, windows[1][-1], "left"))
        rows = slice(first, max(first, last))
        if len(windows[0]) == 1:  # thousands of steps are asked for one by one
            time = np.minimum(self.end_ns[rows], windows[1])
            time = np.asarray(time - np.maximum(self.start_ns[rows], windows[0]), np.int64)
        else:
            time = _within(windows, self.end_ns[rows]) - _within(windows, self.start_ns[rows])
        return self.values[rows][time > 0], time[time > 0]


@dataclass(frozen=True, slots=True)
class Figure:
    """A counter over a part of the time, samples weighted by the time that they stand for.

    Attributes:
        mean, p10, p90: in the base unit of the counter.
        coverage: share of that time for which a sample stands.
        samples: how many do.
    """

    mean: float
    p10: float
    p90: float
    coverage: float
    samples: int


@dataclass(frozen=True, slots=True)
class RankCounters:
    """The counters of one rank, by metric."""

    tracks: Mapping[str, Track]

    def figure(self, metric: str, windows: Windows) -> Figure | None:
        """A counter over windows; None where it has no sample in them."""
        track = self.tracks.get(metric)
        return None if track is None else summary(track, windows)

    def at(self, metric: str, other: Track) -> Floats | None:
        """(n,) a counter in the middle of each sample of another, NaN where it has no sample.

        None where it was not sampled.
        """
        track = self.tracks.get(metric)
        if track is None:
            return None
        middle = other.start_ns + (other.end_ns - other.start_ns) // 2
        row = np.searchsorted(track.start_ns, middle, "right") - 1
        held = (row >= 0) & (middle < track.end_ns[row])
        return np.where(held, track.values[row], np.nan)

    def most(self, metric: str) -> float | None:
        """The largest value of a counter in the whole file; None where it was not sampled."""
        track = self.tracks.get(metric)
        return None if track is None else float(track.values.max())


def summary(track: Track, windows: Windows) -> Figure | None:
    """Mean, deciles and coverage of a counter over windows; None where no sample is in them."""
    values, time = track.inside(windows)
    if not len(values):
        return None
    held = time.astype(np.float64)
    whole = int((windows[1] - windows[0]).sum())
    p10, p90 = weighted_quantiles(values, held, (0.1, 0.9))
    mean = float(values @ (held / held.sum()))
    return Figure(mean, p10, p90, min(1.0, float(held.sum()) / whole), len(values))


def weighted_quantiles(values: Floats, weights: Floats, at: Sequence[float]) -> list[float]:
    """The least values up to which these shares of the weight lie."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    rows = np.searchsorted(reached, np.array(at) * reached[-1], "left")
    return [float(v) for v in values[order][np.minimum(rows, len(values) - 1)]]


def _within(windows: Windows, times_ns: Int64s) -> Int64s:
    """(n,) how much of the windows lies before each time."""
    starts, ends = windows
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    at = np.searchsorted(starts, times_ns, "right")
    beyond = np.maximum(ends[np.maximum(at - 1, 0)] - times_ns, 0) if len(ends) else 0
    return np.asarray(before[at] - np.where(at > 0, beyond, 0), np.int64)
