"""Norms of gradients are computed one tensor after the other.

What it finds:
    Runs of 16 or more kernels that compute norms, between backward and the optimiser's step, and
    the multiplications of the gradients that follow.

Why it costs time:
    Most gradients are small: their norm takes less time than its launch. A kernel over the list of
    all gradients is launched once.

How it is told apart:
    By the operators `aten::linalg_vector_norm` and `aten::norm` with at most two other kernels
    between (a cast, a sum), before a step of an optimiser and after the backward pass. Norms that
    layers compute lie in forward or backward; LARS and LAMB compute theirs between updates.

Example:
    135 gradients on an accelerator whose launches take 1.5 ms: 0.6 s for norms, 0.6 s for scaling.

What to do:
    Compute the norms with one call. At least half of the idle time before the kernels is saved,
    and what a kernel takes however small its tensor is.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    https://github.com/pytorch/pytorch/blob/v2.6.0/torch/nn/utils/clip_grad.py
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._enclosing import AUTOGRAD, top_is
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._optimizers import optimizer_steps
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
from perfdiag.trace_schemas.recording import Int64s

Bools = NDArray[np.bool_]

NORM = re.compile(r"^aten::(?:linalg_(?:vector_)?)?norm$")
SCALING = "aten::mul_"

BETWEEN = Threshold(
    2, "kernels", "a choice: one to cast the gradient, one to add its norm to the total"
)

DIAGNOSIS = Diagnosis(
    id="gradient_clipping_per_tensor",
    layer="framework",
    title="Norms of gradients are computed one tensor after the other",
    title_ok="No norms of gradients are computed one by one",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={
        "share": MATERIAL,
        "tensors": TENSORS,
        "between": BETWEEN,
        "fixed": FIXED,
        "launches": LAUNCHES,
    },
    how=(
        "torch.nn.utils.clip_grad_norm_(parameters, max_norm, foreach=True), the default on CUDA "
        "from PyTorch 2.0 on; in loops of your own torch._foreach_norm(grads) and "
        "torch._foreach_mul_(grads, scale); torch.nn.utils.get_total_norm(grads) (2.6) for logs. "
        "Apex and Megatron-LM: multi_tensor_applier(amp_C.multi_tensor_l2norm, ...)."
    ),
    verify="Record again: one `aten::_foreach_norm` stands for the operators before the step.",
    refuted_by="the tensors whose norms are computed are no gradients",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for runs of norms before steps of optimisers."""
    norms = _norms(facts, limits)
    if not norms.any():
        return DIAGNOSIS.quiet("No run of norms lies between backward and an optimiser's step.")
    chosen = norms | _scalings(facts, norms, limits)
    group = _awaiting(facts)
    idle = spans(facts, chosen, group)
    time = time_of(facts, chosen, idle)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Norms of gradients one by one take {share:.1%} of the time.")
    worst = longest_op(facts, norms)
    why = (
        f"{count_of(int(norms.sum()), 'kernel')} compute norms one gradient after the other and "
        f"{int((chosen & ~norms).sum())} scale them; with the idle times between they take "
        f"{spell(per_step(facts, time))} of a step ({share:.0%}). " + worst.launches()
    )
    return DIAGNOSIS.fires(why, one_by_one(facts, chosen, group, idle, limits, 0.0), [worst.proof])


def _norms(facts: RankFacts, limits: Limits) -> Bools:
    """(work,) kernels of norms, one soon after the other, that a step of an optimiser awaits."""
    norms = facts.kernels & top_is(facts, lambda name: bool(NORM.match(name)))
    return _before_step(facts, long_runs(facts, norms, limits["tensors"], int(limits["between"])))


def _scalings(facts: RankFacts, norms: Bools, limits: Limits) -> Bools:
    """(work,) multiplications, one right after the other, that follow norms of the same pass."""
    scalings = facts.kernels & top_is(facts, lambda name: name == SCALING)
    chosen = _before_step(facts, long_runs(facts, scalings, limits["tensors"]))
    launched = facts.model.work.launch_ts_ns
    since = _passed(_backward(facts), launched)
    known = np.isin(since, since[norms]) & (_passed(np.sort(launched[norms]), launched) > 0)
    return np.asarray(chosen & known, np.bool_)


def _before_step(facts: RankFacts, chosen: Bools) -> Bools:
    """(work,) what is launched before a step of an optimiser ends, with no backward between."""
    ends, backward, follows = _ends(facts), _backward(facts), _awaiting(facts)
    until = np.append(ends, np.iinfo(np.int64).max)[follows]
    same = _passed(backward, facts.model.work.launch_ts_ns) == _passed(backward, until)
    return np.asarray(chosen & same & (follows < len(ends)), np.bool_)


def _ends(facts: RankFacts) -> Int64s:
    """When steps of optimisers end, in order."""
    return np.sort(facts.model.hosts.end_ns[optimizer_steps(facts)])


def _awaiting(facts: RankFacts) -> Int64s:
    """(work,) number of the step of an optimiser that ends next after each launch."""
    return _passed(_ends(facts), facts.model.work.launch_ts_ns)


def _backward(facts: RankFacts) -> Int64s:
    """When work of backward passes was launched, in order."""
    backward = facts.origins.under(lambda name: name.startswith(AUTOGRAD))
    return np.sort(facts.model.work.launch_ts_ns[backward])


def _passed(times: Int64s, at: Int64s) -> Int64s:
    """(n,) how many of some sorted times have passed."""
    return np.searchsorted(times, at, "right").astype(np.int64)
