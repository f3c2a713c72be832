"""Forward work runs again in the backward pass.

What it finds:
    Operators of the forward pass that backward runs once more, because their results were not kept:
    activation checkpointing.

Why it costs time:
    Memory is bought with time: a checkpointed layer runs forward twice. For a transformer that is
    checkpointed as a whole this is a quarter of all arithmetic.

How it is told apart:
    A node of autograd must be a checkpoint, or run two kinds or more of operators that only forward
    has (`aten::miopen_convolution` where backward has `aten::convolution_backward`), before its
    own. Functions that recompute one activation themselves are not counted. Instructions of XLA
    that it has rematerialised are called so.

Example:
    A ResNet with checkpointed blocks on MI300: 200 kernels, 1.4 ms of a step of 19 ms.

What to do:
    Keep more where memory allows it: the results of matrix products and attention, or all of some
    layers. Nothing is saved where memory is full, all of the recomputation where it is not.

References:
    https://docs.pytorch.org/docs/stable/checkpoint.html
    https://pytorch.org/blog/activation-checkpointing-techniques/
    https://arxiv.org/abs/2205.05198
    https://docs.jax.dev/en/latest/gradient-checkpointing.html
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._enclosing import enclosing, of_autograd
from perfdiag.classifiers.diagnoses._figures import longest_op, longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
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

Bools = NDArray[np.bool_]

KERNELS = ("compute_kernel", "memory_kernel", "kernel_unclassified")

CHECKPOINT = re.compile(r"Checkpoint\w*Backward")
COMPILED = "CompiledFunction"
REMATERIALISED = re.compile(r"\.remat\d*(?:\.|$)")
"""XLA calls the copy of an instruction so."""

FORWARD = re.compile(
    r"^aten::(?:addmm|baddbmm|(?:cudnn|miopen|mkldnn)_convolution\w*|convolution_overrideable"
    r"|_?conv_depthwise[23]d|(?:cudnn|miopen|native)_batch_norm|_batch_norm_with_update"
    r"|native_(?:layer|group)_norm|_fused_rms_norm|rms_norm|gelu|silu_?|elu_?|hardswish_?|softplus"
    r"|leaky_relu_?|relu_?|clamp_min_?|_(?:log_)?softmax|native_dropout|rsqrt"
    r"|_(?:flash|efficient|cudnn)_attention_forward|_scaled_dot_product_\w*attention\w*"
    r"|max_pool2d_with_indices|avg_pool2d|_adaptive_avg_pool2d|upsample_\w+|_cudnn_rnn|miopen_rnn"
    r"|nll_loss\w*_forward)$|(?:flash_attn|fmha)\w*(?:::|_)\w*(?:fwd|forward)"
)
BACKWARD = re.compile(r"_backward(?:_|$)")

KINDS = Threshold(
    2, "operators", "a choice: functions that recompute their activation run one such operator"
)

DIAGNOSIS = Diagnosis(
    id="recomputation",
    layer="parallelism",
    title="Forward work runs again in the backward pass",
    title_ok="No forward work runs again in the backward pass",
    needs=("device",),
    confidence=0.5,
    thresholds={"share": MATERIAL, "kinds": KINDS},
    how=(
        "Keep what is dear to compute: torch.utils.checkpoint.checkpoint(..., context_fn=...) with "
        "create_selective_checkpoint_contexts (PyTorch 2.4 or later); checkpoint fewer layers "
        "(torchtitan: --activation_checkpoint.mode=selective; Megatron-LM: "
        "--recompute-granularity selective, --recompute-num-layers); "
        "torch._functorch.config.activation_memory_budget=0.5 (2.4) with torch.compile. JAX: "
        "jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable)."
    ),
    verify="Record again: less forward work in backward, and peak memory below the device's.",
    refuted_by="the job runs out of memory with one layer less checkpointed",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for forward work inside of the backward pass."""
    again = facts.kernels & run_again(facts, limits["kinds"])
    by_xla = facts.kernels & facts.model.work.name.map(_rematerialised, np.bool_)
    if not (again | by_xla).any():
        return DIAGNOSIS.quiet("No forward work runs again in the backward pass.")
    chosen = again | by_xla
    time = leaf_in(facts, union_of(facts.model.work, chosen), *KERNELS)
    time += leaf_in(facts, idle_before(facts, chosen), *LAUNCHING)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Recomputation takes {share:.1%} of the time.")
    name, total, count, proof = (longest_op if again.any() else longest_work)(facts, chosen)
    why = (
        f"Forward work that runs again in backward takes {spell(per_step(facts, time))} of a step "
        f"({share:.0%}): {int(chosen.sum())} kernels and the idle times before them. First and "
        f"second runs of {brief(name)!r} together are {count} kernels of {spell(total)} in all."
    )
    spans = (facts.model.work.ts_ns[chosen], facts.model.work.end_ns[chosen])
    claims = [
        claim(spans, KERNELS, low=0.0, high=1.0),
        claim(idle_before(facts, chosen), LAUNCHING, low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def run_again(facts: RankFacts, kinds: float) -> Bools:
    """(work,) what nodes of autograd launch before their own work: a forward pass, run again.

    Args:
        facts: the rank.
        kinds: of forward operators in one node that are no work of its own.
    """
    nodes, hosts = of_autograd(facts), facts.model.hosts
    node = enclosing(facts, nodes)
    checkpoints = nodes & facts.origins.named(lambda name: bool(CHECKPOINT.search(name)))
    compiled = facts.origins.inside(nodes) & hosts.name.where(COMPILED)
    again = np.append(checkpoints, False)[node] | (enclosing(facts, compiled) != ABSENT)
    return np.asarray(again | _before_last_forward(facts, node, kinds), np.bool_)


def _before_last_forward(facts: RankFacts, node: Int64s, kinds: float) -> Bools:
    """(work,) what nodes with several kinds of forward operators launch up to the last of these."""
    origins, launched = facts.origins, facts.model.work.launch_ts_ns
    forward = (node != ABSENT) & origins.op_is(_is_forward)
    code = facts.model.hosts.name.codes[origins.op[forward]]
    pairs = np.unique(np.stack((node[forward], code)), axis=1)
    count = np.bincount(pairs[0], minlength=len(facts.model.hosts.id) + 1)
    last = np.full(len(count), ABSENT, np.int64)
    np.maximum.at(last, node[forward], launched[forward])
    return np.asarray((count[node] >= kinds) & (launched <= last[node]), np.bool_)


def _is_forward(name: str) -> bool:
    return bool(FORWARD.search(name)) and not BACKWARD.search(name)


def _rematerialised(name: str) -> bool:
    return bool(REMATERIALISED.search(name))
