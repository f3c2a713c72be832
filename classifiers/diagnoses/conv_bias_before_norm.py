"""Convolutions add a bias that the norm behind them takes away.

What it finds:
    Kernels that add the bias of a convolution where the next operator is a batch or instance norm,
    and those that sum its gradient.

Why it costs time:
    The norm subtracts the mean of each channel, and with it the bias. The kernel that adds it reads
    and writes the whole output; its gradient is zero but reads the whole output's gradient.

How it is told apart:
    An addition that a convolution itself launches, and the operator that its thread calls next. The
    sums of the backward pass are counted only if every convolution with a bias has such a norm:
    the trace does not tell which belongs to which.

Example:
    A U-Net of `Conv2d(64, 64, 3)` and `BatchNorm2d(64)`.

What to do:
    Make the convolution without a bias; where a trained model only runs, fold the norm into the
    convolution. All of the time of these kernels is saved.

References:
    https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    https://github.com/pytorch/pytorch/blob/main/torch/profiler/_pattern_matcher.py
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_of,
    idle_before,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

CONVOLUTION = re.compile(r"^aten::_?conv(?:olution|_transpose)?(?:[123]d)?$")
NORMS = ("aten::batch_norm", "aten::instance_norm", "aten::native_batch_norm", "SyncBatchNorm")
ADDS = ("aten::add_", "aten::add")
MIOPEN_BIAS = "OpTensorFwdBias"

SURE = Threshold(1.0, "share", "the norm's result is the same without the bias: nothing stays")

DIAGNOSIS = Diagnosis(
    id="conv_bias_before_norm",
    layer="kernels",
    title="Convolutions add a bias that the next norm removes",
    title_ok="No bias of a convolution in front of a norm",
    needs=("device", "host"),
    confidence=0.9,
    thresholds={"share": MATERIAL, "sure": SURE},
    how=(
        "Conv2d(..., bias=False) in front of BatchNorm and InstanceNorm; where a trained model "
        "only runs, torch.nn.utils.fusion.fuse_conv_bn_eval(conv, bn)."
    ),
    verify="Record again: no `aten::add_` inside the convolutions.",
    refuted_by="the norm does not subtract the mean of each channel",
)

Bools = NDArray[np.bool_]


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for additions inside convolutions that a norm follows."""
    added = _additions(facts)
    convolution = _outermost_convolution(facts)[facts.origins.op]
    if not added.any():
        return DIAGNOSIS.quiet("No convolution launches an addition of its bias.")
    biased = np.unique(convolution[added])
    normed = biased[_before_norm(facts, biased)]
    chosen = added & np.isin(convolution, normed)
    if len(normed) == len(biased):
        chosen |= _bias_gradients(facts)
    union = union_of(facts.model.work, chosen)
    time = leaf_in(facts, union, "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Biases in front of norms take {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(len(normed), 'convolution')} with a bias run in front of a norm. Adding the "
        f"bias and summing its gradient takes {spell(per_step(facts, time))} of a step "
        f"({share:.0%}). All {count_of(count, 'kernel')} {brief(name)!r} together take "
        f"{spell(total)}."
    )
    claims = [
        claim(union, ["memory_kernel"], low=limits["sure"], high=1.0),
        claim(idle_before(facts, chosen), HOST_IDLE, low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _additions(facts: RankFacts) -> Bools:
    """(work,) kernels that add the bias inside a convolution."""
    origins = facts.origins
    adds = origins.op_is(lambda name: name in ADDS)
    adds |= facts.model.work.name.where(MIOPEN_BIAS)
    return np.asarray(facts.kernels & adds & origins.under(_is_convolution), np.bool_)


def _bias_gradients(facts: RankFacts) -> Bools:
    """(work,) kernels that sum the gradient of a bias inside a convolution's backward pass."""
    sums = facts.origins.op_is(lambda name: name == "aten::sum")
    backward = facts.origins.under(lambda name: name == "aten::convolution_backward")
    return np.asarray(facts.kernels & sums & backward, np.bool_)


def _is_convolution(name: str) -> bool:
    return CONVOLUTION.match(name) is not None


def _outermost_convolution(facts: RankFacts) -> Int64s:
    """(hosts + 1,) the outermost convolution around each range, or -1; the last row is for -1."""
    is_one = np.append(facts.origins.named(_is_convolution), [False])
    parent = np.append(facts.origins.parent, [ABSENT])
    found = np.where(is_one, np.arange(len(is_one)), ABSENT)
    above = parent
    while (above != ABSENT).any():
        found = np.where(is_one[above], above, found)
        above = parent[above]
    return found


def _before_norm(facts: RankFacts, convolutions: Int64s) -> Bools:
    """(n,) whether the next operator on the thread of each convolution is a norm.

    In training a norm counts its batches first (`num_batches_tracked.add_(1)`).
    """
    hosts = facts.model.hosts
    counting = hosts.name.where("aten::add_")
    ops = np.flatnonzero(hosts.kind.where("host_op") & ~counting)
    begin, until = int(hosts.ts_ns.min()), int(hosts.end_ns.max()) + 1
    place = hosts.lane * (until - begin) + hosts.ts_ns - begin
    after = (hosts.lane * (until - begin) + hosts.end_ns - begin)[convolutions]
    ops = ops[np.argsort(place[ops], kind="stable")]
    at = np.searchsorted(place[ops], after)
    following = ops[np.minimum(at, len(ops) - 1)]
    same_thread = hosts.lane[following] == hosts.lane[convolutions]
    norm = hosts.name.where(*NORMS)[following]
    return np.asarray(norm & same_thread & (at < len(ops)), np.bool_)
