"""What several diagnoses ask of the facts, and how they write their sentences."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Evidence

__all__ = [
    "ask",
    "idle_gaps",
    "leaf_ns",
    "materially",
    "per_step",
    "share_of",
    "spell",
    "split_by_step",
    "windows",
    "within",
]

Intervals = tuple[Int64s, Int64s]


def windows(facts: RankFacts) -> Intervals:
    """(steps,) the window of each step."""
    return facts.model.steps.ts_ns, facts.model.steps.end_ns


def within(union: Intervals, bounds: Intervals) -> Int64s:
    """(n,) time that a union (as `merge` gives it) covers between each pair of bounds."""
    starts, ends = union
    before = np.concatenate(([0], np.cumsum(ends - starts)))

    def until(times: Int64s) -> Int64s:
        at = np.searchsorted(starts, times, "right")
        beyond = np.maximum(ends[np.maximum(at - 1, 0)] - times, 0) if len(ends) else 0
        return np.asarray(before[at] - np.where(at > 0, beyond, 0), np.int64)

    return until(bounds[1]) - until(bounds[0])


def leaf_ns(facts: RankFacts, *leaves: str, bounds: Intervals | None = None) -> Int64s:
    """(n,) time in some leaves between each pair of bounds, of each step unless stated."""
    edges = facts.timeline.edges_ns
    wanted = np.isin(facts.timeline.leaf, [LEAF[name] for name in leaves])
    union = merge(edges[:-1][wanted], edges[1:][wanted])
    return within(union, windows(facts) if bounds is None else bounds)


def per_step(facts: RankFacts, total: NDArray[np.number]) -> float:
    """Mean over the steps that have a verdict of a (steps,) figure."""
    return float(total[facts.trusted].mean()) if facts.trusted.any() else 0.0


def materially(facts: RankFacts, time_ns: Int64s, share: float) -> bool:
    """Whether a (steps,) time is that share of the steps that have a verdict."""
    return share_of(facts, time_ns) >= share


def share_of(facts: RankFacts, time_ns: Int64s) -> float:
    """Share of the steps that have a verdict."""
    starts, ends = windows(facts)
    whole = int((ends - starts)[facts.trusted].sum())
    return int(time_ns[facts.trusted].sum()) / whole if whole else 0.0


def split_by_step(facts: RankFacts, intervals: Intervals) -> tuple[Intervals, Int64s]:
    """Cut intervals at the bounds of windows: the parts, and the step of each."""
    parts = []
    for step, (start, end) in enumerate(zip(*windows(facts), strict=True)):
        starts, ends = np.clip(intervals[0], start, end), np.clip(intervals[1], start, end)
        some = ends > starts
        parts.append((starts[some], ends[some], np.full(int(some.sum()), step)))
    starts, ends, steps = (np.concatenate(side) for side in zip(*parts, strict=True))
    return (starts, ends), steps


def idle_gaps(facts: RankFacts) -> Intervals:
    """Times in which nothing runs on the device, each as long as it lasts."""
    edges = facts.timeline.edges_ns
    idle = facts.timeline.active == 0
    return merge(edges[:-1][idle], edges[1:][idle])


def ask(unit: str, value: float, function: str, *arguments: int | str) -> Evidence:
    """A figure, and the call of a function of `perfdiag.evidence` that returns it."""
    sql = f"SELECT {function}({_literals(arguments)}) AS value"
    return Evidence(sql=sql, slices=[], value=float(value), unit=unit)


def _literals(arguments: Iterable[int | str]) -> str:
    quoted = (str(a) if isinstance(a, int) else "'" + a.replace("'", "''") + "'" for a in arguments)
    return ", ".join(quoted)


def spell(time_ns: float) -> str:
    """A duration as it stands in a sentence."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if time_ns >= scale:
            return f"{time_ns / scale:.3g} {unit}"
    return f"{time_ns:.0f} ns"
