"""Which copies to the device are of tensors that the host has just made."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._copies import MOVES, to_device
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import step_marker
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Made", "made_on_host"]

Bools = NDArray[np.bool_]

MAKERS = (
    *("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones"),
    *("new_full", "scalar_tensor", "eye", "arange", "range", "linspace", "logspace"),
    *("tril_indices", "triu_indices", "rand", "randn", "randint", "randperm", "rand_like"),
    *("randn_like", "randint_like", "normal", "normal_", "uniform_", "random_", "bernoulli_"),
    *("fill_", "zero_"),
)
"""Operators of ATen that fill a tensor with what a kernel on the device could write as well."""

CHANGERS = (
    *("tril", "triu", "masked_fill", "masked_fill_", "logical_not", "bitwise_not", "view"),
    *("reshape", "unsqueeze", "expand", "repeat", "mul", "add", "sub", "div"),
)
"""What a mask or a range goes through on the host before it is copied."""

MOST_CHANGES = 3

WRAPS = ("lift_fresh",)
"""What `torch.tensor` does last, after it has copied its values to the device."""


class Made(NamedTuple):
    """(n,) rows of copies, of the operators that copy, and of the makers: -1 for plain numbers."""

    copy: Int64s
    mover: Int64s
    maker: Int64s


def made_on_host(facts: RankFacts, at_once_ns: float, number_bytes: float) -> Made:
    """Follow each copy to the device back to the operator that made the tensor.

    Args:
        facts: the rank.
        at_once_ns: what may pass between two operators that work on one tensor.
        number_bytes: size of a tensor that holds one number.
    """
    work, top = facts.model.work, facts.origins.top
    moves = facts.origins.named(MOVES.__contains__)
    copy = np.flatnonzero(to_device(facts) & (top != ABSENT))
    copy = copy[moves[top[copy]]]
    before, after = _neighbours(facts, at_once_ns)
    maker = _maker(facts, before, before[top[copy]])
    size = work.bytes[copy]
    number = (size > 0) & (size <= number_bytes) & _is(_named(facts, WRAPS), after[top[copy]])
    made = copy[(maker != ABSENT) | number]
    return Made(made, top[made], maker[(maker != ABSENT) | number])


def _maker(facts: RankFacts, before: Int64s, row: Int64s) -> Int64s:
    """(n,) the maker of what some operators return, -1 where it is none or launched work."""
    on_host = np.ones(len(before), bool)
    on_host[facts.origins.top[facts.origins.top != ABSENT]] = False
    changes = _named(facts, CHANGERS) & on_host
    for _ in range(MOST_CHANGES):
        row = np.where(_is(changes, row), before[row], row)
    return np.where(_is(_named(facts, MAKERS) & on_host, row), row, ABSENT)


def _neighbours(facts: RankFacts, at_once_ns: float) -> tuple[Int64s, Int64s]:
    """(hosts,) the outermost operators before and after each, in the same range, or -1."""
    hosts, origins = facts.model.hosts, facts.origins
    ops = hosts.kind.where("host_op") & ~origins.named(lambda name: step_marker(name) is not None)
    rows = np.flatnonzero(ops & ~_is(origins.inside(ops), origins.parent))
    rows = rows[np.lexsort((hosts.ts_ns[rows], hosts.lane[rows]))]
    first, second = rows[:-1], rows[1:]
    joined = (hosts.lane[first] == hosts.lane[second]) & (
        origins.parent[first] == origins.parent[second]
    )
    joined &= hosts.ts_ns[second] - hosts.end_ns[first] <= at_once_ns
    before, after = np.full((2, len(hosts.id)), ABSENT, np.int64)
    before[second[joined]] = first[joined]
    after[first[joined]] = second[joined]
    return before, after


def _named(facts: RankFacts, names: tuple[str, ...]) -> Bools:
    """(hosts,) the operators of ATen with one of these names."""
    wanted = {f"aten::{name}" for name in names}
    return facts.origins.named(wanted.__contains__)


def _is(chosen: Bools, rows: Int64s) -> Bools:
    """(n,) whether some rows are chosen; -1 is not."""
    return np.append(chosen, False)[rows]
