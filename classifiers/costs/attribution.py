"""What each kernel costs: a share of the innermost operator around it that has a model."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

import numpy as np

from perfdiag.classifiers.costs.cost import Cost, cost_by_table
from perfdiag.classifiers.costs.elementwise import pointwise
from perfdiag.classifiers.costs.inductor import is_inductor, priced_fusion
from perfdiag.classifiers.costs.launches import Launch
from perfdiag.classifiers.costs.moe import BY_LAUNCHES, priced_launches
from perfdiag.classifiers.costs.shapes import Shapes
from perfdiag.classifiers.costs.splitting import split
from perfdiag.trace_schemas.kernels import classify_kernel
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["attribute", "cost_of", "costs_of"]


def cost_of(shapes: Shapes, kernel_name: str = "") -> Cost | None:
    """What one call of an operator computes and moves; None where there is no model for it.

    A kernel's name tells what the inputs do not: TF32, the element types of lists. It also makes
    an `aten` operator without a model elementwise where the kernel is PyTorch's elementwise loop.
    """
    if is_inductor(shapes.name):
        return _fusion(shapes)
    return cost_by_table(shapes, kernel_name) or _assumed(shapes, kernel_name)


def costs_of(shapes: Shapes, launches: Sequence[Launch]) -> tuple[Cost | None, ...]:
    """What each kernel of one call does, in their order; None where there is no model.

    Cost models ask the name of the longest kernel.
    """
    if shapes.name in BY_LAUNCHES:
        return tuple(priced_launches(shapes, launches))
    if not launches:
        return ()
    longest = max(launches, key=lambda launch: launch.duration_ns)
    found = cost_of(shapes, longest.name)
    if found is None:
        return (None,) * len(launches)
    return (found,) if len(launches) == 1 else split(found, launches)


def attribute(
    launches: Sequence[Launch], op: Int64s, parent: Int64s, shapes: Mapping[int, Shapes]
) -> tuple[list[Cost | None], Int64s]:
    """What each kernel costs, and by which operator.

    Args:
        launches: the kernels.
        op: (kernels,) row of the innermost operator around the launch, -1 for none.
        parent: (operators,) row of what encloses each one, -1 for none.
        shapes: inputs, by row of the operators that have them recorded.

    Returns:
        The costs, None where no operator around the launch has a model, and (kernels,) the row of
        the operator that told, -1 for none. An operator whose arithmetic is already counted in
        one that it encloses, of the same family, tells nothing about its own kernels.
    """
    costs: list[Cost | None] = [None] * len(launches)
    owner = np.full(len(launches), ABSENT, np.int64)
    waiting = _Waiting(op, parent)
    counted: defaultdict[int, set[str]] = defaultdict(set)
    while (row := waiting.innermost()) != ABSENT:
        kernels, above = waiting.take(row), int(parent[row])
        found = _priced(shapes.get(row), [launches[at] for at in kernels], counted[row])
        for at, priced in zip(kernels, found, strict=True):
            costs[at], owner[at] = priced, row if priced else ABSENT
        waiting.put(above, [at for at, cost in zip(kernels, found, strict=True) if cost is None])
        if above != ABSENT:
            families = {cost.family for cost in found if cost and cost.flops}
            _spread(counted, above, parent, families)
    return costs, owner


def _priced(
    shapes: Shapes | None, launches: list[Launch], counted: set[str]
) -> tuple[Cost | None, ...]:
    if shapes is None:
        return (None,) * len(launches)
    found = costs_of(shapes, launches)
    return tuple(cost if cost and cost.family not in counted else None for cost in found)


def _spread(counted: dict[int, set[str]], row: int, parent: Int64s, families: set[str]) -> None:
    """Note what is counted in a row and all above it; what is noted already is noted above too."""
    while families and row != ABSENT and not families <= counted[row]:
        counted[row] |= families
        row = int(parent[row])


class _Waiting:
    """Kernels that look for a model, by operator, the innermost operators first.

    An operator has its turn when all in it had theirs, so that its kernels share its cost at once.
    """

    def __init__(self, op: Int64s, parent: Int64s) -> None:
        self._depth = _depths(parent)
        self._kernels: dict[int, list[int]] = {}
        self._heap: list[tuple[int, int]] = []
        order = np.argsort(op, kind="stable")
        rows, starts = np.unique(op[order], return_index=True)
        for row, kernels in zip(rows.tolist(), np.split(order, starts[1:]), strict=True):
            self.put(row, kernels.tolist())

    def put(self, row: int, kernels: list[int]) -> None:
        """Let kernels wait at an operator; those without one wait no longer."""
        if row == ABSENT or not kernels:
            return
        if row not in self._kernels:
            heappush(self._heap, (-int(self._depth[row]), row))
        self._kernels.setdefault(row, []).extend(kernels)

    def innermost(self) -> int:
        """The row whose turn it is, -1 when none waits."""
        return heappop(self._heap)[1] if self._heap else ABSENT

    def take(self, row: int) -> list[int]:
        """The kernels that wait at an operator, in order."""
        return sorted(self._kernels.pop(row))


def _depths(parent: Int64s) -> Int64s:
    """(operators,) how many enclose each one."""
    depth, above = np.zeros(len(parent), np.int64), parent
    while (inside := above != ABSENT).any():
        depth += inside
        above = np.where(inside, parent[above], ABSENT)
    return depth


def _fusion(shapes: Shapes) -> Cost | None:
    try:
        return priced_fusion(shapes)
    except ValueError:
        return None


def _assumed(shapes: Shapes, kernel_name: str) -> Cost | None:
    """An elementwise cost for what runs in PyTorch's elementwise loop, 1 FLOP an element."""
    if not shapes.name.startswith("aten::") or "at::native::" not in kernel_name:
        return None
    if classify_kernel(kernel_name).family != "elementwise":
        return None
    try:
        return pointwise("assumed", 1, shapes.tensors)
    except ValueError:
        return None
