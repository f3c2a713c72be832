"""What diagnoses ask of a rank's roofline, and of the inputs that its costs follow from."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.costs import Shapes
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.roofline import Bound, Roofline
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["KERNEL_LEAVES", "NO_ROOF", "Roofs", "asked", "roofs_of", "weighted_quantile"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

KERNEL_LEAVES = ("compute_kernel", "memory_kernel", "kernel_unclassified")

NO_ROOF = (
    "No kernel is under a roof: operators' inputs were not recorded, or the device is not known."
)


class Roofs(NamedTuple):
    """The kernels of a rank under their roofs.

    Attributes:
        costs: of the kernels.
        line: the roofline.
        usable: (work,) kernels on the device of the budget that have a cost which can be true, of
            an operator whose inputs are known.
    """

    costs: KernelCosts
    line: Roofline
    usable: Bools

    @property
    def nearer(self) -> Floats:
        """(work,) share of the nearer roof that is reached."""
        return np.maximum(self.line.compute_share, self.line.memory_share)

    def bound_by(self, *bounds: Bound) -> Bools:
        """(work,) usable kernels that one of these bounds."""
        return np.asarray(self.usable & np.isin(self.line.bound, bounds), np.bool_)

    def in_type(self, *dtypes: str) -> Bools:
        """(work,) usable kernels whose arithmetic is in one of these types."""
        codes = [code for code, name in enumerate(self.costs.dtypes) if name in dtypes]
        return np.asarray(self.usable & np.isin(self.costs.dtype, codes), np.bool_)


def roofs_of(facts: RankFacts) -> Roofs | None:
    """The rank's kernels under their roofs; None where the trace does not tell."""
    if facts.costs is None or facts.roofline is None:
        return None
    costs = facts.costs
    usable = facts.kernels & costs.known & (costs.owner != ABSENT)
    usable &= facts.roofline.bound != Bound.IMPOSSIBLE
    return Roofs(costs, facts.roofline, np.asarray(usable, np.bool_))


def asked(
    costs: KernelCosts, rows: Int64s, ask: Callable[[Shapes], Any], dtype: type
) -> NDArray[Any]:
    """(n,) what a function says of the inputs that the costs of kernels follow from.

    Args:
        costs: of the kernels.
        rows: of `Work`, of kernels that have a cost.
        ask: the function; it is called once for the same inputs.
        dtype: of what it returns.
    """
    answers: dict[Hashable, Any] = {}
    found = []
    for owner in costs.owner[rows].tolist():
        shapes = costs.inputs[owner]
        if shapes not in answers:
            answers[shapes] = ask(shapes)
        found.append(answers[shapes])
    return np.array(found, dtype)


def weighted_quantile(values: Floats, weights: NDArray[np.number], share: float) -> float:
    """The value below which that share of the weight lies; 0 for no values."""
    if not len(values):
        return 0.0
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(reached, share * reached[-1]))])
