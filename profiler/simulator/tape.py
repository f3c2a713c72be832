"""Instructions of one thread as a model's operators are dispatched: eagerly, compiled, as a graph.

Host costs are of PyTorch 2 on a current server core: about 1 us of a composite operator, 3 us of
one that makes its output and launches, 2 us of autograd's engine for a node and as much for the
node itself. They give the 5 to 15 us an operator that public traces of eager training show. What
Python adds between operators differs from code to code, and is an option.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from perfdiag.profiler.simulator.families.model import Block, Leaf, Node, Op, leaves
from perfdiag.profiler.simulator.fusion import fused
from perfdiag.profiler.simulator.program import (
    Copy,
    End,
    Host,
    Instruction,
    Kernel,
    Launch,
    Phase,
    Range,
    ReplayGraph,
    Synchronize,
)

__all__ = ["Style", "Tape"]

COMPOSITE_NS = 1_000
LEAF_NS = 3_000
VIEW_NS = 800
ENGINE_NS = 2_000
NODE_NS = 1_500
COMPILED_NS = 1_200
"""Before each call of the code that Inductor writes: a check of sizes, and a call into Triton."""
REGION_NS = 25_000
"""Guards of a compiled region, and its way into the compiled function."""
REPLAY_NS = 12_000


@dataclass(frozen=True, slots=True)
class Style:
    """How operators are dispatched.

    Attributes:
        compiled: each block is one compiled region, whose chains of small operators are fused.
        graph: kernels are replayed from graphs, one between any two other instructions.
        python_ns: of the interpreter before each operator of the forward pass.
        module_ns: of the interpreter before each module.
    """

    compiled: bool = False
    graph: bool = False
    python_ns: int = 4_000
    module_ns: int = 8_000


class Tape:
    """The instructions of one thread so far."""

    def __init__(self, style: Style) -> None:
        """Start with none."""
        self.style = style
        self.instructions: list[Instruction] = []
        self._captured: list[Kernel] = []

    def put(self, *instructions: Instruction) -> None:
        """Append instructions as they are."""
        self.flush()
        self.instructions.extend(instructions)

    @contextmanager
    def range(
        self,
        name: str,
        kind: Literal["op", "annotation", "frame"] = "op",
        cost_ns: int = 0,
        sequence: int | None = None,
        phase: Phase | None = None,
    ) -> Iterator[None]:
        """A range around what is appended inside."""
        self.put(Range(name, kind, cost_ns, (), sequence, phase))
        yield
        self.put(End())

    def flush(self) -> None:
        """Replay what has been captured since the last time as one graph."""
        if self._captured:
            self.instructions.append(Host(REPLAY_NS))
            self.instructions.append(ReplayGraph(tuple(self._captured)))
            self._captured.clear()

    def op(self, operator: Op, sequence: int | None = None) -> None:
        """An operator with all that it calls, eagerly."""
        self.flush()
        cost = _host_ns(operator)
        name, inputs = operator.name, operator.inputs
        kind: Literal["op", "annotation"] = "annotation" if name.startswith("nccl:") else "op"
        append = self.instructions.append
        append(Range(name, kind, cost, inputs, sequence))
        for part in operator.parts:
            if isinstance(part, Op):
                self.op(part)
            else:
                append(part)
        append(End())

    def item(self) -> None:
        """Read a value: a copy of it to the host, and a wait for that."""
        with (
            self.range("aten::item", cost_ns=COMPOSITE_NS),
            self.range("aten::_local_scalar_dense", cost_ns=LEAF_NS),
        ):
            self.put(Copy(4, "DtoH"), Synchronize("compute"))

    def forward(self, block: Block, first: int) -> int:
        """Forward through a block.

        Args:
            block: the module.
            first: sequence number of its first node.

        Returns:
            The sequence number after its last node.
        """
        if self.style.graph:
            self._capture(fused(_forward_leaves(block.nodes), self.style.compiled))
            return first + 1
        if self.style.compiled:
            with (
                self.range(f"Torch-Compiled Region: {first}/0", "annotation", REGION_NS),
                self.range("CompiledFunction", cost_ns=LEAF_NS, sequence=first),
            ):
                self._generated(_forward_leaves(block.nodes))
            return first + 1
        with self.range(block.name, "frame", self.style.module_ns):
            for number, node in enumerate(block.nodes):
                self.put(Host(self.style.python_ns))
                self._forward_node(node, first + number)
        return first + len(block.nodes)

    def _forward_node(self, node: Node, number: int) -> None:
        for index, operator in enumerate(node.forward):
            self.op(operator, number if node.autograd and not index else None)

    def backward_node(self, node: Node, number: int) -> None:
        """Backward through a node, as autograd's engine evaluates it."""
        with self.evaluated(node.autograd, number):
            for operator in node.backward:
                self.op(operator)

    def backward_block(self, block: Block, number: int) -> None:
        """Backward through a block that is not taken node by node: compiled, or in a graph."""
        found = _backward_leaves(block.nodes)
        if self.style.graph:
            self._capture(fused(found, self.style.compiled))
            return
        with (
            self.evaluated("CompiledFunctionBackward", number),
            self.range("CompiledFunctionBackward", cost_ns=REGION_NS // 2),
        ):
            self._generated(found)

    @contextmanager
    def evaluated(self, node: str, number: int) -> Iterator[None]:
        """What autograd's engine does around a node."""
        with (
            self.range(f"autograd::engine::evaluate_function: {node}", "op", ENGINE_NS, number),
            self.range(node, "op", NODE_NS, number),
        ):
            yield

    def _generated(self, found: Iterable[Leaf]) -> None:
        """What Inductor's code calls: its own kernels, and operators that it does not generate."""
        with self.range("## Call CompiledFxGraph ##", "annotation", LEAF_NS):
            for operator, part in fused(found, fuse=True):
                self.put(Range(operator.name, "op", COMPILED_NS, operator.inputs), part, End())

    def _capture(self, found: Iterable[Leaf]) -> None:
        for _, part in found:
            if isinstance(part, Launch) and part.stream == "compute":
                self._captured.append(part.kernel)
            else:
                self.put(part)


def _host_ns(operator: Op) -> int:
    if not operator.parts:
        return VIEW_NS
    inner = any(isinstance(part, Op) for part in operator.parts)
    return COMPOSITE_NS if inner else LEAF_NS


def _forward_leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    for node in nodes:
        for operator in node.forward:
            yield from leaves(operator)


def _backward_leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    for node in reversed(nodes):
        for operator in node.backward:
            yield from leaves(operator)
