"""A recording cut to a part of its time, which everything that reaches beyond it is cut at."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfdiag.profiler.regions import Region
from perfdiag.profiler.steps import Step
from perfdiag.trace_schemas.recording import ArgColumn, Int64s, Recording, Slices
from perfdiag.trace_schemas.texts import shortened

__all__ = ["LONGEST_NAME", "Span", "cut", "cut_regions", "cut_steps", "overlap_ns"]

Span = tuple[int, int]
"""Start and end in nanoseconds."""

LONGEST_NAME = 2000
"""Characters of a name that a slice of a trace keeps: templated kernels come near to it."""

LARGEST_METADATA = 2000
"""Characters of what a source says of itself."""


def cut(recording: Recording, span: Span) -> Recording:
    """What of a recording lies in a span of time.

    Slices that reach beyond it end at its bounds, and say how long they were: `whole_dur`. Names
    are cut too, so that a trace cannot blow up what is made of it.

    Args:
        recording: normalised.
        span: on the recording's clock.
    """
    start, end = span
    slices = recording.slices
    inside = (slices.end_ns > start) & (slices.ts_ns < end)
    inside |= (slices.dur_ns == 0) & (slices.ts_ns >= start) & (slices.ts_ns <= end)
    kept = slices.take(inside)
    return replace(
        recording,
        slices=_clipped(kept, span),
        set_aside=recording.set_aside.take(np.zeros(len(recording.set_aside), bool)),
        strings=[shortened(text, LONGEST_NAME) for text in recording.strings],
        counters=[one.within(*span) for one in recording.counters],
        metadata={k: v for k, v in recording.metadata.items() if len(v) <= LARGEST_METADATA},
        notices=[
            replace(one, message=shortened(one.message, LONGEST_NAME)) for one in recording.notices
        ],
    )


def _clipped(slices: Slices, span: Span) -> Slices:
    ts = np.clip(slices.ts_ns, *span)
    dur = np.clip(slices.end_ns, *span) - ts
    whole = np.flatnonzero(dur != slices.dur_ns)
    args = dict(slices.args)
    if len(whole):
        args["whole_dur"] = ArgColumn(whole, slices.dur_ns[whole])
    return replace(slices, ts_ns=ts, dur_ns=dur, args=args)


def cut_steps(steps: Sequence[Step], span: Span) -> list[Step]:
    """The steps that lie in a span, cut at its bounds."""
    found = []
    for step in steps:
        bounds = _within(step.ts_ns, step.end_ns, span)
        if bounds is not None:
            host = _within(step.host_ts_ns, step.host_end_ns, span) or (bounds[0], bounds[0])
            found.append(
                replace(
                    step,
                    name=shortened(step.name, LONGEST_NAME),
                    ts_ns=bounds[0],
                    dur_ns=bounds[1] - bounds[0],
                    host_ts_ns=host[0],
                    host_dur_ns=host[1] - host[0],
                )
            )
    return found


def cut_regions(regions: Sequence[Region], span: Span) -> list[Region]:
    """The regions that lie in a span, cut at its bounds."""
    found = []
    for region in regions:
        bounds = _within(region.ts_ns, region.ts_ns + region.dur_ns, span)
        if bounds is not None:
            host = min(max(region.host_ts_ns, span[0]), span[1])
            ts, length = bounds[0], bounds[1] - bounds[0]
            name = shortened(region.name, LONGEST_NAME)
            found.append(replace(region, name=name, ts_ns=ts, dur_ns=length, host_ts_ns=host))
    return found


def _within(start: int, end: int, span: Span) -> Span | None:
    """The part of a range in a span; None where there is none."""
    low, high = max(start, span[0]), min(end, span[1])
    return (low, high) if high > low else None


def overlap_ns(starts: Int64s, ends: Int64s, bounds: tuple[Int64s, Int64s]) -> Int64s:
    """(n,) how long each range overlaps a set of disjoint ones, which are in order."""
    low, high = bounds
    if not len(low):
        return np.zeros(len(starts), np.int64)
    before = np.concatenate(([0], np.cumsum(high - low)))

    def until(times: Int64s) -> Int64s:
        at = np.searchsorted(low, times, "right") - 1
        inside = np.clip(times - low[np.maximum(at, 0)], 0, (high - low)[np.maximum(at, 0)])
        return np.where(at < 0, 0, before[np.maximum(at, 0)] + inside)

    return until(ends) - until(starts)
