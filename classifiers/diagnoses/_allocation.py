"""Allocations of memory within steps, and those that had to be tried twice."""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._calls import after_the_first, of_launchers
from perfdiag.classifiers.diagnoses._shared import count_by_step, mask_of
from perfdiag.classifiers.diagnosis import Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Calls
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["REPEATED", "allocating", "recurs", "retries", "steps_at_the_limit"]

Bools = NDArray[np.bool_]

REPEATED = Threshold(
    2, "steps", "a choice: what start-up allocates is gone in the second half of a trace"
)
"""In how many steps of the second half something must occur to be a habit."""

_TAKES = re.compile(
    r"(?:cuda|hip)(?:Ext)?Malloc(?!Async|Host)|(?:cu|hip)Mem(?:Alloc(?!Host)|Create)"
)
_GIVES = re.compile(r"(?:cuda|hip)Free(?!Async|Host)|(?:cu|hip)Mem(?:Free(?!Host)|Unmap|Release)")


def allocating(facts: RankFacts) -> Bools:
    """(calls,) allocations and releases of memory by threads that launch work."""
    return np.asarray(of_launchers(facts) & facts.model.calls.role.where("alloc"), np.bool_)


def retries(facts: RankFacts) -> Bools:
    """(calls,) of allocations that succeed only after memory has been given back.

    An allocator that finds no memory gives back what it keeps, and tries again: within one
    operator an allocation, releases, and another allocation, with no launch between.
    """
    calls, ops = facts.model.calls, facts.origins.call_op
    order, takes, gives = _sequence(calls)
    after = _next_other(gives)
    first = np.flatnonzero(takes[:-1] & gives[1:]) if len(order) else order
    last = after[first + 1]
    first, last = first[last < len(order)], last[last < len(order)]
    same = takes[last] & (calls.lane[order[first]] == calls.lane[order[last]])
    same &= (ops[order[first]] == ops[order[last]]) & (ops[order[first]] != ABSENT)
    found = np.zeros(len(order) + 1, np.int64)
    np.add.at(found, first[same], 1)
    np.add.at(found, last[same] + 1, -1)
    return mask_of(order[np.cumsum(found)[:-1] > 0], len(calls.id))


def steps_at_the_limit(facts: RankFacts, least: float) -> Bools:
    """(steps,) those with retries, the first one apart; none where they are no habit."""
    calls = facts.model.calls
    having = count_by_step(facts, calls, retries(facts) & of_launchers(facts)) > 0
    having &= after_the_first(facts)
    return having & recurs(having, least)


def recurs(having: Bools, least: float) -> bool:
    """Whether something occurs in some steps of the second half."""
    return int(having[len(having) // 2 :].sum()) >= least


def _sequence(calls: Calls) -> tuple[Int64s, Bools, Bools]:
    """Calls that launch, take or give back device memory, by lane and time."""
    takes = calls.api.map(lambda api: bool(_TAKES.match(api)), np.bool_)
    gives = calls.api.map(lambda api: bool(_GIVES.match(api)), np.bool_)
    launches = calls.role.where("launch", "graph_launch", "copy", "fill")
    rows = np.flatnonzero(takes | gives | launches)
    order = rows[np.lexsort((calls.ts_ns[rows], calls.lane[rows]))]
    return order, takes[order], gives[order]


def _next_other(gives: Bools) -> Int64s:
    """(n,) position of the first call from each one on that gives nothing back; n for none."""
    at = np.where(gives, len(gives), np.arange(len(gives)))
    return np.minimum.accumulate(at[::-1])[::-1]
