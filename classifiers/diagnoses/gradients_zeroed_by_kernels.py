"""Gradients are set to zero by kernels instead of being dropped.

What it finds:
    Fills that set gradients to zero: under `zero_grad`, or as a run of `aten::zero_`.

Why it costs time:
    Each gradient is written once more, by a kernel of its own, and backward then reads it again to
    add to the zeros. A gradient that is None is replaced: no fill, no addition.

How it is told apart:
    The fills must be launched under a range of that name or, in a job that runs autograd, by at
    least 16 zero_() calls in a row outside of other operators. Fills of new tensors and single
    buffers, such as the contiguous gradients of Megatron-LM, are neither.

Example:
    zero_grad(set_to_none=False) on 20 linear layers: 40 fills of 5 us in each step of 17 ms.

What to do:
    Drop the gradients. All fills are saved, the launches that the device waits for with them at
    best, and so is the first addition to each gradient. Code that reads gradients of parameters
    that took no part in the step must expect None.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://github.com/microsoft/DeepSpeed/pull/4438
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._enclosing import of_autograd, top_is
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._per_tensor import TENSORS, long_runs
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
    count_of,
    idle_before,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits
from perfdiag.classifiers.facts import RankFacts

Bools = NDArray[np.bool_]

ZERO_GRAD = re.compile(r"zero[_ ]grad", re.IGNORECASE)
ZEROING = ("aten::zero_", "aten::_foreach_zero_")
ACCUMULATION = "torch::autograd::AccumulateGrad"
FILLS = ("memory_kernel", "copy")
"""Leaves of fills: by a kernel or by a memset."""

DIAGNOSIS = Diagnosis(
    id="gradients_zeroed_by_kernels",
    layer="framework",
    title="Gradients are set to zero by kernels",
    title_ok="No kernels set gradients to zero",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "tensors": TENSORS},
    how=(
        "optimizer.zero_grad(set_to_none=True) or model.zero_grad(set_to_none=True): the default "
        "from PyTorch 2.0, an argument from 1.7; in a loop of your own p.grad = None instead of "
        "p.grad.zero_()."
    ),
    verify="Record again: no fills lie under Optimizer.zero_grad.",
    refuted_by="the tensors that are set to zero are no gradients",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for fills of gradients."""
    fills = _fills(facts, limits)
    if not fills.any():
        return DIAGNOSIS.quiet("No kernels set gradients to zero.")
    time = leaf_in(facts, union_of(facts.model.work, fills), *FILLS)
    time += leaf_in(facts, idle_before(facts, fills), *LAUNCHING)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Setting gradients to zero takes {share:.1%} of the time.")
    work = facts.model.work
    kind = "fill" if (fills & work.kind.where("fill")).sum() * 2 > fills.sum() else "kernel"
    worst = longest_op(facts, fills, kind)
    why = (
        f"{count_of(int(fills.sum()), 'fill')} of gradients and the idle times before them take "
        f"{spell(per_step(facts, time))} of a step ({share:.0%}). " + worst.launches(kind)
    )
    return DIAGNOSIS.fires(why, _claims(facts, fills), [worst.proof])


def _fills(facts: RankFacts, limits: Limits) -> Bools:
    """(work,) fills under `zero_grad`, and long runs of `zero_` where there is autograd."""
    origins, work = facts.origins, facts.model.work
    zeroing = top_is(facts, lambda name: name in ZEROING)
    filling = zeroing | work.kind.where("fill") | work.family.where("fill")
    fills = facts.here & filling & origins.under(lambda name: bool(ZERO_GRAD.search(name)))
    if of_autograd(facts).any():
        fills |= long_runs(facts, facts.here & zeroing, limits["tensors"])
    return np.asarray(fills & work.kind.where("kernel", "fill"), np.bool_)


def _claims(facts: RankFacts, fills: Bools) -> list[Claim]:
    origins, work = facts.origins, facts.model.work
    adds = facts.kernels & origins.op_is(lambda name: name == "aten::add_")
    adds &= origins.under(lambda name: name.endswith(ACCUMULATION))
    # Each gradient is added to once a micro-batch; the first of these goes.
    first = min(1.0, int(fills.sum()) / max(int(adds.sum()), 1))
    return [
        claim((work.ts_ns[fills], work.end_ns[fills]), FILLS, low=1.0, high=1.0),
        claim(idle_before(facts, fills), LAUNCHING, low=0.0, high=1.0),
        claim((work.ts_ns[adds], work.end_ns[adds]), FILLS, low=0.0, high=first),
    ]
