"""The device waits for the next batch.

What it finds:
    Time in which the device is idle while the thread that would give it work loads data.

Why it costs time:
    A loader in the training process (`num_workers=0`, the default of PyTorch) does nothing while
    the step runs, and the step does nothing while it loads.

How it is told apart:
    A range of the loader must cover idle time. A loader that runs while the device is busy with
    queued work costs nothing and is not counted, however long it takes. A loader that works ahead,
    but too slowly, is the finding `loader_workers_starved`.

Example:
    `enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__` for 9 ms of a step of 9.5 ms.

What to do:
    Load in worker processes that work ahead. Saved at least: what one worker hides behind the rest
    of the step; at most: all of it.

References:
    https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

import numpy as np

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._loaders import loading, saved_by_workers, works_ahead
from perfdiag.classifiers.diagnoses._shared import (
    Intervals,
    count_of,
    leaf_ns,
    per_step,
    share_of,
    spell,
    split_by_step,
    windows,
    within,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState
from perfdiag.trace_schemas.recording import Int64s

WORKERS = Threshold(
    4, "loader processes", "default of --workers in PyTorch's ImageNet example, pytorch/examples"
)

DIAGNOSIS = Diagnosis(
    id="loader_stall",
    layer="input-pipeline",
    title="The device waits for the data loader",
    title_ok="The data loader keeps up",
    needs=("device", "host"),
    confidence=0.9,
    thresholds={"share": MATERIAL, "workers": WORKERS},
    how=(
        "Load ahead in other processes: DataLoader(num_workers=4 or more, pin_memory=True, "
        "persistent_workers=True, prefetch_factor=4) (PyTorch 1.7 or later; Trainer: "
        "dataloader_num_workers; Megatron-LM: --num-workers). A loop of your own: fetch the next "
        "batch in a thread while the step runs. tf.data: prefetch(tf.data.AUTOTUNE)."
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
    if works_ahead(facts):
        return DIAGNOSIS.quiet("The loader works ahead of the step.")
    name, total, count, proof = loading(facts)
    why = (
        f"The device is idle for {spell(per_step(facts, waits))} of a step ({share:.0%}) while the "
        f"host loads data: {count_of(count, 'range')} {name!r}, {spell(total)} in all. Nothing is "
        "loaded ahead."
    )
    loads = _loading(facts)
    batch = np.maximum(within(loads, windows(facts)), waits)
    low, mid = saved_by_workers(facts, waits, batch, limits["workers"])
    waiting = claim(windows(facts), ["input"], low=low, mid=mid, high=1.0, verb="remove")
    return DIAGNOSIS.fires(
        why, [waiting, _gone(facts, loads, waits, batch, limits["workers"])], [proof]
    )


def _loading(facts: RankFacts) -> Intervals:
    """When the main thread loads, whether the device has work meanwhile or not."""
    empty = np.empty(0, np.int64)
    main = facts.states.unions.get(facts.states.main_lane, {})
    return main.get(HostState.INPUT, (empty, empty))


def _gone(
    facts: RankFacts, loads: Intervals, waits: Int64s, batch: Int64s, workers: float
) -> Claim:
    """Loading leaves the thread, which waits for what workers need longer than the rest of a step.

    Also where a queue of launches hid it: the thread gets further ahead of the device.
    """
    starts, ends = windows(facts)
    rest, whole = ends - starts - waits, np.maximum(batch, 1)
    low, mid = (
        1.0 - np.clip((batch / n - rest) / whole, 0.0, 1.0) for n in (1.0, max(workers, 1.0))
    )
    parts, step = split_by_step(facts, loads)
    lanes = [facts.states.main_lane]
    return claim(parts, (), low=low[step], mid=mid[step], high=1.0, verb="remove", threads=lanes)
