"""When a host thread waits, and for what: the device, another thread, a batch, a full queue.

Such time is not the thread's own. In a replay it lasts until what is waited for is done, and no
longer.
"""

import re
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import NEVER
from perfdiag.classifiers.intervals import merge
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.host_ranges import classify_range, marks_step
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Blocked", "Loader", "blocked_times", "issuing_lanes", "loader_of", "typical_launch_ns"]

Bools = NDArray[np.bool_]

HANDED_OVER_NS = 100_000
"""A pause in which another thread may have taken over; a choice: autograd's thread takes 50 to 100
us to wake, and shorter pauses are Python between two operators."""

RESUMES_NS = 1_000_000
"""A thread goes on this soon after the one it waited for, or within a fifth of its pause; a
choice."""

FULL_QUEUE = 500
"""Work that is launched and not done, from which on a long launch waits for a place in the queue,
which holds 1,024 kernels on CUDA; half of that, because one launch may fill several places."""

SLOW = 2
"""Times as long as usual that a launch takes if it waits for a place in the queue; a choice."""

_RELEASES = re.compile(r"^(?!.*(?:Async|AddressFree)).*(?:Free|Unmap)")

LONG_CALL_NS = 50_000
"""A launch or an allocation that takes longer than this may wait for the device; a choice."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Times in which host threads wait.

    A wait for what is there already takes no time, but would if the thread came earlier.

    Attributes:
        lane: (n,) of the thread.
        begin_ns, until_ns: (n,) from when, and when what it waits for is done.
        work: (n,) row of the device work that it waits for the end of, or -1.
        start_of: (n,) row of the device work that it waits for the start of, or -1.
        by_lane: (n,) the thread that it waits for, or -1.
        batch: (n,) the number of the batch that it waits for, or -1.
    """

    lane: Int64s
    begin_ns: Int64s
    until_ns: Int64s
    work: Int64s
    start_of: Int64s
    by_lane: Int64s
    batch: Int64s

    @classmethod
    def of(
        cls,
        lane: Int64s,
        begin_ns: Int64s,
        until_ns: Int64s,
        *,
        work: Int64s | None = None,
        start_of: Int64s | None = None,
        by_lane: Int64s | None = None,
        batch: Int64s | None = None,
    ) -> "Blocked":
        """Waits of one kind."""
        absent = np.full(len(lane), ABSENT, np.int64)
        given = (work, start_of, by_lane, batch)
        on = [absent if column is None else column for column in given]
        return cls(lane, begin_ns, np.maximum(until_ns, begin_ns), *on)

    def joined(self, *others: "Blocked") -> "Blocked":
        """These and others together."""
        return Blocked(
            *(
                np.concatenate([getattr(one, each.name) for one in (self, *others)])
                for each in fields(self)
            )
        )

    def of_lane(self, lane: int) -> "Blocked":
        """Those of one thread."""
        mine = self.lane == lane
        return Blocked(*(getattr(self, each.name)[mine] for each in fields(self)))


def issuing_lanes(facts: RankFacts) -> list[int]:
    """The threads that launch device work, and the one that bears the steps."""
    lanes = facts.model.work.launch_lane
    found: list[int] = np.union1d(lanes[lanes != ABSENT], [facts.states.main_lane]).tolist()
    return found


def typical_launch_ns(model: Model) -> int:
    """How long a launching call takes that waits for nothing: a tenth of them take less."""
    work = model.work
    length = (work.launch_end_ns - work.launch_ts_ns)[work.launch_id != ABSENT]
    return int(np.percentile(length, 10)) if len(length) else 0


def blocked_times(facts: RankFacts, loader: "Loader | None") -> Blocked:
    """All waits of the threads that launch work.

    Args:
        facts: the rank.
        loader: what loads for it in processes of its own.
    """
    waits = _for_device(facts).joined(_for_queue(facts), _for_threads(facts))
    return waits if loader is None else waits.joined(_for_batches(loader))


