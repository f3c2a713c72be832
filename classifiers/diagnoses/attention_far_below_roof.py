"""Fused attention reaches less than newer kernels do on the same device.

What it finds:
    Fused attention kernels over long sequences, in 16 bits, that reach a smaller share of the data
    sheet's peak than FlashAttention-2 on an A100, or FlashAttention-3 on an H100 or H200.

Why it costs time:
    Kernels written for an older architecture cannot use the newer one's units: FlashAttention-2
    reaches 35 % of an H100, FlashAttention-3 up to 75 %. Masks, dropout and odd head dimensions
    make a library choose an older kernel.

How it is told apart:
    By the operators' recorded sizes, which give the FLOPs (masked-out pairs do not count), and the
    kernels' durations. Short sequences do too little for each byte to get near the peak. Decoding
    is bound by memory and is not meant. For devices without published figures nothing is said.

Example:
    16 heads of 128 over 4096 tokens, batch of 8, in 4 ms on an H100: 28 % of the peak.

What to do:
    Take the newer kernel. Saved is the time down to what is published, at most; at worst half of
    what remains to the least published, for heads of 64 and causal masks reach less.

References:
    https://arxiv.org/abs/2307.08691
    https://arxiv.org/abs/2407.08608
    https://github.com/Dao-AILab/flash-attention
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._roofs import KERNEL_LEAVES, NO_ROOF, Roofs, roofs_of
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
from perfdiag.trace_schemas.devices import DTYPES
from perfdiag.trace_schemas.recording import Int64s

_FA2 = "https://arxiv.org/abs/2307.08691"
_FA3 = "https://arxiv.org/abs/2407.08608"

LONG = Threshold(
    500.0,
    "FLOP a byte",
    "a choice: 1000 tokens that see each other, 2000 in a causal mask, where papers reach half of "
    "their best figures",
)
A100 = Threshold(0.73, "share of the peak", f"{_FA2}: 50 to 73 % of the peak of an A100")
A100_LEAST = Threshold(0.5, "share of the peak", f"{_FA2}: 50 to 73 % of the peak of an A100")
HOPPER = Threshold(0.75, "share of the peak", f"{_FA3}: up to 740 TFLOPS, 75 % of the peak")
HOPPER_LEAST = Threshold(
    0.525, "share of the peak", f"{_FA3}: 1.5 times FlashAttention-2, which reaches 35 %"
)
BACKWARD = Threshold(
    0.86, "share of what forward reaches", f"{_FA2}: backward up to 63 %, forward up to 73 %"
)
SURE = Threshold(0.5, "share", "a choice: heads of 64, causal masks and dropout reach less")

DIAGNOSIS = Diagnosis(
    id="attention_far_below_roof",
    layer="kernels",
    title="Fused attention is far below what newer kernels reach",
    title_ok="Fused attention reaches what its kernels are published to reach",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "long": LONG,
        "a100": A100,
        "a100_least": A100_LEAST,
        "hopper": HOPPER,
        "hopper_least": HOPPER_LEAST,
        "backward": BACKWARD,
        "sure": SURE,
    },
    how=(
        "Hopper: flash_attn_interface.flash_attn_func(...) of FlashAttention-3 "
        "(attn_implementation='flash_attention_3' in Transformers), or cuDNN's kernel: "
        "sdpa_kernel(SDPBackend.CUDNN_ATTENTION) (PyTorch 2.5 or later); Transformer Engine with "
        "NVTE_FUSED_ATTN=1. A100: FlashAttention 2.0 or later, which PyTorch 2.2 brings. Head "
        "dimensions of 64 or 128, is_causal=True instead of a mask, dropout_p=0.0. JAX: "
        "jax.nn.dot_product_attention(..., implementation='cudnn')."
    ),
    verify="Record again: other kernels' names, and a larger share of the compute roof.",
    refuted_by="the newer kernel is as slow for these head dimensions and masks",
)

Floats = NDArray[np.float64]


class _Reach(NamedTuple):
    """Share of the data sheet's peak that published kernels reach at least and at most."""

    least: float
    most: float


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for attention that published kernels leave far behind."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    name = roofs.line.peaks.name
    reach = _published(name, limits)
    if reach is None:
        return DIAGNOSIS.not_applicable(f"No published figures of attention are known for {name}.")
    rows = _long_attention(facts, roofs, limits["long"])
    share = _of_datasheet(facts, roofs, rows)
    scale = np.where(_backward(facts)[rows], limits["backward"], 1.0)
    below = share < reach.least * scale
    mine, share, scale = rows[below], share[below], scale[below]
    chosen = mask_of(mine, len(facts.here))
    time = leaf_in(facts, union_of(facts.model.work, chosen), *KERNEL_LEAVES)
    part = share_of(facts, time)
    if part < limits["share"]:
        return DIAGNOSIS.quiet(f"Attention below what is published takes {part:.1%} of the time.")
    kernel, total, count, proof = longest_work(facts, chosen)
    mean = float(np.average(share, weights=facts.length_ns[mine]))
    why = (
        f"{count_of(len(mine), 'attention kernel')} take {spell(per_step(facts, time))} of a step "
        f"({part:.0%}) at {mean:.0%} of the peak, where published kernels reach {reach.least:.0%} "
        f"to {reach.most:.0%}. {brief(kernel)!r} runs {count_of(count, 'time')}, {spell(total)} in "
        "all."
    )
    spans = (facts.model.work.ts_ns[mine], facts.model.work.end_ns[mine])
    low = limits["sure"] * (1.0 - share / (reach.least * scale))
    one = claim(spans, KERNEL_LEAVES, low=low, high=1.0 - share / (reach.most * scale))
    return DIAGNOSIS.fires(why, [one], [proof])


def _published(device: str, limits: Limits) -> _Reach | None:
    """What kernels for a device reach."""
    hopper = _Reach(limits["hopper_least"], limits["hopper"])
    known = {
        "A100": _Reach(limits["a100_least"], limits["a100"]),
        "H100": hopper,
        "H200": hopper,
    }
    return next((reach for name, reach in known.items() if name in device), None)


def _long_attention(facts: RankFacts, roofs: Roofs, long: float) -> Int64s:
    """(n,) rows of attention kernels that do much for each byte, in 16 bits."""
    costs = roofs.costs
    dense = costs.flops >= long * np.maximum(costs.bytes, 1.0)
    chosen = roofs.in_type("fp16", "bf16") & facts.model.work.family.where("attention") & dense
    return np.flatnonzero(chosen)


def _of_datasheet(facts: RankFacts, roofs: Roofs, rows: Int64s) -> Floats:
    """(n,) share of the data sheet's peak in the type of each."""
    peaks = [roofs.line.peaks.compute(dtype) for dtype in DTYPES]
    sheet = {
        dtype: peak.datasheet for dtype, peak in zip(DTYPES, peaks, strict=True) if peak is not None
    }
    by_code = np.array([sheet.get(name, np.inf) for name in roofs.costs.dtypes] or [np.inf])  # type: ignore[call-overload]
    rate = roofs.costs.flops[rows] / (np.maximum(facts.length_ns[rows], 1) / 1e9)
    return np.asarray(rate / by_code[roofs.costs.dtype[rows]], np.float64)


def _backward(facts: RankFacts) -> NDArray[np.bool_]:
    """(work,) whether the operator is one of the backward pass."""
    return facts.origins.op_is(lambda name: "backward" in name.lower())
