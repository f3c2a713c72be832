"""What an ordinary tool sees in the trace of a rank: categories and names of events, and times.

Collectives have no category of their own there: they are kernels, and each tool knows them by
their names, as well as it can.
"""

import re

import numpy as np
from numpy.typing import NDArray

from baselines.spans import Spans
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Work

__all__ = ["LOADER", "device_spans", "host_spans", "named", "time_of"]

Bools = NDArray[np.bool_]

LOADER = "enumerate(DataLoader)"
"""PyTorch's annotation around the wait for a batch."""


def device_spans(work: Work, rows: Bools) -> Spans:
    """Times of some device work."""
    return work.ts_ns[rows], work.end_ns[rows]


def named(work: Work, pattern: re.Pattern[str]) -> Bools:
    """(work,) whether a pattern matches the name from its beginning; asked once a name."""
    return np.asarray(work.name.map(lambda name: bool(pattern.match(name)), np.bool_), np.bool_)


def host_spans(facts: RankFacts, wanted: re.Pattern[str], *kinds: str) -> Spans:
    """Times of host ranges of some kinds whose names a pattern matches from their beginning."""
    hosts = facts.model.hosts
    rows = hosts.kind.where(*kinds)
    rows &= hosts.name.map(lambda name: bool(wanted.match(name)), np.bool_)
    return hosts.ts_ns[rows], hosts.end_ns[rows]


def time_of(spans: Spans) -> int:
    """Lengths of intervals added up, in ns, overlaps counted as often as they are there."""
    return int((spans[1] - spans[0]).sum())
