"""The optimiser updates one parameter after the other.

What it finds:
    Steps of an optimiser that launch 50 small kernels or more, none of which works on a list of
    tensors.

Why it costs time:
    Adam needs about a dozen kernels for each parameter, most of which take less time than their
    launch, and each pass reads and writes the tensor again. A kernel over the list of all tensors
    is launched once; a fused one makes one pass.

How it is told apart:
    By what runs inside of `Optimizer.step#...`, which PyTorch records for every optimiser: kernels
    of pointwise operators, and no operator called `_foreach_` or `_fused_`, nor a kernel of that
    family. Forward and backward inside of the step, as Lightning has them, are left out.

Example:
    Adam on 135 parameters of a recommender on MTIA: 2,025 kernels of 0.1 ms, 1.5 ms apart.

What to do:
    Ask for the fused or the multi-tensor implementation. At least half of the idle time before the
    kernels is saved, and what a kernel takes however small its tensor; at best one pass is left.

References:
    https://docs.pytorch.org/docs/stable/optim.html
    https://github.com/pytorch/pytorch/blob/v2.6.0/torch/profiler/_pattern_matcher.py
    https://docs.pytorch.org/tutorials/recipes/compiling_optimizer.html
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._enclosing import top_is
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._optimizers import (
    ADAM,
    SGD,
    any_in,
    fused_away,
    launched_by,
    step_of,
)
from perfdiag.classifiers.diagnoses._per_tensor import (
    FIXED,
    LAUNCHES,
    TENSORS,
    long_runs,
    one_by_one,
    spans,
    time_of,
)
from perfdiag.classifiers.diagnoses._shared import count_of, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

Bools = NDArray[np.bool_]

POINTWISE = ("copy", "elementwise", "fill")
TOGETHER = re.compile(r"_foreach_|_fused_|multi_?tensor", re.IGNORECASE)
"""Operators over lists of tensors."""

KERNELS = Threshold(
    50, "kernels in a step", "a choice: four parameters of Adam; lists of tensors need 10 to 20"
)

DIAGNOSIS = Diagnosis(
    id="single_tensor_optimizer",
    layer="kernels",
    title="The optimiser updates one tensor after the other",
    title_ok="No optimiser updates many tensors one by one",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={
        "share": MATERIAL,
        "kernels": KERNELS,
        "tensors": TENSORS,
        "fixed": FIXED,
        "launches": LAUNCHES,
        "adam": ADAM,
        "sgd": SGD,
    },
    how=(
        "torch.optim.AdamW(..., fused=True) (PyTorch 2.0 or later; SGD 2.3), or foreach=True, the "
        "default on CUDA from 2.0 on unless foreach=False or a tensor subclass stands against it; "
        "torch.compile(optimizer.step) (2.2) or torch._foreach_ functions for optimisers of your "
        "own. apex.optimizers.FusedAdam, deepspeed.ops.adam.FusedAdam. JAX: update inside jit."
    ),
    verify="Record again: `Optimizer.step#` launches `_fused_` or `_foreach_` operators.",
    refuted_by="the step takes as long with fused=True",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for steps of optimisers made of many small kernels."""
    step = step_of(facts)
    chosen = _one_by_one(facts, step, limits)
    if not chosen.any():
        return DIAGNOSIS.quiet(
            f"No optimiser's step launches {limits['kernels']:.0f} kernels one by one."
        )
    idle = spans(facts, chosen, step)
    time = time_of(facts, chosen, idle)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Updating tensors one by one takes {share:.1%} of the time.")
    worst = longest_op(facts, chosen)
    why = (
        f"{count_of(int(chosen.sum()), 'kernel')} in "
        f"{count_of(len(np.unique(step[chosen])), 'optimiser step')} update one tensor after the "
        f"other; with the idle times between they take {spell(per_step(facts, time))} of a step "
        f"({share:.0%}). " + worst.launches()
    )
    fused = fused_away(facts, step, limits)[chosen]
    return DIAGNOSIS.fires(why, one_by_one(facts, chosen, step, idle, limits, fused), [worst.proof])


def _one_by_one(facts: RankFacts, step: Int64s, limits: Limits) -> Bools:
    """(work,) pointwise kernels of steps that launch many and work on no list of tensors."""
    family = facts.model.work.family
    small = facts.kernels & (step != ABSENT) & family.where(*POINTWISE)
    small &= ~_scaling(facts, limits["tensors"])
    together = facts.here & (launched_by(facts, TOGETHER) | family.where("optimizer"))
    count = np.bincount(step[small], minlength=1)
    rows, found = np.flatnonzero(small), np.zeros(len(small), bool)
    found[rows] = count[step[rows]] >= limits["kernels"]
    return np.asarray(found & ~any_in(step, together), np.bool_)


def _scaling(facts: RankFacts, least: float) -> Bools:
    """(work,) runs of the same multiplication: clipping, which wrappers do inside of their step."""
    return long_runs(facts, facts.kernels & top_is(facts, lambda name: name == "aten::mul_"), least)
