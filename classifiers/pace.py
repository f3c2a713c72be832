"""How long the host and the device of each rank work on a step.

In a job that its hosts hold up, one of them is always the last, and the devices of all others wait
for its launches in each step, although it works no longer than they do: it only began later, or
fell behind once. A rank holds the others up by as much as it needs longer for a step than they do,
unless that may be chance: a single long step of its host, or less than steps differ by.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.blocking import blocked_times
from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import cut, merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["BY_DEVICE", "BY_HOST", "longer_ns"]

Floats = NDArray[np.float64]

BY_HOST = [LEAF["input"], LEAF["launch"], LEAF["host_other"]]
"""Leaves in which a rank is that comes late because its host works longer."""

BY_DEVICE = [LEAF[one] for one in ("compute_kernel", "memory_kernel", "kernel_unclassified")]
"""Leaves in which a rank is that comes late because its device computes longer."""


ENOUGH = 3
"""Steps that show a pace. In fewer, one that began later is late for what can be seen. A choice."""


CHANCE = 2.0
"""Standard errors of the steadier of two hosts by which the other must be slower, its longest step
left out: by less, one in twenty pairs is by chance."""


def longer_ns(ranks: Sequence[RankFacts]) -> Floats:
    """(2, ranks, ranks) how much longer the second rank works than the first, at least 0.

    That is in all steps of the first that have a verdict: its host, and its device. 0 for hosts
    that differ no more than by chance. Infinite where a trace has no host
    events, or too few steps to show a pace.
    """
    steps = np.array([max(1, int(one.trusted.sum())) for one in ranks])
    each = [_host_ns(one) if one.coverage.has_host else np.array([np.nan]) for one in ranks]
    host = np.array([one.sum() for one in each])
    pace = np.stack((host, np.array([_device_ns(one) for one in ranks]))) / steps
    pace[:, steps < ENOUGH] = np.nan
    longer = pace[:, None, :] - pace[:, :, None]
    spread, usual = np.array([_spread(one) for one in each]).T
    chance = CHANCE * np.sqrt(2 * np.minimum(spread[None, :], spread[:, None]))
    longer[0][usual[None, :] - pace[0][:, None] < chance] = 0.0
    longer = np.maximum(longer, 0.0) * steps[:, None]
    return np.asarray(np.where(np.isnan(longer), np.inf, longer), np.float64)


def _spread(each_ns: Floats) -> tuple[float, float]:
    """The variance of the mean of some steps, and the mean without the longest."""
    if len(each_ns) < 2:
        return 0.0, float(each_ns.mean()) if len(each_ns) else np.nan
    usual = (each_ns.sum() - each_ns.max()) / (len(each_ns) - 1)
    return float(each_ns.var(ddof=1) / len(each_ns)), float(usual)


def _device_ns(facts: RankFacts) -> float:
    timeline, steps = facts.timeline, facts.model.steps
    step = np.searchsorted(steps.ts_ns, timeline.edges_ns[:-1], "right") - 1
    computes = np.isin(timeline.leaf, BY_DEVICE) & facts.trusted[step]
    return float(np.diff(timeline.edges_ns)[computes].sum())


def _host_ns(facts: RankFacts) -> Floats:
    """(trusted steps,) without waits for the device, or for a place in the queue of that."""
    steps, counted = facts.model.steps, facts.trusted
    until = np.append(steps.host_ts_ns[1:], steps.host_end_ns[-1:])
    spans = (steps.host_ts_ns[counted], until[counted])
    inside = cut(_device_waits(facts), spans)
    waited = (inside.end_ns - inside.start_ns).astype(np.float64)
    own = (spans[1] - spans[0]) - np.bincount(inside.window, waited, len(spans[0]))
    return np.asarray(own, np.float64)


def _device_waits(facts: RankFacts) -> tuple[Int64s, Int64s]:
    """When a thread that launches work waits for the device."""
    found = blocked_times(facts, None)
    device = (found.work != ABSENT) | (found.start_of != ABSENT)
    return merge(found.begin_ns[device], found.until_ns[device])
