"""How long the host and the device of each rank work on a step.

In a job that its hosts hold up, one of them is always the last, and the devices of all others wait
for its launches in each step, although it works no longer than they do: it only began later, or
fell behind once. A rank holds the others up by as much as it needs longer for a step than they do,
unless its host takes so different times for its steps that this may be chance.
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
"""Standard errors by which hosts must differ: by less, one in twenty pairs does by chance."""


def longer_ns(ranks: Sequence[RankFacts]) -> Floats:
    """(2, ranks, ranks) how much longer the second rank works than the first, at least 0.

    That is in all steps of the first that have a verdict: its host, and its device. 0 for hosts
    that differ no more than by chance, as their steps do. Infinite where a trace has no host
    events, or too few steps to show a pace.
    """
    steps = np.array([max(1, int(one.trusted.sum())) for one in ranks])
    each = [_host_ns(one) if one.coverage.has_host else np.array([np.nan]) for one in ranks]
    host = np.array([one.sum() for one in each])
    pace = np.stack((host, np.array([_device_ns(one) for one in ranks]))) / steps
    pace[:, steps < ENOUGH] = np.nan
    longer = pace[:, None, :] - pace[:, :, None]
    spread = np.array([_variance(one) for one in each])
    longer[0][longer[0] < CHANCE * np.sqrt(spread[None, :] + spread[:, None])] = 0.0
    longer = np.maximum(longer, 0.0) * steps[:, None]
    return np.asarray(np.where(np.isnan(longer), np.inf, longer), np.float64)


def _variance(each_ns: Floats) -> float:
    """Of the mean of some steps."""
    return float(each_ns.var(ddof=1) / len(each_ns)) if len(each_ns) > 1 else 0.0


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
