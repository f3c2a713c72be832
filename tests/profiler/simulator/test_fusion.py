"""Compiled chains read and write once, and stop where the loop changes."""

from perfdiag.profiler.simulator.families.model import Leaf, leaves, op, streaming
from perfdiag.profiler.simulator.families.operators import gemm
from perfdiag.profiler.simulator.fusion import MOST, fused
from perfdiag.profiler.simulator.program import Kernel, Launch


def chain(*kernels: Kernel) -> list[Leaf]:
    """Operators of one kernel each."""
    return [leaf for kernel in kernels for leaf in leaves(op(f"aten::{kernel.detail}", kernel))]


def result(found: list[Leaf]) -> list[Kernel]:
    """The kernels that come out."""
    return [part.kernel for _, part in fused(found, fuse=True) if isinstance(part, Launch)]


def test_what_one_kernel_hands_to_the_next_stays_on_the_chip() -> None:
    """add reads two and writes one, gelu reads and writes one: fused they read two, write one."""
    add = streaming("elementwise", "bf16", (1000,), 3, "add")
    gelu = streaming("elementwise", "bf16", (1000,), 2, "gelu")
    (one,) = result(chain(add, gelu))
    assert one.family == "fused_elementwise"
    assert one.bytes == 3 * 1000 * 2
    assert one.flops == add.flops + gelu.flops
    assert one.detail == "add_gelu"


def test_a_chain_with_a_reduction_is_one() -> None:
    """A norm after a residual connection."""
    add = streaming("elementwise", "bf16", (10, 100), 3, "add")
    norm = streaming("norm", "bf16", (10, 100), 2, "layer_norm_fwd")
    (one,) = result(chain(add, norm))
    assert one.family == "fused_reduction"
    assert one.dims == (10, 100)


def test_products_break_a_chain() -> None:
    """They are the library's, and stay as they were."""
    add = streaming("elementwise", "bf16", (64 * 64,), 3, "add")
    product = list(leaves(gemm("aten::mm", "bf16", 64, 64, 64)))
    found = result([*chain(add), *product, *chain(add, add)])
    assert [kernel.family for kernel in found] == ["fused_elementwise", "gemm", "fused_elementwise"]


def test_loops_of_another_length_and_full_chains_break() -> None:
    """A small kernel does not join a large one, and none has more than so many parts."""
    small = streaming("elementwise", "bf16", (10,), 2, "mul")
    large = streaming("elementwise", "bf16", (1000,), 2, "mul")
    assert len(result(chain(small, large))) == 2
    assert len(result(chain(*[large] * (MOST + 1)))) == 2


def test_without_fusion_nothing_changes() -> None:
    """A graph of eager kernels has them as they are."""
    found = chain(streaming("elementwise", "bf16", (10,), 2, "mul"))
    assert list(fused(found, fuse=False)) == found
