"""The device waits for the next batch.

What it finds:
    Time in which the device is idle while the thread that would give it work loads data.

Why it costs time:
    A loader in the training process (`num_workers=0`, the default of PyTorch) does nothing while
    the step runs, and the step does nothing while it loads. Workers that are too slow leave the
    same gap: the step then takes as long as a batch takes to make.

How it is told apart:
    A range of the loader must cover idle time. A loader that runs while the device is busy with
    queued work costs nothing and is not counted, however long it takes.

Example:
    `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__` for 9 ms of a step of 9.5 ms.

What to do:
    Load in worker processes that work ahead; where they are too slow, add workers or make a batch
    cheaper. Saved at least: what one worker hides behind the rest of the step; at most: all of it.

References:
    https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import Figure, longest_range
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_ns,
    per_step,
    share_of,
    spell,
    windows,
    within,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.trace_schemas.host_ranges import classify_range
from perfdiag.trace_schemas.recording import Int64s

WORKERS = Threshold(
    4, "loader processes", "default of --workers in PyTorch's ImageNet example, pytorch/examples"
)
FASTER = Threshold(
    2, "times", "a choice: twice the workers, or half the work on a batch, is within reach"
)

DIAGNOSIS = Diagnosis(
    id="loader_stall",
    layer="input-pipeline",
    title="The device waits for the data loader",
    title_ok="The data loader keeps up",
    needs=("device", "host"),
    confidence=0.9,
    thresholds={"share": MATERIAL, "workers": WORKERS, "faster": FASTER},
    how=(
        "Load ahead in other processes: DataLoader(num_workers=4 or more, pin_memory=True, "
        "persistent_workers=True, prefetch_factor=4) (PyTorch 1.7 or later; Trainer: "
        "dataloader_num_workers). If there are workers already, add more up to the number of "
        "cores, or decode and augment less for each batch (DALI, data prepared beforehand)."
    ),
    verify="Record again: the leaf `input` of the step's budget shrinks, and the step with it.",
    refuted_by="a loop over the loader alone, without the model, needs far less for a batch",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time that the loader covers."""
    waits = leaf_ns(facts, "input")
    share = share_of(facts, waits)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"{share:.1%} of the time is spent waiting for input.")
    name, total, count, proof = _loading(facts)
    ahead = any("_MultiProcessingDataLoaderIter" in text for text in facts.model.hosts.name.texts)
    why = (
        f"The device is idle for {spell(per_step(facts, waits))} of a step ({share:.0%}) while the "
        f"host loads data: {count_of(count, 'range')} {name!r}, {spell(total)} in all. "
        + ("Workers load ahead, too slowly." if ahead else "Nothing is loaded ahead.")
    )
    low, mid = _saved(facts, waits, limits["faster"] if ahead else limits["workers"], ahead=ahead)
    return DIAGNOSIS.fires(
        why,
        [claim(windows(facts), ["input"], low=low, mid=mid, high=1.0)],
        [proof],
    )


def _loading(facts: RankFacts) -> Figure:
    """Name, time and number of the loader's ranges; frames only where nothing else names it."""
    hosts = facts.model.hosts
    loads = hosts.name.map(lambda name: classify_range(name) == "input", np.bool_)
    found = longest_range(facts, loads & ~hosts.kind.where("python"))
    return found if found.number else longest_range(facts, loads)


def _saved(
    facts: RankFacts, waits: Int64s, workers: float, *, ahead: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of the waits that a loader saves which works ahead, at least and likely.

    A loader that works ahead and makes a batch in time t leaves a step of max(t, rest). One that
    does so already takes the whole step for a batch.
    """
    starts, ends = windows(facts)
    step = ends - starts
    rest = step - waits
    empty = np.empty(0, np.int64)
    union = facts.states.unions.get(facts.states.main_lane, {}).get(HostState.INPUT, (empty, empty))
    batch = step if ahead else np.maximum(within(union, windows(facts)), waits)
    low, mid = (step - np.maximum(batch / n, rest) for n in (1.0, workers))
    return low / np.maximum(waits, 1), mid / np.maximum(waits, 1)
