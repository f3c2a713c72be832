"""Attention runs as separate products, softmax and masks.

What it finds:
    A batched matrix product, then a softmax with the kernels that scale, mask, cast or drop around
    it, then another batched product, one after the other on one stream; forward or backward.

Why it costs time:
    The scores, a matrix of sequence by sequence for each head, are written to memory and read back
    by each of these kernels. A fused kernel keeps them on the chip.

How it is told apart:
    By the order of the kernels and the operators that launched them. A softmax between products
    that are not batched (a router, a loss) is none, nor is one with more kernels around it than
    attention has.

Example:
    `aten::bmm`, `aten::_softmax`, `aten::bmm` over 5185 patches: on a H100 the softmax alone takes
    2.2 ms a layer, twice as long as the product before it.

What to do:
    Call a fused attention. What lies between the products vanishes; backward passes compute the
    scores again, which costs part of that. The products wait less for memory: with heads of 64 they
    do 64 operations for each byte of the scores, of the 295 that an H100 could.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    https://arxiv.org/abs/2205.14135
    https://huggingface.co/docs/transformers/main/en/attention_interface
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_op
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_of,
    idle_before,
    leaf_in,
    mask_of,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

BATCHED = ("aten::bmm", "aten::baddbmm", "aten::bmm_out", "aten::baddbmm_")

MOST = Threshold(
    12, "kernels", "a choice: scale, bias, mask, casts, softmax, dropout, a copy of the values"
)
SURE = Threshold(0.5, "share", "a choice: backward passes compute the scores again")
PRODUCTS = Threshold(
    0.75,
    "share",
    "heads of 64 do 64 operations a byte of scores; an H100 could do 295 (989 TFLOPS, 3.35 TB/s)",
)

DIAGNOSIS = Diagnosis(
    id="attention_not_fused",
    layer="kernels",
    title="Attention is not fused",
    title_ok="No attention that is made of separate kernels",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "most": MOST, "sure": SURE, "products": PRODUCTS},
    how=(
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=...) (PyTorch 2.0 or "
        "later), in half precision for the flash kernel; sdpa_kernel(...) (2.3) tells why one is "
        "refused. Transformers: attn_implementation='sdpa' or 'flash_attention_2'; masks and "
        "biases of one's own: flex_attention (2.5). Megatron-LM: --use-flash-attn. JAX: "
        "jax.nn.dot_product_attention(..., implementation='cudnn')."
    ),
    verify="Record again: `flash_fwd`, `fmha` or other attention kernels instead of `aten::bmm`.",
    refuted_by="the attention weights themselves are needed, or the sequences are very short",
)

Bools = NDArray[np.bool_]


class Attention(NamedTuple):
    """(work,) what lies between the products, those products, and their number."""

    between: Bools
    products: Bools
    softmax: Bools
    number: int


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for a softmax between two batched products."""
    if (facts.origins.op == ABSENT).all():
        return DIAGNOSIS.not_applicable("The trace does not tell which operators launch kernels.")
    found = _attentions(facts, limits["most"])
    if not found.number:
        return DIAGNOSIS.quiet("No softmax lies between two batched matrix products.")
    union = union_of(facts.model.work, found.between)
    time = leaf_in(facts, union, "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Kernels between the products of attention take {share:.1%}.")
    name, total, count, proof = longest_op(facts, found.softmax)
    why = (
        f"{count_of(found.number, 'attention')} run as separate kernels; between their products "
        f"others take {spell(per_step(facts, time))} of a step ({share:.0%}). Operator {name!r} "
        f"alone launches {count_of(count, 'kernel')}, {spell(total)} in all."
    )
    products = union_of(facts.model.work, found.products)
    claims = [
        claim(union, ["memory_kernel"], low=limits["sure"], mid=1.0, high=1.0),
        claim(products, ["compute_kernel", "memory_kernel"], low=0.0, high=limits["products"]),
        claim(idle_before(facts, found.between), HOST_IDLE, low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _attentions(facts: RankFacts, most: float) -> Attention:
    """Find runs of kernels with a softmax that begin and end at a batched product."""
    work = facts.model.work
    rows = np.flatnonzero(facts.here)
    rows = rows[np.lexsort((work.ts_ns[rows], work.lane[rows]))]
    heavy, batched, softmax = (of[rows] for of in _kinds(facts))
    at = np.flatnonzero(heavy)
    first, last = at[:-1], at[1:]
    weight = np.concatenate(([0], np.cumsum(softmax)))
    kept = batched[first] & batched[last] & (work.lane[rows[first]] == work.lane[rows[last]])
    kept &= (weight[last] > weight[first]) & (last - first - 1 <= most)
    inside, count = _inside(first[kept] + 1, last[kept], len(rows)), len(work.id)
    return Attention(
        mask_of(rows[inside], count),
        mask_of(rows[np.concatenate((first[kept], last[kept]))], count),
        mask_of(rows[inside & softmax], count),
        int(kept.sum()),
    )


def _kinds(facts: RankFacts) -> tuple[Bools, Bools, Bools]:
    """(work,) what ends a run, what is a batched product, what is a softmax."""
    work = facts.model.work
    batched = facts.kernels & facts.origins.op_is(lambda name: name in BATCHED)
    heavy = batched | work.bound.where("compute") | work.kind.where("collective")
    heavy |= work.family.where("gemv", "splitk_reduce")
    fused = work.family.where("fused_reduction") & work.name.map(_names_softmax, np.bool_)
    return heavy, batched, np.asarray(work.family.where("softmax") | fused, np.bool_)


def _names_softmax(name: str) -> bool:
    return "softmax" in name


def _inside(first: Int64s, last: Int64s, count: int) -> Bools:
    """(count,) whether a position lies in one of some disjoint ranges."""
    change = np.zeros(count + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last, -1)
    return np.asarray(np.cumsum(change)[:-1] > 0, np.bool_)
