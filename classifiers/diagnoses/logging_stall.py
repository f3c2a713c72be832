"""Logging, metrics or a progress bar stop the step.

What it finds:
    Time in which the device is idle while the thread that gives it work logs, prints, computes
    metrics on the host or draws a progress bar.

Why it costs time:
    To log a value is to wait for it: the queue drains, and only then the text is made and written
    to a terminal, a file or a server. The device has nothing to do meanwhile.

How it is told apart:
    A range or frame of logging must cover idle time, on a thread that launches work; under a full
    queue it costs nothing. A value that is read inside such a range counts here; one that is read
    anywhere else is a synchronisation like any other.

Example:
    `wandb.log` of the loss in every step, 6 ms each.

What to do:
    Log every N steps, from values that are summed on the device; hand what is logged to a thread of
    its own; redraw progress bars less often. What is logged every tenth step saves nine tenths;
    half is the least, where some values are needed in every step.

References:
    https://lightning.ai/docs/pytorch/stable/extensions/logging.html
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://tqdm.github.io/docs/tqdm/
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_of,
    leaf_in,
    per_step,
    ranges,
    share_of,
    spell,
    threads_of,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import classify_range

RARER = Threshold(
    10,
    "times as rare",
    "a choice: Lightning logs every 50 steps by default, Transformers every 500",
)
STAYS = Threshold(0.5, "share", "a choice: half of what is logged is needed in every step at worst")

DIAGNOSIS = Diagnosis(
    id="logging_stall",
    layer="framework",
    title="Logging stops the step",
    title_ok="No logging that the device waits for",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "rarer": RARER, "stays": STAYS},
    how=(
        "Log every N steps: Trainer(log_every_n_steps=50) of Lightning 1.0 or later, "
        "TrainingArguments(logging_steps=100) of Transformers 4.0, --log-interval 100 of "
        "Megatron-LM, steps_per_print=100 in DeepSpeed's configuration. Sum values on the device "
        "and log them detached, a step later (tensor.to('cpu', non_blocking=True) into pinned "
        "memory, PyTorch 1.0 or later); tqdm(mininterval=5); logging.handlers.QueueHandler for "
        "files and servers; no print() of tensors."
    ),
    verify="Record again: the ranges of logging lie in few steps, and `host_other` shrinks.",
    refuted_by="the step takes as long with logging switched off",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time that logging covers."""
    logs = ranges(facts, lambda name: classify_range(name) == "logging")
    logged = union_of(facts.model.hosts, logs)
    lost = leaf_in(facts, logged, *HOST_IDLE)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Logging holds up the device for {share:.1%} of the time.")
    name, total, count, proof = longest_range(facts, logs)
    reads = per_step(facts, leaf_in(facts, logged, "sync"))
    steps = int(np.count_nonzero(lost[facts.trusted]))
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) while the "
        f"host logs, in {steps} of {count_of(int(facts.trusted.sum()), 'step')}: "
        f"{count_of(count, 'range')} {name!r}, {spell(total)} in all."
        + (f" {spell(reads)} of it follows values that are read." if reads else "")
    )
    gone = 1.0 - limits["stays"]
    likely = max(1.0 - 1.0 / limits["rarer"], gone)
    threads = threads_of(facts, logs)
    claims = [
        claim(logged, HOST_IDLE, low=gone, mid=likely, high=1.0, verb="detach"),
        claim(logged, (), low=gone, mid=likely, high=1.0, verb="remove", threads=threads),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])
