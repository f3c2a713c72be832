"""The workers of the data loader make batches too slowly.

What it finds:
    Time in which the device is idle while the step waits for a batch out of the queue that worker
    processes or a prefetching iterator fill.

Why it costs time:
    Workers hide the making of a batch behind the step as long as all of them together make one
    batch a step. Where they cannot, the queue is empty, and the step takes as long as a batch.

How it is told apart:
    Most of the waits must lie in ranges that only a loader with workers has. A loader in line with
    the step is the finding `loader_stall`. One step that waits far longer than all others is where
    the workers start, at the beginning of an epoch, and is left out: the first of the trace, or one
    that waits longer than two others take, as no queue that runs dry by turns makes it.

Example:
    `enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__` for 9 ms of each step of 14 ms.

What to do:
    Add workers while there are cores for them, and then make a batch cheaper. Twice the workers
    leave steps that are half as long on average, or the rest of a step if that is longer.

References:
    https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
    https://docs.nvidia.com/deeplearning/dali/user-guide/docs/index.html
    https://www.tensorflow.org/guide/data_performance
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._loaders import loading, works_ahead
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_ns,
    per_step,
    share_of,
    spell,
    windows,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

FASTER = Threshold(
    2, "times", "a choice: twice the workers, or half the work on a batch, is within reach"
)
STEPS = Threshold(3, "steps", "a choice: of fewer steps none can be called the exception")
STARTS = Threshold(
    2,
    "times",
    "a choice: workers take longer to start, a queue that runs dry costs a batch at most",
)

DIAGNOSIS = Diagnosis(
    id="loader_workers_starved",
    layer="input-pipeline",
    title="The workers of the data loader are too slow",
    title_ok="No step waits for workers of the data loader",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "faster": FASTER, "steps": STEPS, "starts": STARTS},
    how=(
        "DataLoader(num_workers=...) up to the cores that a rank has (os.sched_getaffinity(0), "
        "shared by the ranks of a node), persistent_workers=True and prefetch_factor=4 (PyTorch "
        "1.7 or later; Trainer: dataloader_num_workers, dataloader_prefetch_factor; Megatron-LM: "
        "--num-workers). Then decode and augment less for each batch: data prepared beforehand, "
        "NVIDIA DALI or torchvision.transforms.v2 on the device, large shards instead of small "
        "files. tf.data: map(..., num_parallel_calls=tf.data.AUTOTUNE) and "
        "prefetch(tf.data.AUTOTUNE)."
    ),
    verify="Record again: the leaf `input` of the step's budget shrinks, and the step with it.",
    refuted_by="a loop over the loader alone, without the model, needs far less for a batch",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time in which the step waits for the queue of the workers."""
    if not works_ahead(facts):
        return DIAGNOSIS.quiet("No waits for a loader that works ahead.")
    waits = _without_start(facts, leaf_ns(facts, "input"), limits)
    share = share_of(facts, waits)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"{share:.1%} of the time is spent waiting for workers, their start apart."
        )
    name, total, count, proof = loading(facts)
    why = (
        f"The device is idle for {spell(per_step(facts, waits))} of a step ({share:.0%}) while the "
        f"step waits for a batch: {count_of(count, 'range')} {name!r}, {spell(total)} in all. The "
        "loader works ahead, too slowly."
    )
    starts, ends = windows(facts)
    low, mid = _saved(facts, waits, limits["faster"])
    # What is saved is what batches that come sooner leave, also where a rank waits for another one
    # that waits for a batch: the waits themselves are no node of the graph.
    sooner = 1.0 - 1.0 / limits["faster"]
    claims = [
        claim((starts, ends), ["input"], low=low, mid=mid, high=waits > 0, verb="remove"),
        claim((starts, ends), (), low=0.0, mid=sooner, high=1.0, verb="remove", threads=[ABSENT]),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _without_start(facts: RankFacts, waits: Int64s, limits: Limits) -> Int64s:
    """(steps,) the waits without that for the start of the workers, if there are steps enough."""
    known = np.where(facts.trusted, waits, 0)
    if facts.trusted.sum() < max(limits["steps"], 2):
        return known
    second, worst = np.argsort(known, kind="stable")[-2:]
    starts, ends = windows(facts)
    usual = 0.0 if worst == 0 else float(np.median((ends - starts - known)[facts.trusted]))
    if known[worst] > limits["starts"] * max(usual, known[second]):
        known[worst] = 0
    return known


def _saved(facts: RankFacts, waits: Int64s, faster: float) -> tuple[float, float]:
    """Share of the waits that is saved at least and likely.

    A queue evens out how long batches take, so that steps wait by turns: on average they take as
    long as the workers need for a batch, or the rest of the step if that is longer.
    """
    starts, ends = windows(facts)
    step, wait = float((ends - starts)[facts.trusted].mean()), float(waits[facts.trusted].mean())
    rest = step - wait
    return 0.0, (step - max(step / faster, rest)) / max(wait, 1.0)
