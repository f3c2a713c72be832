"""Kernels bound by memory move activations in float32.

What it finds:
    Pointwise kernels, copies, norms and softmax, bound by memory, whose tensors are all float32.

Why it costs time:
    Each number takes four bytes where two would do. A kernel that memory bounds takes as much time
    as it moves bytes.

How it is told apart:
    By the operators' recorded types and sizes. Optimisers are left out: parameters and their states
    need the precision. So are losses, and kernels between two types. What autocast keeps in float32
    on purpose, norms and softmax, is saved at best only.

Example:
    A residual sum of two activations of 256 MiB in float32.

What to do:
    Let activations be 16-bit. Half of the bytes go, at the bandwidth that the kernel reaches; half
    of that at worst, where a sum needs the precision.

References:
    https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-can-autocast-to-float32
    https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html
    https://arxiv.org/abs/1710.03740
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.costs import Shapes
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._optimizers import step_of
from perfdiag.classifiers.diagnoses._roofs import NO_ROOF, Roofs, asked, roofs_of
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_in,
    mask_of,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.roofline import Bound
from perfdiag.trace_schemas.recording import ABSENT, Int64s

KEPT = ("norm", "softmax")
"""Families that autocast runs in float32."""
FAMILIES = (*KEPT, "copy", "elementwise", "fused_elementwise", "layout", "pooling", "random")
OF_PARAMETERS = ("_foreach_", "_fused_", "_amp_")
"""In the names of operators over lists of parameters or gradients."""

HALF = Threshold(0.5, "share of the bytes", "float16 and bfloat16 take 2 bytes, float32 takes 4")
SURE = Threshold(0.5, "share", "a choice: half of these sums need the precision")

DIAGNOSIS = Diagnosis(
    id="fp32_kernels_memory",
    layer="framework",
    title="Kernels bound by memory move float32",
    title_ok="Kernels bound by memory move few numbers in float32",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={"share": MATERIAL, "half": HALF, "sure": SURE},
    how=(
        "torch.autocast('cuda', dtype=torch.bfloat16) (PyTorch 1.10 or later) around the forward "
        "pass, or model.to(torch.bfloat16) for inference; inputs, masks and buffers of the same "
        "type, so that sums are not promoted to float32; fused norms "
        "(torch.nn.functional.rms_norm, 2.4) instead of .float() by hand. Transformers: bf16=True, "
        "dtype=torch.bfloat16; Megatron-LM: --bf16. JAX: dtype=jnp.bfloat16 in the modules."
    ),
    verify="Record again with record_shapes=True: `Input type` of these is c10::BFloat16.",
    refuted_by="the loss gets worse when these tensors are 16-bit",
)

Bools = NDArray[np.bool_]


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kernels bound by memory on float32 only."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    work = facts.model.work
    rows = _in_fp32(facts, roofs)
    chosen = mask_of(rows, len(facts.here))
    time = leaf_in(facts, union_of(work, chosen), "memory_kernel")
    part = share_of(facts, time)
    if part < limits["share"]:
        return DIAGNOSIS.quiet(f"Kernels that memory bounds on float32 take {part:.1%}.")
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(len(rows), 'kernel')} bound by memory move "
        f"{roofs.costs.bytes[rows].sum() / 1e9:.3g} GB of float32 in the trace and take "
        f"{spell(per_step(facts, time))} of a step ({part:.0%}). {brief(name)!r} alone runs "
        f"{count_of(count, 'time')}, {spell(total)} in all."
    )
    spans = (work.ts_ns[rows], work.end_ns[rows])
    sure = np.where(work.family.where(*KEPT)[rows], 0.0, limits["sure"] * limits["half"])
    one = claim(spans, ["memory_kernel"], low=sure, high=limits["half"])
    return DIAGNOSIS.fires(why, [one], [proof])


def _in_fp32(facts: RankFacts, roofs: Roofs) -> Int64s:
    """(n,) rows of kernels bound by memory whose tensors are all float32, and no parameters."""
    chosen = roofs.bound_by(Bound.MEMORY) & facts.model.work.family.where(*FAMILIES)
    chosen &= step_of(facts) == ABSENT
    chosen &= ~facts.origins.under(lambda name: any(part in name for part in OF_PARAMETERS))
    rows = np.flatnonzero(chosen)
    return np.asarray(rows[asked(roofs.costs, rows, _all_fp32, np.bool_)], np.int64)


def _all_fp32(shapes: Shapes) -> bool:
    """Whether all tensors with dimensions are float32."""
    types = {tensor.dtype for tensor in shapes.tensors if tensor.dims}
    return types == {"fp32"}
