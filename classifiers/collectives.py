"""Collectives of a rank, by operation."""

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["collective_rows"]


EXPOSED = ("collective_transfer", "collective_wait", "collective_unsplit")


BUS_FACTOR = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "all_to_all": 1.0,
    "broadcast": 0.0,
    "reduce": 0.0,
}
"""Times (n - 1) / n for n ranks; 0 for operations whose factor is 1."""


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
                transfer_ns=_transfer_ns(facts, mine),
                bus_bandwidth=_bus_bandwidth(facts, op, mine),
            )
        )
    return found


def _transfer_ns(facts: RankFacts, rows: Int64s) -> int:
    """How long some collectives move data, as far as it is known."""
    if facts.transfer_ns is None:
        return 0
    return int(np.maximum(facts.transfer_ns[rows], 0).sum())


def _bus_bandwidth(facts: RankFacts, op: str, rows: Int64s) -> float | None:
    """Median bus bandwidth of some collectives of one operation, bytes a second.

    Bytes that cross the slowest link for each byte of the message, over the time of the transfer
    (nccl-tests, doc/PERFORMANCE.md). Bytes are those of the larger of input and output.
    """
    if facts.transfer_ns is None or op not in BUS_FACTOR:
        return None
    collectives = facts.model.collectives
    size = collectives.group_size[np.searchsorted(collectives.work, rows)]
    transfer, moved = facts.transfer_ns[rows], facts.model.work.bytes[rows]
    known = (transfer > 0) & (moved > 0) & (size > 1)
    if not known.any():
        return None
    factor = BUS_FACTOR[op] * (size[known] - 1) / size[known] if BUS_FACTOR[op] else 1.0
    return float(np.median(factor * moved[known] / (transfer[known] / 1e9)))
