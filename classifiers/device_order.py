"""What device work waits for: its launch, its stream, and events of other streams.

Which event a stream waits for is seldom recorded. A launch after a call that makes its stream wait
depends on what another stream had been given when the event before that call was recorded; and work
that starts late for no other reason waits for what ended just before on another stream.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.blocking import LONG_CALL_NS
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import NEVER
from perfdiag.classifiers.idle import ENOUGH, usual_latency_ns
from perfdiag.classifiers.intervals import merge
from perfdiag.profiler.model import Work
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["DeviceOrder", "order_devices"]

Bools = NDArray[np.bool_]

PROMPT_NS = 20_000
"""Work starts this soon after what it waited for. A choice: CUDA takes 1 to 5 us between kernels,
ROCm up to 20."""

LATE = 3
"""Times the usual latency up to which a launch alone explains when work starts; a choice."""

TOLD_NS = 200_000
"""The same where a call says that it waited: collectives take 130 us to begin in a job on V100."""


@dataclass(frozen=True, slots=True)
class DeviceOrder:
    """Delays of all device work, by row of `Work`.

    Attributes:
        gap_ns: (work,) least time after the work before it on its stream.
        lag_ns: (work,) from its launch to its start.
        from_start: (work,) whether that counts from the start of the launching call.
        source, target: (e,) rows: the target waits for the end of the source.
        cross_ns: (e,) and starts that much later.
        inferred: how many of these no call tells, only the time.
        unexplained_ns: how much later than all that work starts, in all.
    """

    gap_ns: Int64s
    lag_ns: Int64s
    from_start: Bools
    source: Int64s
    target: Int64s
    cross_ns: Int64s
    inferred: int
    unexplained_ns: int


class _Seen(NamedTuple):
    """(work,) what was recorded of the time before each start.

    `before`: row before it on its stream, or -1; `own_ns`: time since that one's end;
    `latency_ns`: since its launch; `linked`: whether a launch is there; `inside`: launched by the
    same call as the one before.
    """

    before: Int64s
    own_ns: Int64s
    latency_ns: Int64s
    linked: Bools
    inside: Bools


def order_devices(facts: RankFacts) -> DeviceOrder:
    """Tell what each piece of device work waited for."""
    work = facts.model.work
    seen = _seen(work)
    usual = _usual_latency(work, seen)
    most = max(LATE * usual, PROMPT_NS)
    ready = seen.linked & ~seen.inside
    queued = ready & (seen.before != ABSENT) & (seen.latency_ns - seen.own_ns >= usual)
    follows = ~ready | (queued & (seen.own_ns <= PROMPT_NS))
    gap = _usual_gap(seen, queued)
    long_ = work.launch_end_ns - work.launch_ts_ns > LONG_CALL_NS
    long_ &= work.ts_ns >= work.launch_end_ns
    late = np.where(long_, work.ts_ns - work.launch_end_ns, seen.latency_ns)
    launched = ready & ~queued & (late <= most)
    told = _told(facts, ready)
    soon = work.ts_ns[told[1]] - work.end_ns[told[0]] <= TOLD_NS
    open_ = ~(follows | launched)
    open_[told[1][soon]] = False
    guessed = _guessed(work, open_)
    open_[guessed[1]] = False
    ready_ns = np.maximum(work.ts_ns - seen.own_ns, work.ts_ns - seen.latency_ns)
    crowded = _crowded(facts, open_, ready_ns)
    open_[crowded[1]] = False
    source, target = (np.concatenate(side) for side in zip(told, guessed, crowded, strict=True))
    since = work.ts_ns[target] - work.end_ns[source]
    binding = ~(follows | launched)[target] & (since <= TOLD_NS)
    return DeviceOrder(
        np.where(follows & (seen.before != ABSENT), seen.own_ns, np.minimum(gap, seen.own_ns)),
        np.where(launched, late, np.minimum(usual, late)),
        ~long_,
        source,
        target,
        np.where(binding, since, 0),
        len(guessed[0]) + len(crowded[0]),
        int((work.ts_ns - ready_ns)[open_].sum()),
    )


def _seen(work: Work) -> _Seen:
    order = np.lexsort((work.ts_ns, work.lane))
    first = np.diff(work.lane[order], prepend=-1) != 0
    before = np.full(len(order), ABSENT, np.int64)
    before[order] = np.where(first, ABSENT, np.roll(order, 1))
    linked = work.launch_id != ABSENT
    has = before != ABSENT
    own = np.where(has, work.ts_ns - work.end_ns[before], np.iinfo(np.int64).max // 4)
    inside = has & linked & (work.launch_id[before] == work.launch_id)
    latency = np.where(linked, work.ts_ns - work.launch_ts_ns, 0)
    return _Seen(before, own, latency, linked, inside)


def _usual_latency(work: Work, seen: _Seen) -> int:
    """From a launch to its start where the stream was idle."""
    idle = seen.linked & ~seen.inside & (seen.own_ns > seen.latency_ns)
    idle &= work.launch_end_ns - work.launch_ts_ns <= LONG_CALL_NS
    return usual_latency_ns(seen.latency_ns[idle])


def _usual_gap(seen: _Seen, queued: Bools) -> int:
    """The median between two pieces of work of which the second was launched long before."""
    found = seen.own_ns[queued & (seen.own_ns >= 0) & (seen.own_ns <= PROMPT_NS)]
    return int(np.median(found)) if len(found) >= ENOUGH else 0


_WAITS = re.compile(
    r"StreamWait(?:Event|Value)|[wW]aitOnEvent|EnqueueEventsWait|AppendWaitOnEvents"
)
_RECORDS = re.compile(r"EventRecord|[rR]ecordEvent|AppendSignalEvent")


def _told(facts: RankFacts, ready: Bools) -> tuple[Int64s, Int64s]:
    """Rows of work, and of what they wait for because a call before their launch says so."""
    work, calls = facts.model.work, facts.model.calls
    waits = calls.api.map(lambda name: bool(_WAITS.search(name)), np.bool_)
    records = calls.api.map(lambda name: bool(_RECORDS.search(name)), np.bool_)
    sources, targets = [], []
    for thread in np.unique(calls.lane[waits]).tolist():
        asked = np.sort(calls.ts_ns[waits & (calls.lane == thread)])
        mine = _launched_next(work, np.flatnonzero(ready), thread, asked)
        marked = np.sort(calls.ts_ns[records & (calls.lane == thread)])
        target = _after_waits(work, mine, asked)
        at = np.searchsorted(asked, work.launch_ts_ns[target]) - 1
        event = np.searchsorted(marked, asked[at], "right") - 1
        until = np.where(event >= 0, np.append(marked, 0)[event], asked[at])
        source = _last_given(work, np.flatnonzero(ready), target, until)
        sources.append(source[source != ABSENT])
        targets.append(target[source != ABSENT])
    none = np.empty(0, np.int64)
    return np.concatenate((none, *sources)), np.concatenate((none, *targets))


def _launched_next(work: Work, given: Int64s, thread: int, asked: Int64s) -> Int64s:
    """What a thread launches, or another one after it has made a stream wait and handed over.

    In the order of launches, and on streams that the thread uses itself. So autograd's thread makes
    a stream wait for all-reduces, and the main thread launches the optimizer on it.
    """
    order = given[np.argsort(work.launch_ts_ns[given], kind="stable")]
    launched, own = work.launch_ts_ns[order], work.launch_lane[order] == thread
    before = np.append(NEVER, launched[own])[np.searchsorted(launched[own], launched)]
    waited = np.append(NEVER, asked)[np.searchsorted(asked, launched)]
    its = np.isin(work.lane[order], work.lane[order[own]])
    found: Int64s = order[own | (its & (waited > before))]
    return found


def _after_waits(work: Work, mine: Int64s, asked: Int64s) -> Int64s:
    """Of some work, what was launched first on any stream after each call that makes one wait."""
    at = np.searchsorted(asked, work.launch_ts_ns[mine])
    order = np.lexsort((work.launch_ts_ns[mine], work.lane[mine]))
    lane = work.lane[mine][order]
    same = np.diff(lane, prepend=-1) == 0
    fresh = np.diff(at[order], prepend=0) > 0
    first = np.where(same, fresh, at[order] > 0)
    return mine[np.sort(order[first])]


def _last_given(work: Work, given: Int64s, target: Int64s, until_ns: Int64s) -> Int64s:
    """(n,) the last work that other streams had been given until some times, and have done; or -1.

    Work that ends after the target starts is not what it waited for.
    """
    best = np.full(len(target), ABSENT, np.int64)
    launched = np.full(len(target), -1, np.int64)
    for lane in np.unique(work.lane[given]).tolist():
        rows = given[work.lane[given] == lane]
        rows = rows[np.argsort(work.launch_ts_ns[rows], kind="stable")]
        at = np.searchsorted(work.launch_ts_ns[rows], until_ns) - 1
        row = rows[np.maximum(at, 0)]
        fits = (at >= 0) & (work.lane[target] != lane) & (work.end_ns[row] <= work.ts_ns[target])
        fits &= (work.launch_ts_ns[row] > launched) & (work.device[row] == work.device[target])
        best[fits], launched[fits] = row[fits], work.launch_ts_ns[row][fits]
    return best


def _guessed(work: Work, open_: Bools) -> tuple[Int64s, Int64s]:
    """Rows of work without a reason to start when it does, and what ended just before elsewhere."""
    target = np.flatnonzero(open_)
    by_end = np.argsort(work.end_ns, kind="stable")
    at = np.searchsorted(work.end_ns[by_end], work.ts_ns[target], "right") - 1
    row = by_end[np.maximum(at, 0)] if len(by_end) else target
    fits = (at >= 0) & (work.ts_ns[target] - work.end_ns[row] <= PROMPT_NS)
    fits &= (work.ts_ns[row] < work.ts_ns[target]) & (work.lane[row] != work.lane[target])
    fits &= (work.device[row] == work.device[target]) & _launched_first(work, row, target)
    return row[fits], target[fits]


def _crowded(facts: RankFacts, open_: Bools, ready_ns: Int64s) -> tuple[Int64s, Int64s]:
    """Rows of work that starts while other work runs, and of that work, where it holds the device.

    A kernel whose blocks find no place starts when those of another one are nearly done: other
    streams were busy from the moment at which it was ready on.
    """
    work = facts.model.work
    target = np.flatnonzero(open_)
    since = np.full(len(target), np.iinfo(np.int64).max)
    for device in np.unique(work.device[target]).tolist():
        here, mine = work.device == device, work.device[target] == device
        begins, _ = merge(work.ts_ns[here], work.end_ns[here])
        at = np.searchsorted(begins, work.ts_ns[target[mine]], "right") - 1
        since[mine] = np.append(begins, since[:1])[at]
    row = _running(work, target)
    fits = (since <= ready_ns[target] + PROMPT_NS) & (row != ABSENT)
    fits &= _launched_first(work, row, target)
    return row[fits], target[fits]


def _launched_first(work: Work, row: Int64s, target: Int64s) -> Bools:
    """(n,) whether some work was launched before other work: it cannot have waited for it else."""
    return np.asarray(work.launch_ts_ns[row] <= work.launch_ts_ns[target], np.bool_)


def _running(work: Work, target: Int64s) -> Int64s:
    """(n,) of the work that runs on other streams of its device when each row starts, the longest.

    -1 where none does.
    """
    found = np.full(len(target), ABSENT, np.int64)
    best = np.zeros(len(target), np.int64)
    for lane in np.unique(work.lane).tolist():
        rows = np.flatnonzero(work.lane == lane)
        at = np.searchsorted(work.ts_ns[rows], work.ts_ns[target], "left") - 1
        row = rows[np.maximum(at, 0)]
        fits = (at >= 0) & (work.lane[target] != lane) & (work.device[row] == work.device[target])
        fits &= (work.end_ns[row] > work.ts_ns[target]) & ((work.end_ns - work.ts_ns)[row] > best)
        found[fits], best[fits] = row[fits], (work.end_ns - work.ts_ns)[row][fits]
    return found
