"""HolisticTraceAnalysis at f4d0062: the largest part of its breakdowns of time.

Published: `hta/analyzers/breakdown_analysis.py`. Between the first and the last moment of device
work: compute is the union of kernels that are neither communication nor memory by their names (see
`hta_names`), non-compute the rest of busy time, idle what is left. Non-compute is communication,
and memory where no communication runs. Idle time is broken down stream by stream: `host_wait` where
work was launched after the work before it on its stream had ended; else `kernel_wait` where the gap
is below 30 (documented as nanoseconds, compared with Kineto's microseconds); else `other`. Work
whose launch is not in the trace is not late.

What lies before the first and after the last kernel is in no part, however long; the gaps of a
stream count also while others are busy.

Our mapping: compute is compute-bound (the tool cannot tell arithmetic from memory), communication
is collective-bound, memory (copies and fills) is memory-bound. Idle is what holds most of the gaps:
`host_wait` and `kernel_wait` (overhead of launches) are host-bound, `other` is unknown.
"""

import numpy as np

from baselines.hta_names import COMMUNICATION, MEMORY
from baselines.rule import Baseline, heaviest
from baselines.seen import device_spans, named
from baselines.spans import Cover, Windows, layers, rows_from, sums
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Work
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Label

__all__ = ["HTA_BREAKDOWN"]

KERNEL_WAIT_NS = 30_000


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    work = facts.model.work
    communication = named(work, COMMUNICATION)
    memory = named(work, MEMORY) & ~communication
    kinds = (~communication & ~memory, communication, memory)
    parts = [device_spans(work, rows) for rows in kinds]
    *busy, _ = layers(parts, windows)
    idle = Cover.of(*parts).extent(windows) - sum(busy)
    rows = zip(*(ns.tolist() for ns in (*busy, idle)), _why_idle(work, windows), strict=True)
    return [_largest(*row) for row in rows]


def _largest(compute: int, communication: int, memory: int, idle: int, why: Label) -> Label:
    return heaviest(
        [
            ("compute-bound", compute),
            ("collective-bound", communication),
            ("memory-bound", memory),
            (why, idle),
        ]
    )


def _why_idle(work: Work, windows: Windows) -> list[Label]:
    before = _previous_on_stream(work)
    ended = np.where(before >= 0, work.end_ns[before], work.ts_ns)
    gap = np.where(before >= 0, work.ts_ns - ended, 0).astype(np.float64)
    late = (work.launch_id >= 0) & (work.launch_ts_ns > ended)
    other = ~late & (gap >= KERNEL_WAIT_NS)
    rows = rows_from(work.ts_ns, windows)
    told, untold = (sums(np.where(side, gap, 0.0), rows) for side in (~other, other))
    for window, part in enumerate(rows):  # a gap to work outside the window is no gap in it
        outside = gap[part] * (before[part] < part.start)
        told[window] -= outside @ ~other[part]
        untold[window] -= outside @ other[part]
    return ["host-bound" if t >= u else "unknown" for t, u in zip(told, untold, strict=True)]


def _previous_on_stream(work: Work) -> Int64s:
    """(work,) row of the work before on the same stream, -1 for none."""
    order = np.lexsort((np.arange(len(work.id)), work.lane))
    found = np.full(len(order), -1, np.int64)
    same = work.lane[order][1:] == work.lane[order][:-1]
    found[order[1:][same]] = order[:-1][same]
    return found


HTA_BREAKDOWN = Baseline(
    "HTA breakdown", "HolisticTraceAnalysis f4d0062, breakdown_analysis.py", _judge
)
