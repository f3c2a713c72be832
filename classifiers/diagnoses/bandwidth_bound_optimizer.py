"""The optimiser's step moves its states through memory in full precision.

What it finds:
    Fused steps of Adam with both moments in float32 that the memory's bandwidth bounds.

Why it costs time:
    A fused step reads the parameter, the gradient and both moments, and writes all but the
    gradient: seven arrays of the parameters' size, 28 bytes of a parameter in float32. 16 of them
    are the moments.

How it is told apart:
    By the kernels of `aten::_fused_adam_` and `aten::_fused_adamw_`, the recorded sizes of their
    lists, and the bytes that they move for each parameter. Steps in several passes are
    `foreach_optimizer_not_fused` and `single_tensor_optimizer`; 16-bit states are none. An
    optimiser that takes a small part of the step is not worth a change of its precision.

Example:
    AdamW on 100 million parameters: 2.8 GB in 1 ms on an H100, of a step of 5 ms.

What to do:
    Keep the moments in fewer bits: 16-bit moments save 8 of 28 bytes, 8-bit ones 12 (their scales
    are one number for hundreds of elements). Or shard the states over the ranks (ZeRO), which
    divides the bytes by their number for a reduce-scatter and an all-gather, or step less often.

References:
    https://arxiv.org/abs/2110.02861
    https://huggingface.co/docs/bitsandbytes/main/en/optimizers
    https://arxiv.org/abs/1910.02054
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.costs import Shapes
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._roofs import KERNEL_LEAVES, NO_ROOF, Roofs, asked, roofs_of
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
from perfdiag.classifiers.roofline import Bound
from perfdiag.trace_schemas.recording import Int64s

FUSED_ADAM = ("aten::_fused_adam_", "aten::_fused_adamw_")

PART = Threshold(
    0.05, "share of the steps", "a choice: for less nobody changes the precision of the states"
)
FULL = Threshold(
    28.0,
    "bytes of a parameter",
    "seven arrays of float32: parameter and two moments both ways, gradient in "
    "(https://github.com/pytorch/pytorch/blob/v2.6.0/aten/src/ATen/native/cuda/fused_adam_utils.cuh)",
)
HALF = Threshold(
    8 / 28, "share of the bytes", "two moments both ways, 16 of 28 bytes, in half as many bits"
)
EIGHT = Threshold(
    12 / 28,
    "share of the bytes",
    "https://arxiv.org/abs/2110.02861: two moments both ways, 16 of 28 bytes, in 8 of 32 bits",
)

DIAGNOSIS = Diagnosis(
    id="bandwidth_bound_optimizer",
    layer="framework",
    title="The optimiser's step is bound by the memory that its states take",
    title_ok="No optimiser's step is bound by the memory of its states",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={"share": MATERIAL, "part": PART, "full": FULL, "half": HALF, "eight": EIGHT},
    how=(
        "bitsandbytes.optim.AdamW8bit(...) or --optim adamw_bnb_8bit (Transformers), "
        "torchao.optim.AdamW8bit (torchao 0.9 or later); Megatron-LM "
        "--use-precision-aware-optimizer with --exp-avg-dtype and --exp-avg-sq-dtype, and "
        "--use-distributed-optimizer; "
        "torch.distributed.optim.ZeroRedundancyOptimizer(...) or fully_shard(...) (PyTorch 2.6). "
        "JAX: optax.adamw(mu_dtype=jnp.bfloat16)."
    ),
    verify="Record again: the optimiser's kernels take as much less time as their bytes are fewer.",
    refuted_by="the loss gets worse with moments in fewer bits",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for fused steps that move float32 moments at the memory's bandwidth."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    work = facts.model.work
    rows = np.flatnonzero(roofs.bound_by(Bound.MEMORY) & _of_fused_adam(facts))
    rows, each = _in_full(roofs, rows, limits["full"])
    chosen = np.isin(np.arange(len(work.id)), rows)
    time = leaf_in(facts, union_of(work, chosen), *KERNEL_LEAVES)
    part = share_of(facts, time)
    if part < max(limits["part"], limits["share"]):
        return DIAGNOSIS.quiet(f"Fused steps with float32 moments take {part:.1%} of the time.")
    length = facts.length_ns[rows]
    reached = float(np.average(roofs.line.memory_share[rows], weights=length))
    worst = longest_op(facts, chosen)
    why = (
        f"{count_of(len(rows), 'kernel')} of the optimiser take {spell(per_step(facts, time))} of "
        f"a step ({part:.0%}); they move {each:.3g} bytes for each parameter at {reached:.0%} of "
        f"the memory's bandwidth. " + worst.launches()
    )
    spans = (work.ts_ns[rows], work.end_ns[rows])
    one = claim(spans, KERNEL_LEAVES, low=limits["half"], high=limits["eight"])
    return DIAGNOSIS.fires(why, [one], [worst.proof])


def _of_fused_adam(facts: RankFacts) -> NDArray[np.bool_]:
    """(work,) what PyTorch's fused Adam launches, on lists of tensors."""
    return facts.origins.op_is(lambda name: name in FUSED_ADAM)


def _in_full(roofs: Roofs, rows: Int64s, full: float) -> tuple[Int64s, float]:
    """Kernels of operators that move that many bytes for each parameter, and how many they move.

    The kernels of one operator share its bytes, and its parameters are counted once.
    """
    _, first, of = np.unique(roofs.costs.owner[rows], return_index=True, return_inverse=True)
    moved = np.bincount(of, roofs.costs.bytes[rows], len(first))
    count = np.maximum(asked(roofs.costs, rows[first], _parameters, np.int64), 1)
    enough = moved >= full * count
    each = moved[enough].sum() / max(count[enough].sum(), 1)
    return np.asarray(rows[enough[of]], np.int64), float(each)


def _parameters(shapes: Shapes) -> int:
    """How many numbers the first list holds."""
    return sum(tensor.count for tensor in shapes.listed(0))
