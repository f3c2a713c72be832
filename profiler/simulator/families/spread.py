"""How a model is cut over the ranks of one group, and the collectives that this puts into it."""

from dataclasses import dataclass
from typing import Protocol

from perfdiag.profiler.simulator.families.model import ELEMENT_BYTES, Node, Op, Part, op, tensor
from perfdiag.profiler.simulator.families.operators import add
from perfdiag.profiler.simulator.program import (
    Collective,
    CollectiveOp,
    Dtype,
    Record,
    Wait,
)

__all__ = ["ALONE", "Activations", "Spread", "exchange", "exchanged", "summed"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Over how many ranks of which group a model's operators are cut.

    Attributes:
        split: how many; heads, inner layers, experts or tables are divided by it.
        group: name of the process group.
        stream: that its collectives run on.
        load: how many times its even share of tokens this rank gets from a router.
    """

    split: int = 1
    group: str = ""
    stream: str = "comm_model"
    load: float = 1.0


ALONE = Spread()


class Activations(Protocol):
    """Sizes of activations."""

    @property
    def tokens(self) -> int:
        """Rows."""

    @property
    def hidden(self) -> int:
        """Columns."""


_CALLS: dict[CollectiveOp, tuple[str, str]] = {
    "all_reduce": ("_c10d_functional::all_reduce", "nccl:all_reduce"),
    "all_gather": ("_c10d_functional::all_gather_into_tensor", "nccl:_all_gather_base"),
    "reduce_scatter": ("_c10d_functional::reduce_scatter_tensor", "nccl:_reduce_scatter_base"),
    "all_to_all": ("_c10d_functional::all_to_all_single", "nccl:all_to_all"),
}


def exchange(kind: CollectiveOp, dtype: Dtype, elements: int, spread: Spread) -> Op:
    """A collective that the next operator waits for."""
    name, annotation = _CALLS[kind]
    there = (tensor(dtype, elements),)
    event = f"{spread.stream}_begin"
    done = f"{spread.stream}_end"
    size = elements * ELEMENT_BYTES[dtype]
    run = Collective(kind, spread.group, size, dtype, spread.stream)
    parts: tuple[Part, ...] = (
        Record(event, "compute"),
        Wait(event, spread.stream),
        Op("record_param_comms", (Op(annotation, (run,), there),), there),
        Record(done, spread.stream),
    )
    waited = Op("_c10d_functional::wait_tensor", (Wait(done, "compute"),), there)
    return op(name, *parts, waited, inputs=there)


def exchanged(kind: CollectiveOp, dtype: Dtype, elements: int, spread: Spread) -> Node:
    """An all-to-all, whose backward is one too."""
    call = exchange(kind, dtype, elements, spread)
    return Node((call,), "AllToAllBackward", (call,))


def summed(
    nodes: tuple[Node, ...], size: Activations, dtype: Dtype, spread: Spread
) -> tuple[Node, ...]:
    """A residual branch: under tensor parallelism its result is summed over the group.

    Backward, the gradient of what the branch read is summed as well (Shoeybi 2019,
    arXiv:1909.08053: operators f and g).
    """
    residual = add(dtype, (size.tokens, size.hidden))
    if spread.split == 1:
        return (*nodes, residual)
    call = exchange("all_reduce", dtype, size.tokens * size.hidden, spread)
    entered = Node((Op("aten::view"),), "CopyToModelParallel", (call,))
    left = Node((call,), "ReduceFromModelParallel", (Op("aten::view"),))
    return (entered, *nodes, left, residual)
