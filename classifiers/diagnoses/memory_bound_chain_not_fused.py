"""Kernels bound by memory hand a tensor on through memory.

What it finds:
    Two kernels in a row on one stream, both bound by memory, where the second reads a tensor of
    exactly the size that the first has just written.

Why it costs time:
    The tensor between them is written to memory and read back. One kernel would keep it in
    registers; if the backward pass needs it, at least the reading goes.

How it is told apart:
    By the operators' recorded sizes and types: bytes that the first writes are those of an input of
    the second. Kernels in runs of three and more elementwise kernels are left to
    `unfused_elementwise_chain`, which needs no sizes. What a compiler has fused already, and
    optimisers, are not meant. A few such pairs, a residual sum and the norm after it, are in every
    model.

Example:
    GELU over 256 MiB, then the residual sum, between two matrix products: 200 us and 300 us.

What to do:
    Fuse the two. Saved is the tensor's share of the bytes of each kernel, at the bandwidth that
    this kernel has reached. Likely it must still be written, for others read it too; at worst half
    of the pairs are of equal size by chance.

References:
    https://docs.pytorch.org/docs/stable/torch.compiler.html
    https://horace.io/brrr_intro.html
    https://docs.nvidia.com/deeplearning/performance/dl-performance-memory-limited/index.html
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.costs import Shapes
from perfdiag.classifiers.diagnoses._chains import (
    FUSABLE,
    GAP,
    SHORTEST,
    elementwise_chains,
    in_order,
)
from perfdiag.classifiers.diagnoses._figures import longest_op
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
from perfdiag.trace_schemas.recording import Int64s

FAMILIES = (*FUSABLE, "layout", "quantize", "reduction")

PART = Threshold(
    0.1,
    "share of the steps",
    "a choice: residual sums with their norms take half of that in a transformer bound by compute",
)
SHARED = Threshold(0.5, "share", "a choice: half of the equal sizes are the same tensor")

DIAGNOSIS = Diagnosis(
    id="memory_bound_chain_not_fused",
    layer="compiler",
    title="Kernels bound by memory hand tensors on through memory",
    title_ok="No tensors pass through memory between kernels bound by it",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "part": PART,
        "shortest": SHORTEST,
        "gap": GAP,
        "shared": SHARED,
    },
    how=(
        "torch.compile (PyTorch 2.0 or later) on the function around both; fused kernels for the "
        "usual pairs: torch.nn.functional.rms_norm(...) (2.4), fused_add_rms_norm and SwiGLU of "
        "Liger Kernel, Apex FusedLayerNorm; Megatron-LM without --no-bias-gelu-fusion, "
        "--no-bias-swiglu-fusion and --no-bias-dropout-fusion. JAX: inside one jit."
    ),
    verify="Record again with record_shapes=True: one `triton_` or other fused kernel for the two.",
    refuted_by="the second kernel reads another tensor, which happens to be of the same size",
)


class _Links(NamedTuple):
    """(n,) rows of a kernel and of the next, and the bytes that the one hands to the other."""

    first: Int64s
    second: Int64s
    bytes: NDArray[np.float64]


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for pairs that hand a tensor on."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    links = _links(facts, roofs, limits)
    rows = np.union1d(links.first, links.second).astype(np.int64)
    chosen = mask_of(rows, len(facts.here))
    time = leaf_in(facts, union_of(facts.model.work, chosen), "memory_kernel")
    part = share_of(facts, time)
    if part < max(limits["part"], limits["share"]):
        return DIAGNOSIS.quiet(f"Kernels that hand a tensor on take {part:.1%} of the time.")
    read = _share_of_bytes(roofs, links.second, links)[rows]
    wrote = _share_of_bytes(roofs, links.first, links)[rows]
    worst = longest_op(facts, chosen)
    why = (
        f"{count_of(len(links.first), 'pair')} of kernels bound by memory hand on "
        f"{links.bytes.sum() / 1e9:.3g} GB in the trace that a fused kernel would keep; they take "
        f"{spell(per_step(facts, time))} of a step ({part:.0%}). " + worst.launches()
    )
    spans = (facts.model.work.ts_ns[rows], facts.model.work.end_ns[rows])
    low = limits["shared"] * read
    one = claim(spans, ["memory_kernel"], low=low, mid=np.minimum(read, 1.0), high=read + wrote)
    return DIAGNOSIS.fires(why, [one], [worst.proof])


def _links(facts: RankFacts, roofs: Roofs, limits: Limits) -> _Links:
    """Kernels in a row of which the second may read what the first has written."""
    work, costs = facts.model.work, roofs.costs
    chained, _ = elementwise_chains(facts, limits)
    fit = roofs.bound_by(Bound.MEMORY) & work.family.where(*FAMILIES)
    fit[chained] = False
    rows = in_order(facts)
    first, second = rows[:-1], rows[1:]
    kept = fit[first] & fit[second] & (work.lane[first] == work.lane[second])
    first, second = first[kept], second[kept]
    sizes = asked(costs, second, _sizes, np.object_)
    handed = costs.written[first]
    same = np.array([one in them for one, them in zip(handed, sizes, strict=True)], np.bool_)
    same &= handed > 0
    return _Links(first[same], second[same], handed[same])


def _sizes(shapes: Shapes) -> frozenset[int]:
    """Bytes of the tensors that an operator reads; a copy's first is the one that it fills."""
    read = shapes.tensors[1:] if shapes.name == "aten::copy_" else shapes.tensors
    return frozenset(tensor.bytes for tensor in read)


def _share_of_bytes(roofs: Roofs, rows: Int64s, links: _Links) -> NDArray[np.float64]:
    """(work,) what is handed on of all that kernels move; 0 for others."""
    found = np.zeros(len(roofs.usable))
    found[rows] = links.bytes / np.maximum(roofs.costs.bytes[rows], 1.0)
    return found
