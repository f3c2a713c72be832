"""Kernels that only move a tensor: copies into another type, and copies into another layout."""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts

__all__ = ["casts", "is_cast", "strided_copies"]

Bools = NDArray[np.bool_]

_CASTING_COPIES = (
    "LoadWithCast",
    "StoreWithCast",
    "float16_copy_kernel",
    "float8_copy_kernel",
    "float4_copy_kernel",
    "tofloat32_copy_kernel",
)
"""In the name of one of PyTorch's copy kernels: what it reads and writes differ in type."""

_CASTING_KERNEL = re.compile(r"triton_poi_fused__to_copy_\d+|%?wrapped_convert(?:[._]\d+)*")
"""A kernel of Inductor or XLA that does nothing else."""

_CONVERTING = ("aten::to", "aten::_to_copy")
_SAME_TYPE = "impl_nocast"
"""PyTorch's template for kernels whose operands have the type of their functor."""

_REORDERING = (
    "aten::clone",
    "aten::contiguous",
    "aten::reshape",
    "aten::matmul",
    "aten::einsum",
    "aten::linear",
)
"""Operators that copy a tensor only because its strides do not suit what comes next."""


def is_cast(name: str) -> bool:
    """Whether the name of a kernel of the family `copy` says that it converts types."""
    return any(part in name for part in _CASTING_COPIES)


def casts(facts: RankFacts) -> Bools:
    """(work,) the kernels that convert a tensor to another type and do nothing else."""
    work = facts.model.work
    copies = work.family.where("copy")
    named = copies & work.name.map(is_cast, np.bool_)
    fused = work.name.map(lambda name: bool(_CASTING_KERNEL.fullmatch(name)), np.bool_)
    mixed = copies & ~work.name.map(lambda name: _SAME_TYPE in name, np.bool_)
    converting = mixed & facts.origins.op_is(lambda name: name == "aten::copy_")
    converting &= facts.origins.under(lambda name: name in _CONVERTING)
    return np.asarray(facts.kernels & (named | fused | converting), np.bool_)


def strided_copies(facts: RankFacts) -> Bools:
    """(work,) the kernels that copy a tensor of one type into other strides.

    A copy between equal strides is a `cudaMemcpyAsync` in PyTorch, and no kernel.
    """
    copies = facts.model.work.family.where("copy") & ~casts(facts)
    copies &= facts.origins.op_is(lambda name: name == "aten::copy_")
    copies &= facts.origins.under(lambda name: name in _REORDERING)
    return np.asarray(facts.kernels & copies, np.bool_)
