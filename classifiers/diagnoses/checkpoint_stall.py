"""Saving a checkpoint stops the step.

What it finds:
    Time in which the device is idle, or only copies weights to the host, while the thread that
    gives it work saves a checkpoint.

Why it costs time:
    A synchronous save copies every tensor to the host, serialises it and writes it to storage, on
    the thread that trains. The slowest part is the storage; the device has no part in it.

How it is told apart:
    A range or frame of saving must cover idle time or start the copies, on a thread that launches
    kernels: a writer in the background costs nothing. Loading at the start is no save. Activation
    checkpointing has the name only.

Example:
    `torch.save` for 2 s in one step of a hundred.

What to do:
    Save asynchronously: what the training waits for is then the copy to the host, best into pinned
    memory that is kept, on a stream of its own. Where a save is asynchronous already, that copy and
    the wait for the save before it are what is left. The saving is a mean over the steps that were
    recorded; a job that saves more rarely gains as much less.

References:
    https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html
    https://pytorch.org/blog/reducing-checkpointing-times
    https://github.com/pytorch/torchtitan/blob/main/docs/checkpoint.md
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    Intervals,
    count_of,
    leaf_in,
    per_step,
    share_of,
    spell,
    threads_of,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import covered
from perfdiag.trace_schemas.host_ranges import classify_range

LOADS = re.compile(r"(?i)(?<![a-z])(?:load|restore|read)")
ASYNC = re.compile(r"(?i)async")

FASTER = Threshold(
    23.6,
    "times",
    "7B parameters, 148.8 s to 6.3 s: https://pytorch.org/blog/reducing-checkpointing-times",
)
REMAINS = Threshold(
    0.5, "share", "a choice: staging and the save before last half as long at worst"
)

DIAGNOSIS = Diagnosis(
    id="checkpoint_stall",
    layer="framework",
    title="Saving a checkpoint stops the step",
    title_ok="No checkpoint that the device waits for",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "faster": FASTER, "remains": REMAINS},
    how=(
        "torch.distributed.checkpoint.async_save(state, storage_writer=FileSystemWriter(path, "
        "cache_staged_state_dict=True)) (PyTorch 2.4 or later; pinned buffers that are kept). "
        "torchtitan: --checkpoint.async_mode async_with_pinned_mem; Megatron-LM: --async-save with "
        "--ckpt-format torch_dist; Lightning: the plugin AsyncCheckpointIO(); JAX: "
        "orbax.checkpoint.AsyncCheckpointer(). Or save less often, and each rank its own shard."
    ),
    verify="Record a step that saves: the range of saving is short, and the device goes on.",
    refuted_by="steps that save take as long as those that do not",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time and copies that saving covers."""
    saves = _saves(facts)
    saved = union_of(facts.model.hosts, saves)
    idle, copies = leaf_in(facts, saved, *HOST_IDLE), _copies(facts, saved)
    copied = leaf_in(facts, copies, "copy")
    share = share_of(facts, idle + copied)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Saving holds up the device for {share:.1%} of the time.")
    name, total, count, proof = longest_range(facts, saves)
    steps = int(np.count_nonzero((idle + copied)[facts.trusted]))
    ahead = bool((saves & facts.origins.named(lambda name: bool(ASYNC.search(name)))).any())
    why = (
        f"While a checkpoint is saved, the device is idle for {spell(per_step(facts, idle))} of a "
        f"step and copies for {spell(per_step(facts, copied))} ({share:.0%}), in {steps} of "
        f"{count_of(int(facts.trusted.sum()), 'step')}: {count_of(count, 'range')} {name!r}, "
        f"{spell(total)} in all."
        + (" It is asynchronous already; this is what staging and waiting cost." if ahead else "")
    )
    high = 1.0 - 1.0 / limits["faster"]
    low = 0.0 if ahead else min(1.0 - limits["remains"], high)
    claims = [
        claim(
            saved, HOST_IDLE, low=low, high=high, verb="remove", threads=threads_of(facts, saves)
        ),
        claim(copies, ["copy"], low=0.0, high=high),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _saves(facts: RankFacts) -> NDArray[np.bool_]:
    """(hosts,) ranges of saving; a thread that only copies works in the background."""
    lanes = np.append(facts.model.work.launch_lane[facts.kernels], facts.states.main_lane)
    named = facts.origins.named(
        lambda name: classify_range(name) == "checkpoint" and not LOADS.search(name)
    )
    return np.asarray(named & np.isin(facts.model.hosts.lane, lanes), np.bool_)


def _copies(facts: RankFacts, saved: Intervals) -> Intervals:
    """When copies run that were launched while saving."""
    work = facts.model.work
    here = facts.here & work.kind.where("copy") & covered(*saved, work.launch_ts_ns)
    return union_of(work, here)
