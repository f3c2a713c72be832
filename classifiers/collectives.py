"""Collectives of a rank, by operation, process group and size."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.devices import DevicePeaks
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import SIZE_CLASSES, SizeClass

__all__ = ["collective_rows", "link_peaks"]


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


BOUNDS = (64_000, 1_000_000, 16_000_000, 256_000_000)
"""Bytes between the size classes. A choice: latency, not bandwidth, makes the time of the first;
buckets of data parallel training (25 MiB by default in PyTorch) are in the fourth."""


def collective_rows(
    facts: RankFacts, peaks: Mapping[str, float] | None = None
) -> list[report.Collective]:
    """Count, bytes and time of each operation, group and size class; see `report.Collective`.

    Args:
        facts: the rank.
        peaks: by process group the peak of the links that its ranks are joined by, bytes a second,
            where it is known.
    """
    begin, until = facts.span_ns
    found = []
    for (op, group, size_class), mine in _kinds(facts):
        starts, ends = merge(facts.model.work.ts_ns[mine], facts.model.work.end_ns[mine])
        bounds = (np.clip(starts, begin, until), np.clip(ends, begin, until))
        bus, peak = _bus_bandwidth(facts, op, mine), (peaks or {}).get(group)
        found.append(
            report.Collective(
                rank=facts.rank,
                op=op,
                group=group,
                size_class=size_class,
                count=len(mine),
                bytes=int(np.maximum(facts.model.work.bytes[mine], 0).sum()),
                total_ns=int(facts.length_ns[mine].sum()),
                exposed_ns=int(facts.timeline.time_in(EXPOSED, bounds).sum()),
                wait_ns=int(facts.timeline.time_in(("collective_wait",), bounds).sum()),
                transfer_ns=_transfer_ns(facts, mine),
                bus_bandwidth=bus,
                link_share=None if bus is None or peak is None else bus / peak,
            )
        )
    return found


def _kinds(facts: RankFacts) -> Iterator[tuple[tuple[str, str, SizeClass], Int64s]]:
    """Operation, group and size class, in their order, with the rows of `Work` that have them."""
    work = facts.model.work
    begin, until = facts.span_ns
    inside = (work.ts_ns < until) & (work.end_ns > begin)
    rows = np.flatnonzero(work.kind.where("collective") & inside)
    sizes = np.searchsorted(BOUNDS, work.bytes[rows], "right")
    sizes[work.bytes[rows] < 0] = SIZE_CLASSES.index("unknown")
    ops, groups = work.collective.take(rows), work.group.take(rows)
    of_kind: dict[tuple[str, str, int], list[int]] = {}
    for key, row in zip(zip(ops, groups, sizes.tolist(), strict=True), rows.tolist(), strict=True):
        of_kind.setdefault(key, []).append(row)
    for (op, group, size), mine in sorted(of_kind.items()):
        yield (op, group, SIZE_CLASSES[size]), np.array(mine, np.int64)


def link_peaks(
    device: DevicePeaks | None, hosts: Sequence[str], groups: Mapping[str, Sequence[int]]
) -> dict[str, float]:
    """By process group the peak bandwidth of the links between its ranks, bytes a second, one way.

    Only for groups within one host: what leaves it goes through a network of unknown speed. Where
    a host is not known, a group is taken to be within one as long as it fits into the usual one.

    Args:
        device: the peaks of that of these ranks, None where they are not known.
        hosts: names of the ranks' hosts, '' where unknown.
        groups: by name the ranks, as positions in `hosts`.
    """
    link = None if device is None else device.scale_up
    if link is None or not link.devices:
        return {}
    within = {}
    for name, ranks in groups.items():
        on = {hosts[rank] for rank in ranks}
        if len(on) == 1 and ("" not in on or len(ranks) <= link.devices):
            within[name] = link.one_way_bytes_s
    return within


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
