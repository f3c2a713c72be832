"""What a wait costs that other work hides.

While a collective waits for a late rank beside a backward pass, the ranks that are there lose
nothing yet. But the collectives that queue behind it all begin later, and what is left of them when
the backward pass is done takes longer: transfers are exposed that would be over by then. So much of
these is due to the late rank as a queue without its waits would end earlier.

A collective without those before it begins when it is launched and what was launched before it is
done: its stream waits for that (`ProcessGroupNCCL::syncStream` of PyTorch).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["delays_ns"]

Floats = NDArray[np.float64]

NEAR_NS = 10_000
"""Work on one stream that begins so soon after what was before it has queued behind it. A choice:
the next kernel of a queue begins within a few us."""

EXPOSED = [LEAF[f"collective_{part}"] for part in ("wait", "transfer", "unsplit")]


class _Queue(NamedTuple):
    """(n,) collectives that queue behind one another on one stream, in order.

    Attributes:
        start_ns, end_ns: of each.
        ready_ns: from when on it could run, if none were before it.
        wait_ns, shown_ns: its wait, and what of that nothing hides.
        open_ns: how long the rank had nothing else to do when it ended.
        known_ns: what of that is exposed waits.
    """

    start_ns: Int64s
    end_ns: Int64s
    ready_ns: Int64s
    wait_ns: Int64s
    shown_ns: Int64s
    open_ns: Int64s
    known_ns: Int64s


def delays_ns(facts: RankFacts, rows: Int64s, waits_ns: Int64s, exposed_ns: Int64s) -> Floats:
    """(n,) exposed transfers that would be over but for the hidden part of each wait.

    Args:
        facts: of the rank that waits, its time line split into waiting and transfer.
        rows: (n,) of the collectives in `Work` that wait.
        waits_ns: (n,) how long each does.
        exposed_ns: (n,) what of it nothing hides.
    """
    work = facts.model.work
    found, waited, shown = np.zeros(len(work.id)), *np.zeros((2, len(work.id)), np.int64)
    waited[rows], shown[rows] = waits_ns, exposed_ns
    every = np.flatnonzero(facts.here & work.kind.where("collective"))
    every = every[np.lexsort((work.ts_ns[every], work.lane[every]))]
    start, end, lane = work.ts_ns[every], work.end_ns[every], work.lane[every]
    parts = (start, end, _ready(facts, every), waited[every], shown[every], *_open(facts, end))
    fresh = (lane[1:] != lane[:-1]) | (start[1:] - end[:-1] > NEAR_NS)
    bounds = [0, *(np.flatnonzero(fresh) + 1).tolist(), len(every)]
    for one, following in pairwise(bounds):
        queue = _Queue(*(part[one:following] for part in parts))
        if (queue.wait_ns > queue.shown_ns).any():
            found[every[one:following]] = _pushed(queue)
    return found[rows]


def _ready(facts: RankFacts, rows: Int64s) -> Int64s:
    """(n,) when each collective is launched, and the kernels launched before it are done."""
    work = facts.model.work
    kernels = np.flatnonzero(facts.kernels & (work.launch_id != ABSENT))
    kernels = kernels[np.argsort(work.launch_ts_ns[kernels], kind="stable")]
    done = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, work.end_ns[kernels]))
    before = np.searchsorted(work.launch_ts_ns[kernels], work.launch_ts_ns[rows], "left")
    ready = np.maximum(work.launch_ts_ns[rows], done[before])
    known = work.launch_id[rows] != ABSENT
    return np.where(known, np.minimum(ready, work.ts_ns[rows]), work.ts_ns[rows])


def _open(facts: RankFacts, end_ns: Int64s) -> tuple[Int64s, Int64s]:
    """(n,) since when a rank does nothing but wait for collectives at the end of each, as a length.

    That is 0 where the rank goes on beside one that is not done: it did not need that. The second
    is what of it is known to be waiting.
    """
    timeline, steps = facts.timeline, facts.model.steps
    edges = timeline.edges_ns
    counted = facts.trusted[np.searchsorted(steps.ts_ns, edges[:-1], "right") - 1]
    exposed = np.isin(timeline.leaf, EXPOSED) & counted
    begins, until = merge(edges[:-1][exposed], edges[1:][exposed])
    if not len(until):
        return np.zeros_like(end_ns), np.zeros_like(end_ns)
    at = np.minimum(np.searchsorted(until, end_ns, "left"), len(until) - 1)
    last = until[at] - end_ns
    opened = np.where((last >= 0) & (last <= NEAR_NS), np.maximum(end_ns - begins[at], 0), 0)
    opened[~_last_of(at, end_ns)] = 0
    return opened, timeline.time_in(("collective_wait",), (end_ns - opened, end_ns))


def _last_of(stretch: Int64s, end_ns: Int64s) -> NDArray[np.bool_]:
    """(n,) whether each collective is the last to end in its stretch: the rank goes on after it."""
    order = np.lexsort((end_ns, stretch))
    found = np.zeros(len(order), np.bool_)
    found[order] = np.diff(stretch[order], append=-1) != 0
    return found


def _pushed(queue: _Queue) -> Floats:
    """(n,) exposed transfers by the wait in the queue that pushed them there.

    A wait that stays exposed is known as such; what the queue ends later beyond that is due to
    hidden ones, in proportion.
    """
    hidden = queue.wait_ns - queue.shown_ns
    before, share = np.cumsum(hidden), np.zeros(len(hidden))
    early, spent = int(queue.start_ns[0]), 0
    for place, (start, end, ready, wait, _, opened, known) in enumerate(_rows(queue)):
        early = min(end, max(early, ready) + end - start - wait)
        gained = min(end - early - spent, opened)
        spent += max(gained, known)
        if gained > known and before[place] > 0:
            share[place] = (gained - known) / before[place]
    return np.asarray(hidden * np.cumsum(share[::-1])[::-1], np.float64)


def _rows(queue: _Queue) -> Iterator[tuple[int, ...]]:
    """One collective after the other, as plain numbers."""
    return zip(*(column.tolist() for column in queue), strict=True)
