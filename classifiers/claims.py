"""Which nanoseconds of the time budget a finding speaks for, and how many of them it saves.

A claim is static: it takes time out of the leaves as they were recorded, so what it saves is a
bound. What the step does with the time that is freed a replay says (`effects`, `replay`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import covered, instants
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Claim", "Pieces", "Take", "Verb", "claim"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

Verb = Literal["scale", "remove", "detach", "overlap", "rebalance"]
"""How a fix saves time. What takes it becomes shorter (`scale`), runs beside other work
(`overlap`), or takes the rank that comes late no longer than others (`rebalance`). All that the
host does in an interval goes, also where a queue of launches hides it (`remove`). Or the host no
longer waits for the device (`detach`): where that left the device idle, this may go as well."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Time that a finding speaks for.

    Attributes:
        start_ns, end_ns: (n,) disjoint intervals in order.
        leaves: nanoseconds of other leaves inside the intervals are not meant.
        low, mid, high: (n,) share of each interval's nanoseconds that the fix saves.
        verb: how it saves them.
        threads: lanes of which the intervals speak, whatever the device does meanwhile: their work
            goes where the verb is `remove`, and so do their waits, which alone go where it is
            `detach`. `ABSENT`: the making of batches.
    """

    start_ns: Int64s
    end_ns: Int64s
    leaves: tuple[str, ...]
    low: Floats
    mid: Floats
    high: Floats
    verb: Verb = "scale"
    threads: tuple[int, ...] = ()


def claim(
    intervals: tuple[Int64s, Int64s],
    leaves: Iterable[str],
    *,
    low: ArrayLike,
    high: ArrayLike,
    mid: ArrayLike | None = None,
    verb: Verb = "scale",
    threads: Iterable[int] = (),
) -> Claim:
    """Make a claim on intervals, which may overlap and come in any order.

    Args:
        intervals: (n,) starts and ends. Where two overlap, the earlier one keeps the time.
        leaves: where nanoseconds may be taken from.
        low: share that is saved at least, of each interval or of all; between 0 and 1.
        high: share that is saved at most.
        mid: share that is likely; halfway unless stated.
        verb: how the fix saves it.
        threads: lanes of which the intervals speak, see `Claim`.
    """
    starts, ends = intervals
    likely = _middle(low, high) if mid is None else mid
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order]) if len(order) else ends
    starts = np.maximum(starts[order], np.concatenate((starts[order][:1], reach[:-1])))
    some = ends[order] > starts

    def kept(share: ArrayLike) -> Floats:
        return np.asarray(_share(share, len(order))[order][some], np.float64)

    shares = (kept(low), kept(likely), kept(high))
    return Claim(starts[some], ends[order][some], tuple(leaves), *shares, verb, tuple(threads))


def _middle(low: ArrayLike, high: ArrayLike) -> Floats:
    return (np.asarray(low, np.float64) + np.asarray(high, np.float64)) / 2


def _share(share: ArrayLike, count: int) -> Floats:
    return np.broadcast_to(np.clip(np.asarray(share, np.float64), 0.0, 1.0), (count,))


@dataclass(frozen=True, slots=True)
class Take:
    """What a finding takes: (m,) pieces that it speaks for, and the share of each it saves.

    `claim`: (m,) which of its claims each piece was taken by, or -1.
    """

    taken: Bools
    claim: Int64s
    low: Floats
    mid: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Pieces:
    """The time line of a rank, cut further at the bounds of claims.

    Attributes:
        edges_ns: (m + 1,) where pieces begin and end.
        leaf: (m,) code of each piece's leaf.
        step: (m,) row of the step whose window it lies in.
        free: (m,) whether it may be claimed: not in a step without a verdict.
        known: (m,) whether claiming it saves anything: not in a step or phase that is labelled
            `unknown`.
        steps: number of steps.
    """

    edges_ns: Int64s
    leaf: NDArray[np.int8]
    step: Int64s
    free: Bools
    known: Bools
    steps: int

    @classmethod
    def of(
        cls, facts: RankFacts, claims: Sequence[Claim], unknown: tuple[Int64s, Int64s]
    ) -> "Pieces":
        """Cut a rank's time line so that no claim begins or ends inside a piece.

        Args:
            facts: the rank; its time line is cut at the bounds of steps and regions already.
            claims: all that will be taken.
            unknown: windows in which nothing is saved, disjoint and in order.
        """
        timeline, steps = facts.timeline, facts.model.steps
        begin, until = facts.span_ns
        bounds = [side for c in claims for side in (c.start_ns, c.end_ns)]
        edges = instants(timeline.edges_ns, *bounds)
        edges = edges[(edges >= begin) & (edges <= until)]
        at = edges[:-1]
        step = np.searchsorted(steps.ts_ns, at, "right") - 1
        trusted = facts.trusted & facts.coverage.has_device
        free = trusted[step] & (at < steps.end_ns[step])
        leaf = timeline.leaf[np.searchsorted(timeline.edges_ns, at, "right") - 1]
        return cls(edges, leaf, step, free, ~covered(*unknown, at), len(steps.ts_ns))

    def take(self, claims: Sequence[Claim]) -> Take:
        """What claims of one finding take together; the first that holds a piece decides."""
        count = len(self.leaf)
        taken, by = np.zeros(count, bool), np.full(count, ABSENT, np.int64)
        shares = np.zeros((3, count))
        for number, one in enumerate(claims):
            inside, row = self._inside(one)
            fresh = inside & ~taken
            for share, values in zip(shares, (one.low, one.mid, one.high), strict=True):
                share[fresh] = values[row[fresh]]
            taken |= fresh
            by[fresh] = number
        return Take(taken, by, *shares)

    def _inside(self, one: Claim) -> tuple[Bools, Int64s]:
        """(m,) whether a claim holds each piece, and in which of its intervals it lies."""
        inside, row = self.within(one)
        return inside & np.isin(self.leaf, [LEAF[name] for name in one.leaves]), row

    def within(self, one: Claim) -> tuple[Bools, Int64s]:
        """(m,) whether each piece lies in a claim's intervals, whatever its leaf, and in which."""
        row = np.searchsorted(one.start_ns, self.edges_ns[:-1], "right") - 1
        inside = self.free & (row >= 0)
        inside[inside] = self.edges_ns[:-1][inside] < one.end_ns[row[inside]]
        return inside, row

    def saved(self, share: Floats, where: Bools) -> Floats:
        """(steps,) nanoseconds saved in each step if pieces are saved by these shares."""
        return self.taken(share, where & self.known)

    def taken(self, share: Floats, where: Bools) -> Floats:
        """(steps,) the same with what lies in windows labelled `unknown`."""
        lengths = np.diff(self.edges_ns) * share * where
        return np.asarray(np.bincount(self.step, lengths, self.steps), np.float64)