def _for_device(facts: RankFacts) -> Blocked:
    """Calls that return when the device has caught up.

    For what exactly is not recorded: the work that ended last inside the call and was launched
    before it; for a copy that blocks, the copy itself.
    """
    model = facts.model
    work, calls = model.work, model.calls
    lanes = issuing_lanes(facts)
    gives, alloc = _gives_back(model), calls.role.where("alloc")
    long_alloc = alloc & (gives | (calls.end_ns - calls.ts_ns > LONG_CALL_NS))
    own = _own_work(model)
    waits = calls.role.where("sync") | _outlasts(model, own) | long_alloc
    rows = np.flatnonzero(waits & np.isin(calls.lane, lanes))
    own = own[rows]
    if len(own) and len(work.id):
        own[work.end_ns[own] > calls.end_ns[rows]] = ABSENT
    by_end = np.argsort(work.end_ns, kind="stable")
    at = np.searchsorted(work.end_ns[by_end], calls.end_ns[rows], "right") - 1
    source = np.where(own != ABSENT, own, _launched_before(model, by_end, at, calls.ts_ns[rows]))
    found = source != ABSENT
    rows, source, own = rows[found], source[found], own[found]
    launched = np.minimum(calls.ts_ns[rows] + typical_launch_ns(model), work.ts_ns[source])
    begin = np.where(own != ABSENT, np.maximum(launched, calls.ts_ns[rows] + 1), calls.ts_ns[rows])
    drained = work.end_ns[source] <= begin
    # A release first waits and then takes its time, which others lie under when it has to wait.
    since = np.where(alloc[rows], calls.ts_ns[rows] + 1, calls.end_ns[rows])
    begin = np.where(drained, np.minimum(since, calls.end_ns[rows]), begin)
    until = np.clip(work.end_ns[source], begin, calls.end_ns[rows])
    mostly = 2 * (until - begin) >= calls.end_ns[rows] - calls.ts_ns[rows]
    does = mostly | ~(alloc & ~gives)[rows]
    return Blocked.of(calls.lane[rows][does], begin[does], until[does], work=source[does])


def _gives_back(model: Model) -> Bools:
    """(calls,) those that release memory: they wait for the device, unless a stream orders them.

    Allocations may (CUDA C++ Programming Guide, "Implicit Synchronization"): where that explains
    most of the time that they take.
    """
    found = model.calls.api.map(lambda api: bool(_RELEASES.search(api)), np.bool_)
    return np.asarray(found, np.bool_)


def _own_work(model: Model) -> Int64s:
    """(calls,) the last work that each call launched itself, or -1."""
    work, calls = model.work, model.calls
    if not len(work.id):
        return np.full(len(calls.id), ABSENT, np.int64)
    order = np.lexsort((work.end_ns, work.launch_id))
    at = np.searchsorted(work.launch_id[order], calls.id, "right") - 1
    row = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (work.launch_id[row] == calls.id), row, ABSENT)


def _outlasts(model: Model, own: Int64s) -> Bools:
    """(calls,) copies that are done when their call returns: it has waited for them.

    So do copies to and from pageable memory (CUDA API, "API synchronization behavior").
    """
    copies = model.calls.role.where("copy") & (own != ABSENT)
    done = model.work.end_ns[own] if len(model.work.id) else model.calls.end_ns
    return np.asarray(copies & (model.calls.end_ns >= done), np.bool_)


MOST_BACK = 64
"""Work that ended before a call did, and is looked at for what the call waited for."""


def _launched_before(model: Model, by_end: Int64s, at: Int64s, before_ns: Int64s) -> Int64s:
    """(n,) of the work that has ended, the last that was launched before a time, or -1."""
    work, found = model.work, np.full(len(at), ABSENT, np.int64)
    at = at.copy()
    for _ in range(MOST_BACK):
        open_ = np.flatnonzero((found == ABSENT) & (at >= 0))
        if not len(open_):
            break
        row = by_end[at[open_]]
        launched = np.where(work.launch_id[row] != ABSENT, work.launch_ts_ns[row], NEVER)
        fits = launched < before_ns[open_]
        found[open_[fits]] = row[fits]
        at[open_] -= 1
    return found


def _for_queue(facts: RankFacts) -> Blocked:
    """Launches that wait for a place in the queue: until some work on their stream starts."""
    work, usual = facts.model.work, typical_launch_ns(facts.model)
    rows = np.flatnonzero(work.launch_end_ns - work.launch_ts_ns > SLOW * usual)
    _, first = np.unique(work.launch_id[rows], return_index=True)
    parts = []
    for lane in np.unique(work.lane[rows]).tolist():
        mine = np.flatnonzero(work.lane == lane)
        calls = rows[first][work.lane[rows[first]] == lane]
        started = np.searchsorted(work.ts_ns[mine], work.launch_end_ns[calls], "right") - 1
        launched = np.searchsorted(np.sort(work.launch_ts_ns[mine]), work.launch_ts_ns[calls])
        full = (launched - started > FULL_QUEUE) & (started >= 0)
        calls, source = calls[full], mine[started[full]]
        begin = work.launch_ts_ns[calls] + usual
        until = np.minimum(work.launch_end_ns[calls], work.ts_ns[source])
        parts.append(Blocked.of(work.launch_lane[calls], begin, until, start_of=source))
    none = np.empty(0, np.int64)
    return Blocked.of(none, none, none).joined(*parts)


