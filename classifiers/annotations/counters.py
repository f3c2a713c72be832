"""Numbers over time: how much of it collectives hold up, how fast kernels are, what is queued."""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.annotations.scene import Scene
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.roofline import Bound
from perfdiag.profiler.annotations import CounterTrack
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["amount", "counter_tracks"]

Floats = NDArray[np.float64]

BINS = 400
"""Of a trace: about the pixels of a track."""

SHORTEST_NS = 10_000
"""Of a bin; kernels are not much shorter."""


def counter_tracks(scene: Scene) -> list[CounterTrack]:
    """Counters in bins of equal length over all steps; each value is the mean over its bin."""
    facts = scene.facts
    start, end = facts.span_ns
    count = max(1, min(BINS, (end - start) // SHORTEST_NS))
    edges = np.linspace(start, end, count + 1).astype(np.int64)
    found = [_track("exposed collectives", "%", edges, 100 * _exposed(facts, edges))]
    found += _speeds(facts, edges)
    return [*found, _track("queue depth", "launches", edges, _queued(facts, edges))]


def _track(name: str, unit: str, edges: Int64s, values: Floats) -> CounterTrack:
    """A counter; equal neighbours are one value, and none holds after the end."""
    changes = np.ones(len(values), bool)
    changes[1:] = np.diff(values) != 0
    ts_ns = np.append(edges[:-1][changes], edges[-1])
    return CounterTrack(name, unit, ts_ns, np.append(values[changes], np.nan))


def amount(starts_ns: Int64s, ends_ns: Int64s, per_ns: Floats, edges_ns: Int64s) -> Floats:
    """(bins,) what intervals amount to in each bin.

    Args:
        starts_ns: (n,) of intervals, which may overlap.
        ends_ns: (n,) of them.
        per_ns: (n,) what a nanosecond of each counts.
        edges_ns: (bins + 1,) ascending.
    """

    def until(bounds: Int64s) -> Floats:
        order = np.argsort(bounds, kind="stable")
        each, at = per_ns[order], bounds[order].astype(np.float64)
        counted = np.concatenate(([0.0], np.cumsum(each)))
        moment = np.concatenate(([0.0], np.cumsum(each * at)))
        before = np.searchsorted(bounds[order], edges_ns, "right")
        return np.asarray(counted[before] * edges_ns - moment[before], np.float64)

    return np.diff(until(starts_ns) - until(ends_ns))


def _mean(starts_ns: Int64s, ends_ns: Int64s, per_ns: Floats, edges_ns: Int64s) -> Floats:
    origin = edges_ns[0]  # sums of products stay exact where times are small
    found = amount(starts_ns - origin, ends_ns - origin, per_ns, edges_ns - origin)
    mean = found / np.maximum(np.diff(edges_ns), 1)
    return np.asarray(np.where(np.abs(mean) < _NOISE * per_ns.max(initial=0), 0, mean), np.float64)


_NOISE = 1e-9
"""Of the largest value: less is what sums of fractions lose."""


def _exposed(facts: RankFacts, edges: Int64s) -> Floats:
    """(bins,) share of the time in which collectives run and no kernel computes."""
    timeline = facts.timeline
    alone = (timeline.active & 2 > 0) & (timeline.active & 1 == 0)
    bounds = timeline.edges_ns[:-1][alone], timeline.edges_ns[1:][alone]
    return _mean(*bounds, np.ones(int(alone.sum())), edges)


def _speeds(facts: RankFacts, edges: Int64s) -> list[CounterTrack]:
    """FLOPs and bytes a second of the kernels whose cost is known and can be true."""
    costs, roofline, work = facts.costs, facts.roofline, facts.model.work
    if costs is None or roofline is None:
        return []
    rows = facts.here & costs.known & (roofline.bound != Bound.IMPOSSIBLE)
    bounds = work.ts_ns[rows], work.end_ns[rows]
    length = np.maximum(facts.length_ns[rows], 1)
    flops = _mean(*bounds, costs.flops[rows] / length, edges)
    bytes_ = _mean(*bounds, costs.bytes[rows] / length, edges)
    return [
        _track("achieved TFLOP/s", "TFLOP/s", edges, flops / 1e3),
        _track("achieved GB/s", "GB/s", edges, bytes_),
    ]


def _queued(facts: RankFacts, edges: Int64s) -> Floats:
    """(bins,) work of the device that is launched and has not started."""
    work = facts.model.work
    rows = facts.here & (work.launch_id != ABSENT) & (work.ts_ns > work.launch_end_ns)
    bounds = work.launch_end_ns[rows], work.ts_ns[rows]
    return _mean(*bounds, np.ones(int(rows.sum())), edges)
