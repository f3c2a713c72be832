"""Features of collectives: how much of their time is known to be what, and between whom."""

import numpy as np

from perfdiag.classifiers.collectives import BUS_FACTOR
from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Bools, Floats, Running, ratio
from perfdiag.classifiers.features.view import View
from perfdiag.classifiers.rendezvous import PAIRWISE
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["FEATURES", "columns"]

FEATURES = described(
    "collectives",
    ("collectives", "log2", "One more than the collectives that start in the window"),
    (
        "waits",
        "share",
        "Of the exposed time of collectives, what is known to be waiting for another rank",
    ),
    ("transfers", "share", "Of the exposed time of collectives, what is known to be transfer"),
    ("unsplit", "share", "Of the exposed time of collectives, what may be either"),
    ("whole_job", "share", "Of the time of collectives, in those between all ranks of the job"),
    ("point_to_point", "share", "Of the time of collectives, in transfers between two ranks"),
    ("longest_collective", "share", "Of the window, the longest collective that starts in it"),
    ("stretched", "ratio", "The longest collective over the median one, of those that start in it"),
    ("link_reached", "ratio", "Bus bandwidth of transfers, over the peak of the links of one host"),
)

_EXPOSED = {
    "waits": "collective_wait",
    "transfers": "collective_transfer",
    "unsplit": "collective_unsplit",
}


def columns(view: View) -> dict[str, Floats]:
    """(n,) values by name of feature."""
    facts, spans = view.facts, view.spans
    work = facts.model.work
    rows = np.flatnonzero(facts.here & work.kind.where("collective"))
    starts, length = spans.place(work.ts_ns[rows]), facts.length_ns[rows].astype(np.float64)
    longest = starts.highest(length)
    return (
        _exposed(view)
        | _between(view, rows)
        | {
            "collectives": np.log2(1 + starts.sums()),
            "longest_collective": np.minimum(1.0, ratio(longest, spans.length_ns)),
            "stretched": ratio(longest, starts.medians(length)),
            "link_reached": _link_reached(view, rows),
        }
    )


def _exposed(view: View) -> dict[str, Floats]:
    leaves = {name: view.leaf_ns[:, LEAVES.index(leaf)] for name, leaf in _EXPOSED.items()}
    total = np.sum([*leaves.values()], axis=0)
    return {name: ratio(ns, total) for name, ns in leaves.items()}


def _between(view: View, rows: Int64s) -> dict[str, Floats]:
    """Which ranks meet; whether that is all of them is known where their number is."""
    work, world = view.facts.model.work, view.facts.world_size
    running = Running(work.ts_ns[rows], work.end_ns[rows], view.spans)
    total = running.time()
    found = {"point_to_point": ratio(running.time(work.collective.where(*PAIRWISE)[rows]), total)}
    size = _group_size(view, rows)
    if world and (size > 0).any():
        found["whole_job"] = ratio(running.time(size == world), running.time(size > 0))
    return found


def _group_size(view: View, rows: Int64s) -> Int64s:
    """(k,) ranks that take part in each collective; -1 where not known."""
    collectives = view.facts.model.collectives
    return collectives.group_size[np.searchsorted(collectives.work, rows)]


def _link_reached(view: View, rows: Int64s) -> Floats:
    """(n,) of groups that fit into one host, as in `classifiers.collectives`."""
    facts, nothing = view.facts, np.full(len(view.step), np.nan)
    link = None if facts.peaks is None else facts.peaks.scale_up
    if link is None or not link.devices or facts.transfer_ns is None:
        return nothing
    size, transfer = _group_size(view, rows), facts.transfer_ns[rows]
    work = facts.model.work
    factor = work.collective.map(lambda op: BUS_FACTOR.get(op, np.nan), np.float64)[rows]
    known: Bools = (size > 1) & (size <= link.devices) & (transfer > 0) & (work.bytes[rows] > 0)
    known &= ~np.isnan(factor)
    rows, size, factor = rows[known], size[known], factor[known]
    moved = np.where(factor == 0, 1.0, factor * (size - 1) / size) * work.bytes[rows]
    starts = view.spans.place(work.ts_ns[rows])
    return ratio(starts.sums(moved / link.one_way_bytes_s), starts.sums(transfer[known] / 1e9))