def _for_threads(facts: RankFacts) -> Blocked:
    """Pauses of a thread while another one works, that end when that one pauses in turn.

    So the thread that calls `backward()` waits for autograd's, and that one for the next step.
    """
    lanes = issuing_lanes(facts)
    busy = {lane: _activity(facts, lane) for lane in lanes}
    parts = []
    for lane in lanes:
        until = busy[lane][0]
        begin = np.append(NEVER, busy[lane][1])[: len(until)]
        ended, by = np.full(len(until), NEVER), np.full(len(until), ABSENT, np.int64)
        for other in lanes:
            handed = _handed_over(busy[other], begin, until) if other != lane else ended
            by[handed > ended] = other
            ended = np.maximum(ended, handed)
        some = by != ABSENT
        begin = np.where(begin == NEVER, ended - 1, begin)
        where = np.full(int(some.sum()), lane, np.int64)
        parts.append(Blocked.of(where, begin[some], ended[some], by_lane=by[some]))
    return parts[0].joined(*parts[1:])


def _handed_over(busy: tuple[Int64s, Int64s], begin: Int64s, until: Int64s) -> Int64s:
    """(n,) when another thread last worked before a pause ended, if it then paused; else never."""
    if not len(busy[0]):
        return np.full(len(until), NEVER)
    at = np.searchsorted(busy[1], until, "right") - 1
    ended = busy[1][np.maximum(at, 0)]
    follows = np.append(busy[0], np.iinfo(np.int64).max)[at + 1]
    soon = np.maximum(RESUMES_NS, (until - np.maximum(begin, 0)) // 5)
    paused = until - begin >= HANDED_OVER_NS
    handed = paused & (at >= 0) & (ended > begin) & (follows >= until) & (until - ended <= soon)
    return np.where(handed, ended, NEVER)


def _activity(facts: RankFacts, lane: int) -> tuple[Int64s, Int64s]:
    """When a thread is inside an operator or a call, or begins or ends a step."""
    hosts, calls = facts.model.hosts, facts.model.calls
    marks = np.empty(0, np.int64)
    if lane == facts.states.main_lane:
        steps = facts.model.steps
        marks = np.concatenate((steps.host_ts_ns, steps.host_end_ns))
    ops = (hosts.lane == lane) & hosts.kind.where("host_op") & ~hosts.name.map(marks_step, np.bool_)
    made = calls.lane == lane
    return merge(
        np.concatenate((hosts.ts_ns[ops], calls.ts_ns[made], marks)),
        np.concatenate((hosts.end_ns[ops], calls.end_ns[made], marks + 1)),
    )


def _for_batches(loader: "Loader") -> Blocked:
    """Batches, from when they are asked for until they come."""
    lane = np.full(len(loader.waited), loader.lane, np.int64)
    quick = np.where(loader.waited, loader.asked_ns + loader.quick_ns, loader.came_ns)
    return Blocked.of(lane, quick, loader.came_ns, batch=np.arange(len(lane)))


class Loader(NamedTuple):
    """Batches that processes of their own bring: (b,) when each was asked for and came.

    `waited`: (b,) whether the thread waited for it.
    """

    lane: int
    asked_ns: Int64s
    came_ns: Int64s
    waited: Bools
    quick_ns: int


_OWN_PROCESSES = re.compile(r"MultiProcessing|prefetch", re.IGNORECASE)


def loader_of(facts: RankFacts) -> Loader | None:
    """The batches of the main thread's loader, if it loads ahead; None where it does not.

    A loader that works in the thread itself is like any other work of that thread.
    """
    hosts, lane = facts.model.hosts, facts.states.main_lane
    ahead = hosts.name.map(
        lambda name: classify_range(name) == "input" and bool(_OWN_PROCESSES.search(name)), np.bool_
    )
    rows = np.flatnonzero(ahead & (hosts.lane == lane))
    if not len(rows):
        return None
    # A batch that is there at once may take no time at all: it counts as well.
    starts, ends = merge(hosts.ts_ns[rows], np.maximum(hosts.end_ns[rows], hosts.ts_ns[rows] + 1))
    length = ends - starts
    quick = min(int(length.min()), HANDED_OVER_NS)
    return Loader(lane, starts, ends, length > 2 * max(quick, 1), quick)
