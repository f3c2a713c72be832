"""Where and when a finding costs most, and how much of the trace shows it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import Share
from perfdiag.classifiers.intervals import merge
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.triage.cutting import Span
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["Occurrence", "leaf_pieces", "main_leaf", "shares_of", "taken_spans", "worst", "zoomed"]

WAITING = LEAF["collective_wait"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The step of a rank in which a finding takes most.

    Attributes:
        position: of the rank in the job.
        others: positions of ranks that must be seen beside it: the one it waits for.
        ordinal: of the step.
        span: of its window, with the part on the host that launched its work.
        window: of the step alone.
    """

    position: int
    others: tuple[int, ...]
    ordinal: int
    span: Span
    window: Span


def shares_of(judged: Judged, fix: str) -> dict[int, Share]:
    """What a finding takes, by the positions of the ranks on which it does."""
    return {
        position: share
        for position, rank in enumerate(judged.ranks)
        for share in rank.diagnosed.shares
        if share.finding.diagnosis.id == fix
    }


def worst(judged: Judged, fix: str) -> Occurrence:
    """The step and rank in which a fix saves most; the earliest of equal ones."""
    shares = shares_of(judged, fix)
    saved = {
        position: np.where(share.facts.trusted, share.per_step(share.take.mid), -1.0)
        for position, share in shares.items()
    }
    position = max(sorted(saved), key=lambda one: float(saved[one].max()))
    row, share = int(np.argmax(saved[position])), shares[position]
    steps = share.facts.model.steps
    window = int(steps.ts_ns[row]), int(steps.end_ns[row])
    begin = min(window[0], int(steps.host_ts_ns[row]))
    others = _late(judged, position) if main_leaf(share) == "collective_wait" else ()
    return Occurrence(position, others, int(steps.ordinal[row]), (begin, window[1]), window)


def main_leaf(share: Share) -> str:
    """The leaf of the time budget in which a finding takes most."""
    lengths = np.diff(share.pieces.edges_ns) * share.take.taken
    return LEAVES[int(np.argmax(np.bincount(share.pieces.leaf, lengths, len(LEAVES))))]


def _late(judged: Judged, position: int) -> tuple[int, ...]:
    """The rank for which one waits longest, where that is known and not itself."""
    waits = judged.job.waits
    if waits is None:
        return ()
    charged = waits.charged_ns[position].sum(axis=1)
    late = int(np.argmax(charged))
    return (late,) if charged[late] > 0 and late != position else ()


def taken_spans(share: Share, span: Span) -> tuple[Int64s, Int64s]:
    """The time in a span that a finding is about, as disjoint intervals in order."""
    edges = np.clip(share.pieces.edges_ns, *span)
    taken = share.take.taken & (edges[1:] > edges[:-1])
    return merge(edges[:-1][taken], edges[1:][taken])


def zoomed(span: Span, share: Share) -> Span:
    """The half of a span in which a finding takes more; it ends where no half is left."""
    start, end = span
    quarter = (end - start) // 4
    parts = [(start + i * quarter, start + i * quarter + 2 * quarter) for i in range(3)]
    return max(parts, key=lambda part: _taken_ns(share, part))


def _taken_ns(share: Share, span: Span) -> int:
    begin, end = taken_spans(share, span)
    return int((end - begin).sum())


def leaf_pieces(facts: RankFacts, span: Span) -> list[tuple[str, int, int]]:
    """The time budget of a span as it lies in time: leaf, start and end, none empty."""
    timeline = facts.timeline
    edges = np.clip(timeline.edges_ns, *span)
    some = np.flatnonzero(edges[1:] > edges[:-1])
    if not len(some):
        return []
    leaf = timeline.leaf[some]
    first = np.flatnonzero(_changes(leaf, edges[:-1][some], edges[1:][some]))
    last = np.append(first[1:], len(some)) - 1
    bounds: Sequence[tuple[int, int]] = list(
        zip(edges[:-1][some][first].tolist(), edges[1:][some][last].tolist(), strict=True)
    )
    return [
        (LEAVES[code], start, end)
        for code, (start, end) in zip(leaf[first].tolist(), bounds, strict=True)
    ]


def _changes(leaf: NDArray[np.int8], starts: Int64s, ends: Int64s) -> NDArray[np.bool_]:
    """(n,) whether a piece is not the continuation of the one before."""
    changes = np.ones(len(leaf), bool)
    changes[1:] = (leaf[1:] != leaf[:-1]) | (starts[1:] != ends[:-1])
    return changes
