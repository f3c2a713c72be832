"""Chains of small kernels as a compiler writes them: one kernel that reads and writes once."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import prod

from perfdiag.profiler.simulator.families.model import ELEMENT_BYTES, Leaf, Op
from perfdiag.profiler.simulator.program import Kernel, Launch

__all__ = ["fused"]

POINTWISE = frozenset({"elementwise", "copy", "fill", "random"})
"""Families that a compiler writes itself, one element by one."""

REDUCING = frozenset({"norm", "reduction", "softmax", "loss", "pooling"})
"""Families that it writes itself, and that read what belongs together."""

MOST = 8
"""Kernels of a chain: beyond that, schedulers run out of registers or of loops that agree
(Inductor's `max_fusion_size` is 64 nodes, but chains end at reductions of another shape)."""


def fused(found: Iterable[Leaf], fuse: bool) -> Iterator[Leaf]:
    """The same work with runs of pointwise and reducing kernels fused.

    Args:
        found: launches and what else the operators do, in order.
        fuse: False gives them back as they are.
    """
    chain: list[Kernel] = []
    number = 0
    for operator, part in found:
        if fuse and isinstance(part, Launch) and part.kernel.family in POINTWISE | REDUCING:
            if _breaks(chain, part.kernel):
                yield _one(chain, number)
                chain, number = [], number + 1
            chain.append(part.kernel)
            continue
        if chain:
            yield _one(chain, number)
            chain, number = [], number + 1
        yield operator, part
    if chain:
        yield _one(chain, number)


def _breaks(chain: list[Kernel], after: Kernel) -> bool:
    """Whether a kernel cannot join: the chain is full, or its loop is far shorter or longer."""
    if not chain:
        return False
    longest = max(prod(kernel.dims) for kernel in chain)
    elements = prod(after.dims)
    return len(chain) == MOST or not longest / 2 <= elements <= 2 * longest


def _one(chain: list[Kernel], number: int) -> Leaf:
    """The chain as one kernel: what one hands to the next stays in registers."""
    kept = sum(
        2.0 * min(_output_bytes(before), before.bytes / 2, after.bytes / 2)
        for before, after in pairwise(chain)
    )
    widest = max(chain, key=lambda kernel: prod(kernel.dims))
    moved = max(sum(kernel.bytes for kernel in chain) - kept, widest.bytes)
    reduces = any(kernel.family in REDUCING for kernel in chain)
    family = "fused_reduction" if reduces else "fused_elementwise"
    detail = "_".join(dict.fromkeys(kernel.detail for kernel in chain if kernel.detail))
    flops = sum(kernel.flops for kernel in chain)
    kernel = Kernel(family, widest.dtype, widest.dims, flops, moved, detail)
    prefix = "triton_red" if reduces else "triton_poi"
    return Op(f"{prefix}_fused_{detail}_{number}"), Launch(kernel)


def _output_bytes(kernel: Kernel) -> float:
    return float(prod(kernel.dims) * ELEMENT_BYTES[kernel.dtype])
