"""The regions of a rank as spans of time, and what happens within them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Bools", "Floats", "Placed", "Running", "Spans", "held_within", "ratio"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spans:
    """(n,) times from a start to an end: first those of steps, then those of phases.

    Attributes:
        start_ns, end_ns: none is empty; those of steps do not overlap, nor do those of phases, and
            both are in order.
        steps: how many of them are steps.
    """

    start_ns: Int64s
    end_ns: Int64s
    steps: int

    @property
    def length_ns(self) -> Int64s:
        """(n,) how long they are."""
        return self.end_ns - self.start_ns

    def place(self, times_ns: Int64s) -> "Placed":
        """In which of them each time lies."""
        found = []
        for low, high in ((0, self.steps), (self.steps, len(self.start_ns))):
            at = np.searchsorted(self.start_ns[low:high], times_ns, "right") - 1 + low
            inside = at >= low
            inside[inside] = times_ns[inside] < self.end_ns[at[inside]]
            found.append(np.where(inside, at, ABSENT))
        return Placed(len(self.start_ns), found[0], found[1])


class Placed(NamedTuple):
    """(k,) things that happen at some time, and in which of n spans; -1 for none."""

    spans: int
    step: Int64s
    phase: Int64s

    def where(self, wanted: Bools) -> "Placed":
        """Some of them."""
        return Placed(self.spans, self.step[wanted], self.phase[wanted])

    def sums(self, weights: ArrayLike = 1.0) -> Floats:
        """(n,) (k,) weights added up, or how many there are."""
        held = np.broadcast_to(np.asarray(weights, np.float64), self.step.shape)
        return self.tables(np.zeros(len(self.step), np.int64), 1, held)[:, 0]

    def tables(self, code: NDArray[Any], codes: int, weights: Floats) -> Floats:
        """(n, codes) (k,) weights added up by (k,) what they are."""
        total = np.zeros(self.spans * codes)
        for at in (self.step, self.phase):
            known = np.flatnonzero(at != ABSENT)
            total += np.bincount(at[known] * codes + code[known], weights[known], len(total))
        return total.reshape(self.spans, codes)

    def highest(self, values: Floats) -> Floats:
        """(n,) the largest of (k,) values; NaN where there is none."""
        found = np.full(self.spans, -np.inf)
        for at in (self.step, self.phase):
            np.maximum.at(found, at[at != ABSENT], values[at != ABSENT])
        return np.where(np.isinf(found), np.nan, found)

    def medians(self, values: Int64s | Floats) -> Floats:
        """(n,) the median of (k,) values; NaN where there is none."""
        found = np.full(self.spans, np.nan)
        order = np.argsort(values, kind="stable")
        small = np.int16 if self.spans < 1 << 15 else np.int64  # numpy sorts 16 bits by radix
        for at in (self.step[order], self.phase[order]):
            rows = order[np.argsort(at.astype(small), kind="stable")]
            count = np.bincount(at + 1, minlength=self.spans + 1)
            first, some = np.cumsum(count[:-1]), np.flatnonzero(count[1:])
            low = first[some] + (count[1:][some] - 1) // 2
            high = first[some] + count[1:][some] // 2
            found[some] = (values[rows[low]] + values[rows[high]]) / 2
        return found


class Running:
    """Intervals, of which any number may run at once; how long they run within spans.

    Up to a time t they have run for as long as all that have started would have until then, without
    what those that have ended would have run since.
    """

    def __init__(self, start_ns: Int64s, end_ns: Int64s, spans: Spans) -> None:
        """Sort (k,) intervals, which are wanted within some spans."""
        zero = int(spans.start_ns.min(initial=0))
        self._sides = []
        for times in (start_ns - zero, end_ns - zero):
            order = np.argsort(times, kind="stable")
            edges = [side - zero for side in (spans.start_ns, spans.end_ns)]
            at = [np.searchsorted(times[order], edge, "right") for edge in edges]
            self._sides.append((order, times[order], list(zip(at, edges, strict=True))))

    def time(self, weights: NDArray[Any] | None = None) -> Floats:
        """(n,) how long they run, in ns, each times its weight.

        Args:
            weights: (k,) truth values, which are counted exactly, or numbers; 1 unless given.
        """
        total: NDArray[Any] = np.zeros((), np.int64)
        for sign, (order, times, edges) in zip((1, -1), self._sides, strict=True):
            held = np.ones(len(times), np.int64) if weights is None else weights[order]
            held = held.astype(np.int64) if held.dtype == np.bool_ else held
            number, sums = (np.append(0, np.cumsum(each)) for each in (held, held * times))
            (first, start), (last, end) = edges
            grown = (number[last] * end - sums[last]) - (number[first] * start - sums[first])
            total = total + sign * grown
        return np.asarray(total, np.float64)


def held_within(start_ns: Int64s, end_ns: Int64s, spans: Spans, values: ArrayLike = 1) -> Floats:
    """(n,) the integral over spans of what holds during (k,) disjoint intervals, in order."""
    held = np.broadcast_to(np.asarray(values), start_ns.shape)
    before = np.concatenate(([0], np.cumsum(held * (end_ns - start_ns))))
    held, ends = np.concatenate(([0], held)), np.concatenate(([0], end_ns))

    def until(times_ns: Int64s) -> NDArray[Any]:
        at = np.searchsorted(start_ns, times_ns, "right")
        return before[at] - np.where(at > 0, held[at] * np.maximum(ends[at] - times_ns, 0), 0)

    return np.asarray(until(spans.end_ns) - until(spans.start_ns), np.float64)


def ratio(part: ArrayLike, whole: ArrayLike) -> Floats:
    """(n,) quotients; NaN where there is nothing to divide by."""
    top, bottom = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    quotients: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return quotients
