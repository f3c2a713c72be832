"""Chains of kernels that only move memory, one after the other.

What it finds:
    Runs of three or more kernels on one stream, back to back, each of which reads tensors, does
    little with them and writes them: pointwise operations, casts, dropout, softmax, norms.

Why it costs time:
    Each kernel reads its input from memory and writes its output there. A fused kernel reads once
    and writes once, and keeps what lies between in registers.

How it is told apart:
    By the families of the kernels' names, their order on the stream, and gaps too short for
    anything to happen between. Kernels that a compiler has fused already are not counted. Only time
    in which no kernel bound by arithmetic runs is claimed. Shorter chains are left to
    `memory_bound_chain_not_fused`, which needs recorded sizes.

Example:
    Bias, GELU, dropout and the residual sum as four kernels over the same 128 MiB.

What to do:
    Let a compiler fuse the chain, or take a fused kernel. A chain of k kernels over the same data
    saves at most (k-1)/k of its time; the longest kernel stays in any case. The trace does not
    show whether kernels share their data, so no chain counts as more than four.

References:
    https://docs.pytorch.org/docs/stable/torch.compiler.html
    https://horace.io/brrr_intro.html
    https://arxiv.org/abs/2007.00072
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._chains import GAP, SHORTEST, elementwise_chains
from perfdiag.classifiers.diagnoses._shared import (
    ask,
    count_of,
    leaf_in,
    longest,
    per_step,
    share_of,
    spell,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import Int64s

LONGEST = Threshold(
    4, "kernels in one", "a choice: longer runs mostly go over several tensors (optimisers)"
)
SHARED = Threshold(0.5, "share", "a choice: half of a chain's kernels share their data")

DIAGNOSIS = Diagnosis(
    id="unfused_elementwise_chain",
    layer="compiler",
    title="Chains of elementwise kernels are not fused",
    title_ok="No long chains of elementwise kernels",
    needs=("device",),
    confidence=0.5,
    thresholds={
        "share": MATERIAL,
        "shortest": SHORTEST,
        "gap": GAP,
        "longest": LONGEST,
        "shared": SHARED,
    },
    how=(
        "torch.compile (PyTorch 2.0 or later) on the module or the function around the chain; "
        "AdamW(fused=True) (2.0) for optimisers; fused norms and activations (Apex, Transformer "
        "Engine, Liger Kernel); channels_last for convolutions with norms. JAX: inside jit."
    ),
    verify="Record again: `triton_poi_` or other fused kernels stand for the chain.",
    refuted_by="the kernels of the chain work on different tensors",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for chains of fusable kernels."""
    rows, chain = elementwise_chains(facts, limits)
    if not len(rows):
        return DIAGNOSIS.quiet(f"No chain of {limits['shortest']:.0f} elementwise kernels or more.")
    work = facts.model.work
    length = facts.length_ns[rows].astype(np.float64)
    spans = (work.ts_ns[rows], work.end_ns[rows])
    time = leaf_in(facts, merge(*spans), "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Chains of elementwise kernels take {share:.1%} of the time.")
    high = _fused_away(length, chain, limits["longest"])[chain]
    family, mine = _largest_family(facts, rows)
    total = int(facts.length_ns[mine].sum())
    spots = longest(work, mine)
    why = (
        f"{count_of(int(chain.max()) + 1, 'chain')} of {limits['shortest']:.0f} and more "
        f"elementwise kernels, {len(rows)} kernels in all, take {spell(per_step(facts, time))} of "
        f"a step ({share:.0%}). All kernels of the family {family!r} together run for "
        f"{spell(total)} in the trace."
    )
    return DIAGNOSIS.fires(
        why,
        [claim(spans, ["memory_kernel"], low=limits["shared"] * high, high=high)],
        [ask("ns", total, "perfdiag_family_ns", facts.timeline.device, family, spots=spots)],
    )


def _fused_away(length: NDArray[np.float64], chain: Int64s, most: float) -> NDArray[np.float64]:
    """(chains,) share of a chain's time that one kernel in its place does not need."""
    total = np.bincount(chain, length)
    longest = np.zeros(len(total))
    np.maximum.at(longest, chain, length)
    return 1.0 - np.maximum(longest, total / max(most, 1.0)) / np.maximum(total, 1)


def _largest_family(facts: RankFacts, rows: Int64s) -> tuple[str, NDArray[np.bool_]]:
    """The family that takes most of the chains, and (work,) which all its kernels are."""
    family = facts.model.work.family
    weights = np.bincount(family.codes[rows], facts.length_ns[rows])
    name = family.texts[int(np.argmax(weights))]
    return name, facts.kernels & family.where(name)
