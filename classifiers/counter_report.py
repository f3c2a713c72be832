"""Files of counters as the report has them."""

from collections.abc import Sequence

import numpy as np

from perfdiag.profiler.counters import Timeline
from perfdiag.profiler.counters.opening import OpenedCounters
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["counter_file"]


def counter_file(opened: OpenedCounters, ranks: Sequence[int | None]) -> report.CounterFile:
    """A file and what its counters come to, whether or not they have a place in a trace.

    Args:
        opened: the file.
        ranks: on whose clocks its counters were put.
    """
    found = opened.found
    return report.CounterFile(
        path=found.path,
        format=found.format,
        bytes=opened.disk_bytes,
        sha256=opened.sha256,
        clock=found.clock,
        ranks=list(ranks),
        timelines=[
            _timeline(one) for one in found.timelines if one.known and one.counter.unit != "mask"
        ],
        kernels=len(found.kernels),
        facts=dict(found.facts),
    )


def _timeline(timeline: Timeline) -> report.CounterTimeline:
    counter = timeline.counter
    p10, p90 = (float(v) for v in np.percentile(counter.values, (10, 90)))
    return report.CounterTimeline(
        metric=counter.name,
        unit=counter.unit,
        device=None if counter.device == ABSENT else counter.device,
        entity=timeline.entity,
        samples=len(counter.values),
        period_ns=timeline.period_ns,
        mean=float(counter.values.mean()),
        p10=p10,
        p90=p90,
    )
