"""What a window spends its time in: device work by name, with the operator that launched it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import Cuts, cut
from perfdiag.trace_schemas.recording import ABSENT, Int64s
from perfdiag.trace_schemas.report import Hotspot

__all__ = ["Hotspots"]

Codes = NDArray[np.integer]

OF_REGION, OF_RANK = 3, 20
"""How many are named."""


@dataclass(frozen=True, slots=True)
class Hotspots:
    """The longest work of a rank's steps that have a verdict, and of each of its regions."""

    rank: list[Hotspot]
    regions: list[list[Hotspot]]

    @classmethod
    def of(cls, facts: RankFacts) -> "Hotspots":
        """Add up the work of the device that the budget is about."""
        model = facts.model
        counted = facts.trusted if facts.trusted.any() else ~facts.trusted
        steps = (model.steps.ts_ns[counted], model.steps.end_ns[counted])
        whole = _grouped(facts, steps, together=True).longest(OF_RANK)
        found: list[list[Hotspot]] = [[] for _ in model.regions.kind]
        kinds = np.array(model.regions.kind, object)
        for kind in dict.fromkeys(model.regions.kind):
            rows = np.flatnonzero((kinds == kind) & (model.regions.end_ns > model.regions.ts_ns))
            rows = rows[np.argsort(model.regions.ts_ns[rows], kind="stable")]
            windows = (model.regions.ts_ns[rows], model.regions.end_ns[rows])
            for window, spots in _grouped(facts, windows).longest(OF_REGION).items():
                found[int(rows[window])] = spots
        return cls(whole.get(0, []), found)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Work of one name and operator in one window: (n,) columns."""

    facts: RankFacts
    window: Int64s
    work: Int64s
    count: Int64s
    dur_ns: Int64s

    def longest(self, most: int) -> dict[int, list[Hotspot]]:
        """At most so many of each window, the longest first."""
        order = np.lexsort((-self.dur_ns, self.window))
        window = self.window[order]
        place = np.arange(len(order)) - np.searchsorted(window, window)
        found: dict[int, list[Hotspot]] = {}
        for row in order[place < most].tolist():
            found.setdefault(int(self.window[row]), []).append(self._spot(row))
        return found

    def _spot(self, row: int) -> Hotspot:
        work, origins = self.facts.model.work, self.facts.origins
        one = np.array([self.work[row]])
        op = origins.op[one]
        return Hotspot(
            name=work.name.take(one)[0],
            op=origins.hosts.name.take(op)[0] if op[0] != ABSENT else "",
            family=work.family.take(one)[0] or "other",
            count=int(self.count[row]),
            dur_ns=int(self.dur_ns[row]),
        )


def _grouped(
    facts: RankFacts, windows: tuple[Int64s, Int64s], *, together: bool = False
) -> _Groups:
    """Add up the work in windows by name and operator, in all of them together if asked."""
    work, origins = facts.model.work, facts.origins
    here = np.flatnonzero(facts.here)
    parts = cut((work.ts_ns[here], work.end_ns[here]), windows)
    row = here[parts.interval]
    window = np.zeros(len(row), np.int64) if together else parts.window
    codes = origins.hosts.name.codes
    op = np.where(origins.op[row] != ABSENT, codes[origins.op[row]], -1) if len(codes) else row * 0
    return _added_up(facts, parts, row, (window, work.name.codes[row], op))


def _added_up(facts: RankFacts, parts: Cuts, row: Int64s, keys: tuple[Codes, ...]) -> _Groups:
    order = np.lexsort(keys[::-1])
    if not len(order):
        return _Groups(facts, order, order, order, order)
    fresh = np.ones(len(order), bool)
    fresh[1:] = False
    for key in keys:
        fresh[1:] |= key[order][1:] != key[order][:-1]
    first = np.flatnonzero(fresh)
    length = np.add.reduceat((parts.end_ns - parts.start_ns)[order], first)
    pieces = np.diff(np.append(first, len(order)))
    window = keys[0][order][first].astype(np.int64)
    return _Groups(facts, window, row[order][first], pieces, length)
