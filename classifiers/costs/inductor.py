"""Kernels that Inductor generates, by the operators fused into them and what they get.

Their arguments are recorded in the order of the kernel: buffers updated in place, inputs, outputs,
then sizes. Which is which is not recorded. Each buffer counts once, the last as written: a lower
bound, too low by one pass over each buffer that is updated in place.
"""

import re
from functools import lru_cache

from perfdiag.classifiers.costs.cost import Cost, cost
from perfdiag.classifiers.costs.elementwise import FLOPS
from perfdiag.classifiers.costs.norms import ROW_FLOPS
from perfdiag.classifiers.costs.reductions import REDUCTIONS
from perfdiag.classifiers.costs.shapes import MissingInputError, Shapes

__all__ = ["fused_flops", "is_inductor", "priced_fusion"]

_NAME = re.compile(r"^triton_(poi|red|per|tem|for|mm|bmm|tpl|spl)_fused_(\w*?)_?\d*$")

_MOVING = """
    view clone copy permute transpose expand slice select cat stack unsqueeze squeeze reshape
    convert_element_type to_copy unsafe_view full zeros ones empty arange iota embedding gather
    index index_put scatter slice_backward select_backward detach alias as_strided t
    native_dropout
    constant_pad_nd lift_fresh full_like zeros_like ones_like new_zeros split split_with_sizes
    unbind repeat pow_scalar
""".split()  # noqa: SIM905
_PRODUCTS = ("addmm", "baddbmm", "bmm", "mm")

_FLOPS_BY_TOKEN = {
    **dict.fromkeys(_MOVING, 0), **REDUCTIONS, **FLOPS, **ROW_FLOPS,
    "tril": 1, "triu": 1,
}  # fmt: skip
_LONGEST = max(name.count("_") + 1 for name in _FLOPS_BY_TOKEN)


def is_inductor(name: str) -> bool:
    """Whether an operator's name is that of a generated kernel."""
    return _NAME.match(name) is not None


@lru_cache(maxsize=1 << 12)
def fused_flops(name: str) -> int:
    """FLOPs an element of the operators in a generated name, the longest known names first.

    A name lists each operator once, however often it was fused: a lower bound.
    """
    found = _NAME.match(name)
    words = found[2].strip("_").split("_") if found else []
    total, at = 0, 0
    while at < len(words):
        length, flops = _known(words, at)
        total, at = total + flops, at + length
    return total


def _known(words: list[str], at: int) -> tuple[int, int]:
    for length in range(min(_LONGEST, len(words) - at), 0, -1):
        name = "_".join(words[at : at + length])
        for known in (name, f"_{name}"):
            if known in _FLOPS_BY_TOKEN:
                return length, _FLOPS_BY_TOKEN[known]
    return 1, 0


def priced_fusion(shapes: Shapes) -> Cost:
    """The cost of a generated kernel; raises MissingInputError where it has no buffers."""
    buffers = shapes.tensors
    if not buffers:
        message = f"{shapes.name} has no buffers."
        raise MissingInputError(message)
    found = _NAME.match(shapes.name)
    if found and found[1] in ("tem", "mm", "bmm", "tpl"):
        return _template(shapes, found[2])
    largest = max(tensor.stored for tensor in buffers)
    reads = buffers[:-1] or buffers
    return cost("fusion.inductor", fused_flops(shapes.name) * largest, reads, buffers[-1:])


def _template(shapes: Shapes, names: str) -> Cost:
    """A product: the result is the last buffer, the operands are those that fit it."""
    *inputs, out = shapes.tensors
    wanted = any(word in names.split("_") for word in _PRODUCTS)
    for left in inputs:
        for right in inputs:
            if (
                not wanted
                or left is right
                or len(left.dims) < 2
                or len(left.dims) != len(right.dims)
            ):
                continue
            if (*left.dims[:-1], right.dims[-1]) == out.dims and left.dims[-1] == right.dims[-2]:
                flops = 2 * out.count * left.dims[-1]
                return cost("gemm.inductor", flops, inputs, (out,))
    message = f"The operands of {shapes.name} cannot be told."
    raise MissingInputError(message)
