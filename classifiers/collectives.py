"""Collectives of a rank, by operation."""

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas import report

__all__ = ["collective_rows"]


EXPOSED = ("collective_transfer", "collective_wait", "collective_unsplit")


def collective_rows(facts: RankFacts) -> list[report.Collective]:
    """Count, bytes and time of each operation and group; see `report.Collective`."""
    work = facts.model.work
    begin, until = facts.span_ns
    inside = (work.ts_ns < until) & (work.end_ns > begin)
    rows = np.flatnonzero(work.kind.where("collective") & inside)
    keys = sorted(set(zip(work.collective.take(rows), work.group.take(rows), strict=True)))
    found = []
    for op, group in keys:
        mine = rows[(work.collective.where(op) & work.group.where(group))[rows]]
        starts, ends = merge(work.ts_ns[mine], work.end_ns[mine])
        bounds = (np.clip(starts, begin, until), np.clip(ends, begin, until))
        exposed = int(facts.timeline.time_in(EXPOSED, bounds).sum())
        waits = int(facts.timeline.time_in(("collective_wait",), bounds).sum())
        found.append(
            report.Collective(
                rank=facts.rank,
                op=op,
                group=group,
                count=len(mine),
                bytes=int(np.maximum(work.bytes[mine], 0).sum()),
                total_ns=int((work.end_ns[mine] - work.ts_ns[mine]).sum()),
                exposed_ns=exposed,
                wait_ns=waits,
            )
        )
    return found
