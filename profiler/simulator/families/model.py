"""What a model is made of: operators with their kernels, and nodes that autograd goes back through.

A family of models says which operators run, on which sizes. How they are dispatched (eagerly,
compiled, from a graph) and how the model is spread over ranks is decided elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from perfdiag.profiler.simulator.program import Dtype, Instruction, Kernel, Launch, Tensor

__all__ = [
    "ELEMENT_BYTES",
    "Block",
    "Leaf",
    "Model",
    "Node",
    "Op",
    "Part",
    "leaves",
    "op",
    "streaming",
    "tensor",
]

ELEMENT_BYTES: dict[Dtype, int] = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1}

_TYPE_NAMES: dict[Dtype, str] = {
    "fp32": "float",
    "tf32": "float",
    "bf16": "c10::BFloat16",
    "fp16": "c10::Half",
    "fp8": "c10::Float8_e4m3fn",
}


@dataclass(frozen=True, slots=True)
class Op:
    """An operator: what it calls and launches, in order. Without parts it is a view."""

    name: str
    parts: tuple["Part", ...] = ()
    inputs: tuple[Tensor, ...] = ()


Part = Op | Instruction
Leaf = tuple[Op, Instruction]
"""An instruction, and the operator that it is in."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of autograd's graph.

    Attributes:
        forward: operators, of which the first bears the sequence number.
        autograd: name of the node, '' where nothing flows back.
        backward: operators of the node.
        parameters: elements of each parameter whose gradient is there after it.
        own: likewise of parameters that no other rank has: experts and tables that are spread.
    """

    forward: tuple[Op, ...]
    autograd: str = ""
    backward: tuple[Op, ...] = ()
    parameters: tuple[int, ...] = ()
    own: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A module: what is compiled, checkpointed, gathered and put into a stage as a whole."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def parameters(self) -> int:
        """Elements of all of its parameters that other ranks have too."""
        return sum(sum(node.parameters) for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Model:
    """A model with its loss.

    Attributes:
        blocks: in order of the forward pass; the last ends with the loss.
        dtype: of activations and products.
        inputs: bytes of each tensor of a batch that is copied to the device.
        boundary_bytes: activations between two blocks, which stages of a pipeline send on.
    """

    blocks: tuple[Block, ...]
    dtype: Dtype
    inputs: tuple[int, ...]
    boundary_bytes: int

    @property
    def parameters(self) -> tuple[int, ...]:
        """Elements of each parameter, in order of the forward pass."""
        nodes = (node for block in self.blocks for node in block.nodes)
        return tuple(size for node in nodes for size in (*node.parameters, *node.own))


def op(name: str, *parts: Part | Kernel, inputs: tuple[Tensor, ...] = ()) -> Op:
    """An operator; kernels among its parts are launched on the compute stream."""
    made = tuple(Launch(part) if isinstance(part, Kernel) else part for part in parts)
    return Op(name, made, inputs)


def leaves(operator: Op) -> Iterator[Leaf]:
    """The instructions of an operator and of those that it calls, in order."""
    for part in operator.parts:
        if isinstance(part, Op):
            yield from leaves(part)
        else:
            yield operator, part


def tensor(dtype: Dtype, *dims: int) -> Tensor:
    """An input of an operator."""
    return Tensor(dims, _TYPE_NAMES[dtype])


def streaming(
    family: str,
    dtype: Dtype,
    dims: tuple[int, ...],
    passes: float,
    detail: str = "",
) -> Kernel:
    """A kernel that goes over its elements and does little with each.

    Args:
        family: of its name.
        dtype: of its elements.
        dims: elements in all, or sizes whose product they are.
        passes: how often it reads or writes that many elements.
        detail: what else its name says.
    """
    elements = prod(dims)
    return Kernel(
        family, dtype, dims, elements * passes, elements * passes * ELEMENT_BYTES[dtype], detail
    )
