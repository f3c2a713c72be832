"""What several diagnoses ask of the facts, and how they write their sentences."""

from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.diagnosis import Proof, Spot, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.classifiers.intervals import cut, merge
from perfdiag.profiler.model import Calls, Hosts, Work
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = [
    "HOST_IDLE",
    "LAUNCHING",
    "LONG_GAP",
    "Intervals",
    "ask",
    "computing_without",
    "count_by_step",
    "count_of",
    "host_time",
    "idle_before",
    "issuing",
    "joined",
    "lane_name",
    "leaf_in",
    "leaf_ns",
    "longest",
    "mask_of",
    "per_step",
    "ranges",
    "share_of",
    "spell",
    "split_by_step",
    "step_at",
    "threads_of",
    "union_of",
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
    parts = cut(intervals, windows(facts))
    order = np.argsort(parts.window, kind="stable")
    return (parts.start_ns[order], parts.end_ns[order]), parts.window[order]


def leaf_in(facts: RankFacts, intervals: Intervals, *leaves: str) -> Int64s:
    """(steps,) time in some leaves inside intervals that do not overlap."""
    parts, step = split_by_step(facts, intervals)
    time = np.bincount(step, leaf_ns(facts, *leaves, bounds=parts), len(facts.model.steps.ts_ns))
    return time.astype(np.int64)


def computing_without(facts: RankFacts, other: Literal["collective", "copy"]) -> Int64s:
    """(steps,) time in which kernels run and hide nothing of another kind yet."""
    bits = 1 | {"collective": 2, "copy": 4}[other]
    edges, alone = facts.timeline.edges_ns, (facts.timeline.active & bits) == 1
    return within(merge(edges[:-1][alone], edges[1:][alone]), windows(facts))


HOST_IDLE = ("launch", "sync", "host_other")
"""Leaves of idle time in which the host is at work, loading apart."""

LAUNCHING = ("launch", "host_other")
"""Those in which it works towards the next launch. Waiting for the device is not meant: it ends
with the same launches."""

LONG_GAP = Threshold(
    1_000_000, "ns", "nsys-ai 0.3.0 reports gaps above 1 ms as a cause of their own"
)


def issuing(facts: RankFacts) -> NDArray[np.bool_]:
    """(hosts,) the ranges of threads that launch work: what others do costs no launch."""
    lanes = np.append(np.unique(facts.model.work.launch_lane), facts.states.main_lane)
    return np.isin(facts.model.hosts.lane, lanes)


def ranges(facts: RankFacts, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
    """(hosts,) ranges of threads that launch work whose name is wanted; asked once a name."""
    return np.asarray(issuing(facts) & facts.origins.named(wanted), np.bool_)


def union_of(of: Work | Calls | Hosts, rows: NDArray[np.bool_]) -> Intervals:
    """The union of the times of some slices, for `leaf_in` and `claim`."""
    return merge(of.ts_ns[rows], of.end_ns[rows])


def joined(*unions: Intervals) -> Intervals:
    """The union of several sets of intervals, of none as well."""
    starts, ends = zip(_NOTHING, *unions, strict=True)
    return merge(np.concatenate(starts), np.concatenate(ends))


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64))


def mask_of(rows: Int64s, count: int) -> NDArray[np.bool_]:
    """(count,) whether each row is one of some."""
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask


def step_at(facts: RankFacts, times_ns: Int64s) -> Int64s:
    """(n,) row of the step in whose window each time lies, -1 for none."""
    starts, ends = windows(facts)
    step = np.searchsorted(starts, times_ns, "right") - 1
    return np.where((step >= 0) & (times_ns < ends[step]), step, ABSENT)


def count_by_step(facts: RankFacts, of: Work | Calls, rows: NDArray[np.bool_]) -> Int64s:
    """(steps,) how many of some slices begin in each step."""
    step = step_at(facts, of.ts_ns[rows])
    return np.bincount(step[step != ABSENT], minlength=len(facts.trusted)).astype(np.int64)


def idle_before(facts: RankFacts, chosen: NDArray[np.bool_]) -> Intervals:
    """The idle times that some work ends: what would not be waited for without it.

    Args:
        facts: the rank.
        chosen: (work,) on the device of the budget. A gap that other work ends as well is none.
    """
    work = facts.model.work
    starts, ends = facts.idle_gaps
    others = work.ts_ns[facts.here & ~chosen]
    mine = np.isin(ends, work.ts_ns[facts.here & chosen]) & ~np.isin(ends, others)
    return starts[mine], ends[mine]


def host_time(facts: RankFacts, state: HostState) -> Intervals:
    """The union over all host lanes of the times in one state."""
    return joined(*(by[state] for by in facts.states.unions.values()))


def threads_of(facts: RankFacts, ranges: NDArray[np.bool_]) -> list[int]:
    """The lanes of some ranges of the host, by (hosts,) which."""
    lanes: list[int] = np.unique(facts.model.hosts.lane[ranges]).tolist()
    return lanes


def lane_name(facts: RankFacts, lane: int) -> str:
    """What a sentence calls a lane."""
    return facts.model.lanes.name.get(lane, f"lane {lane}").strip()


def ask(
    unit: str, value: float, function: str, *arguments: int | str, spots: tuple[Spot, ...] = ()
) -> Proof:
    """A figure, the call of a function of `perfdiag.evidence` that returns it, and its slices."""
    sql = f"SELECT {function}({_literals(arguments)}) AS value"
    return Proof(sql, float(value), unit, spots)


MOST_SPOTS = 20
"""Slices that are named for a figure: enough to look at."""


def longest(of: Work | Calls | Hosts, rows: Int64s | NDArray[np.bool_]) -> tuple[Spot, ...]:
    """The longest of some slices, for `ask`.

    Args:
        of: the table, such as `facts.model.work`.
        rows: which of its rows, as indices or a mask.
    """
    index = np.flatnonzero(rows) if rows.dtype == bool else rows
    length = of.end_ns[index] - of.ts_ns[index]
    kept = index[np.argsort(-length, kind="stable")[:MOST_SPOTS]]
    columns = (of.lane[kept].tolist(), of.ts_ns[kept].tolist(), of.end_ns[kept].tolist())
    return tuple(Spot(*spot) for spot in zip(*columns, strict=True))


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
