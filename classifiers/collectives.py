"""Collectives of a rank, by operation."""

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas import report

__all__ = ["collective_rows"]


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
        exposed = sum(
            facts.timeline.budget(s, e).get("collective_unsplit", 0)
            for s, e in zip(
                np.clip(starts, begin, until).tolist(),
                np.clip(ends, begin, until).tolist(),
                strict=True,
            )
        )
        found.append(
            report.Collective(
                rank=facts.rank,
                op=op,
                group=group,
                count=len(mine),
                bytes=int(np.maximum(work.bytes[mine], 0).sum()),
                total_ns=int((work.end_ns[mine] - work.ts_ns[mine]).sum()),
                exposed_ns=exposed,
            )
        )
    return found
