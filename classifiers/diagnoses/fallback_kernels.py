"""A library takes a slow kernel of last resort.

What it finds:
    Three kinds of kernels that stand in for a better one: MIOpen's naive convolutions; convolutions
    that write out every patch first (im2col) and multiply then; and the detours that PyTorch takes
    for deterministic results, sorted index kernels and fills of memory that was just allocated.

Why it costs time:
    A naive convolution reads each number once for each multiplication. Patches written out take as
    many times the memory as a filter has elements. Sorting indices costs more than adding to them.

How it is told apart:
    By exact names: `naive_conv_...`, `im2col4d_kernel` (cuDNN), `Im2d2Col` (MIOpen), or what
    `aten::slow_conv...` and `aten::_slow_conv...` launch. Unfolding patches on purpose
    (`aten::im2col`) is none. Sorted index kernels count only inside an operator that needs none
    otherwise (`aten::index_add_`, `aten::scatter_add_`, the gradients of `index_select` and
    `gather`), fills only inside `aten::empty`.

Example:
    `naive_conv_ab_nonpacked_fwd_nchw_half_double_half` in a decoder of images: 19.2 ms where a
    Winograd kernel takes 0.45.

What to do:
    Let the library search, give it workspace and a layout that it has kernels for, and ask for
    determinism only where it is needed.

References:
    https://github.com/ROCm/rocm-libraries/issues/3509
    https://rocm.docs.amd.com/projects/MIOpen/en/latest/how-to/find-and-immediate.html
    https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
"""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief, by_name, launched_in
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

NAIVE = re.compile(r"naive_conv_")
PATCHES = re.compile(r"(?:void )?(?:\w+::)*im2col4d_kernel|Im(?:2|2d2|3d2)Col|Col2Im[23]d")
SLOW_CONVOLUTION = re.compile(r"aten::(?:_?slow_conv|thnn_conv)")
NEEDS_NO_SORT = re.compile(
    r"aten::(?:index_add|index_copy|scatter|scatter_add|scatter_reduce)_?$|"
    r"(?:autograd::engine::evaluate_function: )?(?:IndexSelect|Gather)Backward\d$"
)
SORTED = ("aten::index_put_", "aten::_index_put_impl_")
ALLOCATES = re.compile(r"aten::(?:new_)?empty(?:_like|_strided|_permuted)?$")

LEAVES = ("compute_kernel", "memory_kernel", "kernel_unclassified", "copy")

NAIVE_LEAST = Threshold(
    0.9,
    "share",
    "rocm-libraries issue 3509: MIOpen's naive kernel takes 42 to 380 times as long as the best",
)
OTHER_LEAST = Threshold(0.0, "share", "a choice: nothing says that the library has a better kernel")
MOST = Threshold(0.95, "share", "a choice: a tuned kernel still has to read and write the tensors")

DIAGNOSIS = Diagnosis(
    id="fallback_kernels",
    layer="kernels",
    title="Slow fallback kernels run",
    title_ok="No slow fallback kernels",
    needs=("device",),
    confidence=0.7,
    thresholds={
        "share": MATERIAL,
        "naive_least": NAIVE_LEAST,
        "other_least": OTHER_LEAST,
        "most": MOST,
    },
    how=(
        "MIOpen: MIOPEN_FIND_MODE=1 and torch.backends.cudnn.benchmark=True, with its kernel "
        "database for the device installed. Slow convolutions: torch.backends.cudnn.enabled=True, "
        "half precision with model.to(memory_format=torch.channels_last) (PyTorch 1.5 or later), "
        "channels that are multiples of 8, memory for a workspace. Determinism: "
        "torch.use_deterministic_algorithms(False) outside tests (1.8), or "
        "torch.utils.deterministic.fill_uninitialized_memory=False (2.2)."
    ),
    verify="Record again: none of these kernels is left.",
    refuted_by="a search over all algorithms (benchmark=True) picks the same kernel",
)

Bools = NDArray[np.bool_]


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kernels of last resort."""
    naive = by_name(facts, ("convolution",), _matches(NAIVE), np.bool_)
    kinds = {"naive convolutions": naive}
    kinds["convolutions by written-out patches"] = _patches(facts)
    kinds["deterministic index kernels and fills"] = _deterministic(facts)
    chosen = np.logical_or.reduce([*kinds.values()])
    time = leaf_in(facts, union_of(facts.model.work, chosen), *LEAVES)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Fallback kernels take {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, chosen)
    present = " and ".join(kind for kind, rows in kinds.items() if rows.any())
    why = (
        f"Fallback kernels, {present}, take {spell(per_step(facts, time))} of a step "
        f"({share:.0%}): {count_of(count, 'kernel')} {brief(name)!r}, {spell(total)} in all."
    )
    others = union_of(facts.model.work, chosen & ~naive)
    claims = [
        claim(
            union_of(facts.model.work, naive),
            LEAVES,
            low=min(limits["naive_least"], limits["most"]),
            high=limits["most"],
        ),
        claim(others, LEAVES, low=min(limits["other_least"], limits["most"]), high=limits["most"]),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _patches(facts: RankFacts) -> Bools:
    """(work,) what convolutions launch that write out patches, or the writing of patches."""
    named = by_name(facts, ("convolution_helper",), _matches(PATCHES), np.bool_)
    slow = facts.origins.named(_matches(SLOW_CONVOLUTION))
    return np.asarray(named | launched_in(facts, slow), np.bool_)


def _deterministic(facts: RankFacts) -> Bools:
    """(work,) what runs only because results must be deterministic."""
    origins = facts.origins
    sorts = origins.named(lambda name: name in SORTED)
    if sorts.any():
        sorts &= origins.inside(origins.named(_matches(NEEDS_NO_SORT)))
    allocates = origins.named(_matches(ALLOCATES))
    return launched_in(facts, sorts | allocates)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda name: pattern.match(name) is not None
