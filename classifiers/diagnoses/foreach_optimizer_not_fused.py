"""The optimiser passes over its tensors several times.

What it finds:
    Steps of Adam, AdamW or SGD by `_foreach_` operators: one kernel over all tensors for each
    operation of the update.

Why it costs time:
    Each of these kernels reads and writes arrays of the size of all parameters. Adam moves 18 such
    arrays in a step, AdamW 20; the fused kernel moves 7 in one pass.

How it is told apart:
    By the `_foreach_` operators inside of `Optimizer.step#Adam`, `#AdamW` and `#SGD`, for which
    PyTorch has a fused kernel. Plain SGD is one pass already, and fused optimisers launch no such
    operators. Only the time of the kernels counts, not their number.

Example:
    AdamW on a billion parameters in float32: its passes move 80 GB, in 27 ms at 3 TB/s; the fused
    kernel moves 28 GB, in 9 ms.

What to do:
    Ask for the fused kernel. Saved are 11 of 18 parts (Adam) or 3 of 8 (SGD with momentum) if it
    moves bytes as fast, and half of that at worst. It also needs no temporary copy of the state.

References:
    https://docs.pytorch.org/docs/stable/optim.html
    https://github.com/pytorch/pytorch/blob/v2.6.0/torch/optim/adam.py
    https://github.com/pytorch/pytorch/blob/v2.6.0/aten/src/ATen/native/cuda/fused_adam_utils.cuh
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._optimizers import (
    ADAM,
    SGD,
    fused_away,
    launched_by,
    step_of,
)
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

HAS_FUSED = re.compile(r"^Optimizer\.step#(?:Adam|AdamW|SGD)\.step$")
FOREACH = re.compile(r"_foreach_(?!norm|zero)")

AT_WORST = Threshold(
    0.5, "share of what fewer bytes save", "a choice: temporaries of small models stay in the cache"
)

DIAGNOSIS = Diagnosis(
    id="foreach_optimizer_not_fused",
    layer="kernels",
    title="The optimiser passes over its tensors several times",
    title_ok="No optimiser passes over its tensors more often than it must",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "adam": ADAM, "sgd": SGD, "at_worst": AT_WORST},
    how=(
        "torch.optim.AdamW(..., fused=True) (PyTorch 2.0 or later; Adam 1.13, SGD 2.3); Hugging "
        "Face: --optim adamw_torch_fused; apex.optimizers.FusedAdam, FusedSGD; Megatron-LM and "
        "DeepSpeed take a fused Adam where they find one."
    ),
    verify="Record again: `_fused_` operators stand for `_foreach_` under `Optimizer.step#`.",
    refuted_by="the step takes as long with fused=True",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for passes of optimisers that have a fused kernel."""
    step = step_of(facts)
    saved = fused_away(facts, _with_fused_kernel(facts, step), limits)
    chosen = facts.kernels & launched_by(facts, FOREACH) & (saved > 0)
    if not chosen.any():
        return DIAGNOSIS.quiet("No optimiser that has a fused kernel makes several passes.")
    time = leaf_in(facts, union_of(facts.model.work, chosen), "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Passes of optimisers over lists of tensors take {share:.1%} of the time."
        )
    work = facts.model.work
    worst = longest_op(facts, chosen)
    why = (
        f"{count_of(int(chosen.sum()), 'kernel')} of `_foreach_` operators pass over the "
        f"optimiser's tensors for {spell(per_step(facts, time))} of a step ({share:.0%}). "
        + worst.launches()
    )
    spans, high = (work.ts_ns[chosen], work.end_ns[chosen]), saved[chosen]
    claims = [claim(spans, ["memory_kernel"], low=limits["at_worst"] * high, mid=high, high=high)]
    return DIAGNOSIS.fires(why, claims, [worst.proof])


def _with_fused_kernel(facts: RankFacts, step: Int64s) -> NDArray[np.int64]:
    """(work,) the step where it is one of an optimiser with a fused kernel, else -1."""
    named = np.append(facts.origins.named(lambda name: bool(HAS_FUSED.match(name))), False)
    return np.where(named[step], step, -1)
