"""Figures that several diagnoses state, each with the query that returns it and its slices."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._shared import ask, count_of, longest, spell, step_at
from perfdiag.classifiers.diagnosis import Proof
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Coded
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Figure", "longest_call", "longest_op", "longest_range", "longest_work", "most_called"]

Bools = NDArray[np.bool_]


class Figure(NamedTuple):
    """What the slices of one name come to; '' and 0 where there are none."""

    name: str
    total_ns: int
    number: int
    proof: Proof

    def launches(self, kind: str = "kernel") -> str:
        """A sentence on what the operator of that name launches, if there is one."""
        work = f"{count_of(self.number, kind)}, {spell(self.total_ns)} in all."
        return f"{self.name!r} launches {work}" if self.name else f"Outside of operators: {work}"


def longest_range(facts: RankFacts, chosen: Bools) -> Figure:
    """The name whose ranges take longest, of those that start in a step.

    Args:
        facts: the rank.
        chosen: (hosts,) which to look at; all ranges of that name are counted.
    """
    hosts = facts.model.hosts
    inside = step_at(facts, hosts.ts_ns) != ABSENT
    length = hosts.end_ns - hosts.ts_ns
    name = _heaviest(hosts.name, chosen & inside, length)
    mine = hosts.name.where(name) & inside
    total = int(length[mine].sum())
    proof = ask("ns", total, "perfdiag_range_ns", name, spots=longest(hosts, mine))
    return Figure(name, total, int(mine.sum()), proof)


def longest_work(facts: RankFacts, chosen: Bools) -> Figure:
    """The name whose device work takes longest; all work of that name is counted.

    Args:
        facts: the rank.
        chosen: (work,) which to look at, on the device of the budget.
    """
    work = facts.model.work
    name = _heaviest(work.name, chosen & facts.here, facts.length_ns)
    mine = facts.here & work.name.where(name)
    total = int(facts.length_ns[mine].sum())
    device = facts.timeline.device
    proof = ask("ns", total, "perfdiag_work_ns", device, name, spots=longest(work, mine))
    return Figure(name, total, int(mine.sum()), proof)


def longest_op(facts: RankFacts, chosen: Bools, kind: str = "kernel") -> Figure:
    """The innermost operator whose work takes longest; '' is work that no operator launched.

    Args:
        facts: the rank.
        chosen: (work,) which to look at; all work of the kind that the operator launched counts.
        kind: `kernel`, `copy`, `fill` or `collective`.
    """
    work, hosts, row = facts.model.work, facts.model.hosts, facts.origins.op
    codes = np.where(row == ABSENT, -1, hosts.name.codes[row]) if len(hosts.id) else row
    ops = Coded(codes.astype(np.int32), hosts.name.texts)
    here = facts.here & work.kind.where(kind)
    name = _heaviest(ops, chosen & here, facts.length_ns)
    mine = here & ops.where(name)
    total = int(facts.length_ns[mine].sum())
    device = facts.timeline.device
    proof = ask("ns", total, "perfdiag_op_work_ns", device, name, kind, spots=longest(work, mine))
    return Figure(name, total, int(mine.sum()), proof)


def longest_call(facts: RankFacts, chosen: Bools) -> Figure:
    """The runtime call that takes longest in all; all calls of that name are counted.

    Args:
        facts: the rank.
        chosen: (calls,) which to look at.
    """
    return _call(facts, _heaviest(facts.model.calls.api, chosen, _call_ns(facts)), "ns")


def most_called(facts: RankFacts, chosen: Bools) -> Figure:
    """The runtime call that is made most often; its proof is the number of calls.

    Args:
        facts: the rank.
        chosen: (calls,) which to look at; all calls of that name are counted.
    """
    ones = np.ones(len(chosen), np.int64)
    return _call(facts, _heaviest(facts.model.calls.api, chosen, ones), "calls")


def _call(facts: RankFacts, name: str, unit: str) -> Figure:
    mine = facts.model.calls.api.where(name)
    total, count = int(_call_ns(facts)[mine].sum()), int(mine.sum())
    spots = longest(facts.model.calls, mine)
    if unit == "ns":
        proof = ask("ns", total, "perfdiag_call_ns", name, spots=spots)
    else:
        proof = ask(unit, count, "perfdiag_call_count", name, spots=spots)
    return Figure(name, total, count, proof)


def _call_ns(facts: RankFacts) -> Int64s:
    return facts.model.calls.end_ns - facts.model.calls.ts_ns


def _heaviest(names: Coded, chosen: Bools, weight: Int64s) -> str:
    """The text whose chosen rows weigh most together; '' stands for itself and for none."""
    if not chosen.any():
        return ""
    weights = np.bincount(names.codes[chosen] + 1, np.maximum(weight[chosen], 1))
    return ["", *names.texts][int(np.argmax(weights))]
