"""What several diagnoses ask of the facts, and how they write their sentences."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Evidence

__all__ = [
    "Intervals",
    "ask",
    "count_of",
    "host_time",
    "idle_gaps",
    "leaf_in",
    "leaf_ns",
    "longest_range",
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


def share_of(facts: RankFacts, time_ns: Int64s) -> float:
    """What a (steps,) time is of the steps that have a verdict."""
    starts, ends = windows(facts)
    whole = int((ends - starts)[facts.trusted].sum())
    return int(time_ns[facts.trusted].sum()) / whole if whole else 0.0


def split_by_step(facts: RankFacts, intervals: Intervals) -> tuple[Intervals, Int64s]:
    """Cut intervals at the bounds of windows: the parts, and the step of each."""
    begins, ends = windows(facts)
    first = np.searchsorted(ends, intervals[0], "right")
    count = np.maximum(np.searchsorted(begins, intervals[1], "left") - first, 0)
    row = np.repeat(np.arange(len(count)), count)
    step = (
        np.repeat(first, count) + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    )
    starts = np.maximum(intervals[0][row], begins[step])
    stops = np.minimum(intervals[1][row], ends[step])
    some = stops > starts
    order = np.argsort(step[some], kind="stable")
    return (starts[some][order], stops[some][order]), step[some][order]


def leaf_in(facts: RankFacts, intervals: Intervals, *leaves: str) -> Int64s:
    """(steps,) time in some leaves inside intervals that do not overlap."""
    parts, step = split_by_step(facts, intervals)
    time = np.bincount(step, leaf_ns(facts, *leaves, bounds=parts), len(facts.model.steps.ts_ns))
    return time.astype(np.int64)


def idle_gaps(facts: RankFacts) -> Intervals:
    """Times in which nothing runs on the device, each as long as it lasts."""
    edges = facts.timeline.edges_ns
    idle = facts.timeline.active == 0
    return merge(edges[:-1][idle], edges[1:][idle])


def longest_range(facts: RankFacts, wanted: NDArray[np.bool_]) -> tuple[str, int, int]:
    """Name, total time and number of the ranges that take longest, of those that start in steps.

    Args:
        facts: the rank.
        wanted: (hosts,) which to look at.
    """
    hosts, steps = facts.model.hosts, facts.model.steps
    step = np.searchsorted(steps.ts_ns, hosts.ts_ns, "right") - 1
    chosen = wanted & (step >= 0) & (hosts.ts_ns < steps.end_ns[step])
    if not chosen.any():
        return "", 0, 0
    codes, length = hosts.name.codes[chosen], (hosts.end_ns - hosts.ts_ns)[chosen]
    longest = int(np.argmax(np.bincount(codes, length)))
    mine = codes == longest
    return hosts.name.texts[longest], int(length[mine].sum()), int(mine.sum())


def host_time(facts: RankFacts, state: HostState) -> Intervals:
    """The union over all host lanes of the times in one state."""
    unions = [by[state] for by in facts.states.unions.values()]
    if not unions:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts, ends = (np.concatenate(side) for side in zip(*unions, strict=True))
    return merge(starts, ends)


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


def count_of(number: int, one: str, many: str = "") -> str:
    """A number with its noun; the plural takes an s unless it is given."""
    return f"{number} {one if number == 1 else many or one + 's'}"
