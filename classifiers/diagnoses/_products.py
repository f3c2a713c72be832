"""Matrix products by their sizes: how they lie in memory, and what comparable ones reach."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.costs import Shapes, Tensor
from perfdiag.classifiers.diagnoses._roofs import Roofs, asked
from perfdiag.classifiers.diagnosis import Limits
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["FULL_BYTES", "aligned_bytes", "best_comparable", "products", "row_bytes"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_MOST_BYTES = 256

FULL_BYTES = 16
"""What a thread loads at once, and TMA needs rows to start at a multiple of."""

_OPERANDS = {
    "aten::mm": 0, "aten::bmm": 0, "aten::matmul": 0, "aten::_int_mm": 0, "aten::_scaled_mm": 0,
    "aten::addmm": 1, "aten::baddbmm": 1, "aten::addmm_": 1, "aten::_addmm_activation": 1,
    "aten::linear": 0,
}  # fmt: skip
"""Position of the left operand, by operator; the right one is the next."""

_ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}

_STEP = 1.05
"""Products whose arithmetic differs by less are one group; a choice."""


def products(facts: RankFacts, roofs: Roofs) -> Int64s:
    """(n,) rows of matrix products whose operands are known."""
    rows = np.flatnonzero(roofs.usable & facts.model.work.family.where("gemm"))
    names = asked(roofs.costs, rows, lambda shapes: shapes.name in _OPERANDS, np.bool_)
    return np.asarray(rows[names], np.int64)


def aligned_bytes(shapes: Shapes) -> int:
    """The power of two of whose bytes rows of all three matrices start at multiples, 256 at most.

    Rows are as long as the leading stride says, or the last dimension where strides are not
    recorded. Returns 256 where the operands are not known.
    """
    found = [_aligned(length) for length in row_bytes(shapes)]
    return min(found, default=_MOST_BYTES)


def row_bytes(shapes: Shapes) -> list[int]:
    """Bytes between rows of the operands and of the result; those of vectors are left out."""
    first = _OPERANDS.get(shapes.name)
    operands = [] if first is None else [shapes.maybe(first), shapes.maybe(first + 1)]
    known = [t for t in operands if t is not None and len(t.dims) > 1]
    if len(known) < 2 or any(t.dtype not in _ELEMENT_BYTES for t in known):
        return []
    left, right = known
    columns = right.dims[-2 if shapes.name == "aten::linear" else -1]
    size = _ELEMENT_BYTES[left.dtype]
    result = [columns * (2 if size == 1 else size)] if columns > 1 else []
    lengths = ((_between_rows(t), _ELEMENT_BYTES[t.dtype]) for t in known if min(t.dims[-2:]) > 1)
    return [length * each for length, each in lengths] + result


def _between_rows(tensor: Tensor) -> int:
    if len(tensor.strides) == len(tensor.dims):
        return max(tensor.strides[-2:])
    return tensor.dims[-1]


def _aligned(length: int) -> int:
    """The largest power of two that divides a length, 256 at most."""
    return min(length & -length, _MOST_BYTES) if length else _MOST_BYTES


def best_comparable(
    facts: RankFacts, roofs: Roofs, rows: Int64s, donors: Bools, limits: Limits
) -> Floats:
    """(n,) the highest share of the compute roof of products that have no advantage; 0 for none.

    A product with as much arithmetic, in all and for each byte, has no reason to be slower than
    one with less. Products of one size by one kernel count by their median.

    Args:
        facts: the rank.
        roofs: of it.
        rows: of `Work`, of products.
        donors: (n,) which of them may be compared with.
        limits: with `similar`, how many times as much arithmetic the other may have, and `often`,
            how often it must run.
    """
    costs, share = roofs.costs, roofs.line.compute_share[rows]
    flops = np.maximum(costs.flops[rows], 1.0)
    intensity = flops / np.maximum(costs.bytes[rows], 1.0)
    kernel = facts.model.work.name.codes[rows]
    keys = np.stack((costs.dtype[rows], _group(flops), _group(intensity), kernel), axis=1)
    kinds, kind = np.unique(keys, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    reached = _medians(share, np.where(donors, kind, -1), len(kinds), limits["often"])
    slack = np.log(limits["similar"]) / np.log(_STEP)
    dtype, size, density, _ = kinds.T
    allowed = (dtype[:, None] == dtype) & (size <= size[:, None] + slack)
    allowed &= density <= density[:, None] + slack
    return np.asarray((allowed * reached).max(axis=1, initial=0.0)[kind], np.float64)


def _medians(values: Floats, kind: Int64s, count: int, often: float) -> Floats:
    """(count,) median of the values of each kind, 0 for one that has fewer than so many."""
    order = np.lexsort((values, kind))
    first, last = (np.searchsorted(kind[order], np.arange(count), side) for side in _SIDES)
    middle = np.minimum((first + last) // 2, len(values) - 1)
    return np.where(last - first >= often, values[order][middle], 0.0)


_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def _group(values: Floats) -> Int64s:
    return np.asarray(np.round(np.log(values) / np.log(_STEP)), np.int64)
