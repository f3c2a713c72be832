"""Which operators, annotations and calls of the host device work comes from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.model import Hosts, Model
from perfdiag.trace_schemas.host_ranges import marks_step
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Origins"]

Bools = NDArray[np.bool_]

MOST_ABOVE = 4
"""Slices that are looked at above a call for its operator, as `perfdiag_launched_work` does."""


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the work of a rank comes from, as rows of `Hosts` and `Calls`; -1 for none.

    Attributes:
        hosts: the rank's operators, annotations, frames and overhead.
        call: (work,) the launching call.
        op: (work,) the innermost operator around that call.
        around: (work,) the innermost operator or annotation around it.
        top: (work,) the outermost operator around it; markers of steps are none.
        call_op, call_top: (calls,) the innermost and the outermost operator around each call.
        parent: (hosts,) what encloses each range; frames and ranges do not enclose each other.
    """

    hosts: Hosts
    call: Int64s
    op: Int64s
    around: Int64s
    top: Int64s
    call_op: Int64s
    call_top: Int64s
    parent: Int64s

    @classmethod
    def of(cls, model: Model) -> "Origins":
        """Follow the launches of a model, and what encloses them."""
        hosts, calls = model.hosts, model.calls
        up = _Above(model)
        parent = up.of_hosts()
        call = _rows(calls.id, model.work.launch_id)
        is_op = hosts.kind.where("host_op")
        call_op = up.first(calls.parent_id, is_op)
        around = _at(up.first(calls.parent_id, np.ones(len(is_op), bool)), call)
        op = _at(call_op, call)
        outermost = _outermost(parent, is_op & ~hosts.name.map(marks_step, np.bool_))
        call_top = _at(outermost, call_op)
        return cls(hosts, call, op, around, _at(outermost, op), call_op, call_top, parent)

    def op_is(self, wanted: Callable[[str], bool]) -> Bools:
        """(work,) whether the name of the innermost operator is wanted; asked once a name."""
        return _at(self.named(wanted), self.op, missing=False)

    def under(self, wanted: Callable[[str], bool]) -> Bools:
        """(work,) whether an operator or annotation around the launch has a wanted name."""
        return _at(self.inside(self.named(wanted)), self.around, missing=False)

    def named(self, wanted: Callable[[str], bool]) -> Bools:
        """(hosts,) whether the name of each range is wanted; asked once a name."""
        return np.asarray(self.hosts.name.map(wanted, np.bool_), np.bool_)

    def inside(self, chosen: Bools) -> Bools:
        """(hosts,) whether each range is chosen, or lies in one that is."""
        found, above = chosen.copy(), self.parent
        while (above != ABSENT).any():
            found |= _at(chosen, above, missing=False)
            above = _at(self.parent, above)
        return found


class _Above:
    """Looks up what encloses a slice, through the calls that lie between."""

    def __init__(self, model: Model) -> None:
        self._hosts, calls = model.hosts, model.calls
        self._ids = np.concatenate((self._hosts.id, calls.id))
        self._parents = np.concatenate((self._hosts.parent_id, calls.parent_id))
        self._order = np.argsort(self._ids, kind="stable")

    def of_hosts(self) -> Int64s:
        """(hosts,) row of the range around each one, or -1."""
        row = self._row(self._hosts.parent_id)
        return np.where(row < len(self._hosts.id), row, ABSENT)

    def first(self, slice_id: Int64s, wanted: Bools) -> Int64s:
        """(n,) row of the first wanted range among some slices and what encloses them, or -1."""
        stop = np.append(wanted, np.zeros(len(self._ids) - len(wanted) + 1, bool))
        row = self._row(slice_id)
        for _ in range(MOST_ABOVE - 1):
            passed = np.flatnonzero((row != ABSENT) & ~stop[row])
            row[passed] = self._row(self._parents[row[passed]])
        return np.where(stop[row], row, ABSENT)

    def _row(self, slice_id: Int64s) -> Int64s:
        return _rows(self._ids, slice_id, self._order)


def _rows(ids: Int64s, wanted: Int64s, order: Int64s | None = None) -> Int64s:
    """(n,) position of each id, or -1."""
    if not len(ids):
        return np.full(len(wanted), ABSENT, np.int64)
    order = np.argsort(ids, kind="stable") if order is None else order
    at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where((ids[at] == wanted) & (wanted != ABSENT), at, ABSENT)


def _at(values: NDArray[np.generic], rows: Int64s, missing: int | bool = ABSENT) -> NDArray:  # type: ignore[type-arg]
    """(n,) values at some rows; `missing` where there is no row."""
    if not len(values):
        return np.full(len(rows), missing, values.dtype)
    return np.where(rows != ABSENT, values[rows], missing).astype(values.dtype)


def _outermost(parent: Int64s, is_op: Bools) -> Int64s:
    """(hosts,) the outermost operator among each range and what encloses it, or -1."""
    found = np.where(is_op, np.arange(len(parent)), ABSENT)
    above = parent
    while (above != ABSENT).any():
        found = np.where(_at(is_op, above, missing=False), above, found)
        above = _at(parent, above)
    return found
