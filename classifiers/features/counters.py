"""Features of hardware counters that were sampled beside the trace."""

import numpy as np

from perfdiag.classifiers.counters import RankCounters, Track
from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Floats, held_within, ratio
from perfdiag.classifiers.features.view import View

__all__ = ["FEATURES", "LEAST_COVERAGE", "columns"]

LEAST_COVERAGE = 0.8
"""Of a region for which there must be samples; a choice, as for the budget to follow counters."""

FEATURES = described(
    "counters",
    ("counter_tensor", "share", "Of the cycles, those with a tensor pipe active"),
    ("counter_fp", "share", "Of the cycles, those with the busiest floating-point pipe active"),
    ("counter_sm", "share", "Of the cycles, those with a warp on a multiprocessor"),
    ("counter_dram", "share", "Of the cycles, those in which device memory moves data"),
    ("counter_busy", "share", "Of the time, that in which any kernel is resident"),
    ("counter_power", "share", "Power, of its limit or else of the most in the file"),
    ("counter_clock", "share", "Clock, of its limit or else of the highest in the file"),
)

_SHARES = {
    "counter_tensor": ("tensor_active",),
    "counter_fp": ("fp64_active", "fp32_active", "fp16_active"),
    "counter_sm": ("sm_active",),
    "counter_dram": ("dram_active",),
    "counter_busy": ("gpu_busy",),
}
"""Metrics by feature; of several the largest counts."""

_OF_MOST = {
    "counter_power": ("power", "power_limit"),
    "counter_clock": ("sm_clock", "sm_clock_limit"),
}


def columns(view: View) -> dict[str, Floats]:
    """(n,) values by name of feature; without counters there are none.

    NaN where samples stand for too little of a region, or lie farther apart than it is long.
    """
    counters = view.facts.counters
    if counters is None:
        return {}
    found = {}
    for name, metrics in _SHARES.items():
        tracks = [counters.tracks[metric] for metric in metrics if metric in counters.tracks]
        if tracks:
            found[name] = np.fmax.reduce([_means(track, view) for track in tracks])
    for name, (metric, limit) in _OF_MOST.items():
        most = _most(counters, metric, limit)
        if most:
            found[name] = np.minimum(1.0, _means(counters.tracks[metric], view) / most)
    return found


def _most(counters: RankCounters, metric: str, limit: str) -> float | None:
    if metric not in counters.tracks:
        return None
    return counters.most(limit) or counters.most(metric)


def _means(track: Track, view: View) -> Floats:
    """(n,) means over the part of each region for which there are samples."""
    spans = view.spans
    held = held_within(track.start_ns, track.end_ns, spans)
    mean = ratio(held_within(track.start_ns, track.end_ns, spans, track.values), held)
    close = (track.period_ns > 0) & (track.period_ns <= spans.length_ns)
    mean[~close | (held < LEAST_COVERAGE * spans.length_ns)] = np.nan
    return mean
