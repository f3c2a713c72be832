"""A rank and its regions: what all features are computed from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features.spans import Bools, Floats, Placed, Running, Spans
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """A rank and its regions.

    Attributes:
        facts: of the rank.
        spans: (n,) its regions.
        step: (n,) the row of each one's step.
        names: (n,) of phases; '' of steps.
    """

    facts: RankFacts
    spans: Spans
    step: Int64s
    names: NDArray[np.object_]

    @property
    def is_step(self) -> Bools:
        """(n,) whether it is a step."""
        return np.arange(len(self.step)) < self.spans.steps

    @cached_property
    def kernels(self) -> Int64s:
        """(k,) rows of the kernels of the device that are no collectives."""
        return np.flatnonzero(self.facts.kernels)

    @cached_property
    def running(self) -> Running:
        """When these run."""
        work = self.facts.model.work
        return Running(work.ts_ns[self.kernels], work.end_ns[self.kernels], self.spans)

    @cached_property
    def kernel_ns(self) -> Floats:
        """(n,) how long they run, added up."""
        return self.running.time()

    @cached_property
    def kernel_starts(self) -> Placed:
        """Where these start."""
        return self.spans.place(self.facts.model.work.ts_ns[self.kernels])

    @cached_property
    def leaf_ns(self) -> Floats:
        """(n, leaves) the time budget."""
        return self._pieces.tables(self.facts.timeline.leaf, len(LEAVES), self._piece_ns)

    @cached_property
    def active_ns(self) -> Floats:
        """(n, 8) time by what runs: see the bits of `Timeline.active`."""
        return self._pieces.tables(self.facts.timeline.active, 8, self._piece_ns)

    @cached_property
    def _pieces(self) -> Placed:
        """Where the pieces of the time line are: it is cut at the bounds of steps and regions."""
        return self.spans.place(self.facts.timeline.edges_ns[:-1])

    @property
    def _piece_ns(self) -> Floats:
        return np.diff(self.facts.timeline.edges_ns).astype(np.float64)
