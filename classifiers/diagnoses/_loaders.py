"""Waiting for data: whose ranges cover it, and what a loader that works ahead saves of it."""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._figures import Figure, longest_range
from perfdiag.classifiers.diagnoses._shared import leaf_in, leaf_ns, ranges, union_of, windows
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import classify_range
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["loading", "saved_by_workers", "works_ahead"]

AHEAD = (
    r"_MultiProcessingDataLoaderIter",
    r"torch/utils/data/dataloader\.py\(\d+\): _(?:try_get_data|get_data|process_data)$",
    r"[Pp]refetch",
    r"Parallel(?:Map|Interleave|Batch)",  # tf.data, torchdata
    r"DALI|nvidia/dali/",
    r"grain/.*multiprocess",
)
"""Ranges in which a step takes a batch out of a queue that others fill."""

_AHEAD = re.compile("|".join(AHEAD))

Shares = tuple[NDArray[np.float64], NDArray[np.float64]]


def works_ahead(facts: RankFacts) -> bool:
    """Whether the waits for input lie in ranges of a loader that works ahead, most of them."""
    queue = ranges(
        facts, lambda name: classify_range(name) == "input" and bool(_AHEAD.search(name))
    )
    waits = leaf_in(facts, union_of(facts.model.hosts, queue), "input")
    return bool(waits.sum() > 0 and 2 * waits.sum() >= leaf_ns(facts, "input").sum())


def loading(facts: RankFacts) -> Figure:
    """Name, time and number of the loader's ranges; frames only where nothing else names it."""
    loads = facts.origins.named(lambda name: classify_range(name) == "input")
    found = longest_range(facts, loads & ~facts.model.hosts.kind.where("python"))
    return found if found.number else longest_range(facts, loads)


def saved_by_workers(facts: RankFacts, waits: Int64s, batch: Int64s, workers: float) -> Shares:
    """Shares of the waits that a loader saves which works ahead, at least and likely.

    A loader that works ahead and makes a batch in time t leaves a step of max(t, rest).

    Args:
        facts: the rank.
        waits: (steps,) time spent waiting for input.
        batch: (steps,) time in which one worker makes a batch.
        workers: how many there may be; one is the least.
    """
    starts, ends = windows(facts)
    step = ends - starts
    low, mid = (step - np.maximum(batch / n, step - waits) for n in (1.0, max(workers, 1.0)))
    return low / np.maximum(waits, 1), mid / np.maximum(waits, 1)
