"""For which time a sample speaks: until the next one, or since the one before; never over a gap."""

import numpy as np

from perfdiag.profiler.counters.timelines import Timeline
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["spans"]

_SLACK = 1.5
"""A sample speaks for one usual step and a half at most: samplers are late, and do not skip."""


def spans(timeline: Timeline) -> tuple[Int64s, Int64s]:
    """Start and end of the time that each sample stands for.

    A timeline of one sample, or of samples at one moment, covers nothing. What the counter itself
    says goes before.

    Returns:
        (n,) start and (n,) end, in nanoseconds; they do not overlap.
    """
    if timeline.counter.spans is not None:
        return timeline.counter.spans
    ts_ns, reach_ns = timeline.counter.ts_ns, int(timeline.period_ns * _SLACK)
    if not len(ts_ns):
        return ts_ns, ts_ns
    if timeline.counter.semantics == "backward":
        before = np.concatenate((ts_ns[:1] - timeline.period_ns, ts_ns[:-1]))
        return np.maximum(before, ts_ns - reach_ns), ts_ns
    after = np.concatenate((ts_ns[1:], ts_ns[-1:] + timeline.period_ns))
    return ts_ns, np.minimum(after, ts_ns + reach_ns)
