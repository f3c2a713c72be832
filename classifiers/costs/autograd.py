"""What an operator's inputs do not tell, but those of its counterpart in autograd do."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from perfdiag.classifiers.costs.shapes import Shapes

__all__ = ["Recorded", "counterparts", "with_counterpart"]

_CONCATENATED = {"CatBackward0": "aten::cat", "StackBackward0": "aten::stack"}
_LOOKUP_NODE = re.compile(r"CppNode<SplitLookupFunction_(\w+)_Op>")


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operator with recorded inputs.

    Attributes:
        row: of the caller's table.
        shapes: its inputs.
        sequence: number of the autograd node that it made or is, -1 where not recorded.
        ts_ns: its start.
    """

    row: int
    shapes: Shapes
    sequence: int
    ts_ns: int


def with_counterpart(name: str, own: Shapes, other: Shapes) -> Shapes:
    """Inputs of an operator, behind them those of its counterpart, under the name of a model."""
    return Shapes(
        f"{name}@autograd",
        own.dims + other.dims,
        _padded(own.types, own) + other.types,
        own.strides + other.strides if own.strides and other.strides else (),
        _padded(own.concrete, own) + other.concrete if other.concrete else (),
    )


def _padded(texts: tuple[str, ...], shapes: Shapes) -> tuple[str, ...]:
    return texts + ("",) * (len(shapes.dims) - len(texts))


def counterparts(recorded: Sequence[Recorded]) -> dict[int, Shapes]:
    """Inputs to take instead of the recorded ones, by row.

    A concatenation whose list has no sizes gets those of its gradient. The backward pass of
    FBGEMM's look-ups gets the inputs of the look-up; those record no sequence number, so they are
    found by the numbers that operators before and after them record.
    """
    return {**_concatenations(recorded), **_lookups(recorded)}


def _concatenations(recorded: Sequence[Recorded]) -> dict[int, Shapes]:
    nodes = {
        (_CONCATENATED[op.shapes.name], op.sequence): op.shapes
        for op in recorded
        if op.shapes.name in _CONCATENATED and op.sequence >= 0
    }
    found: dict[int, Shapes] = {}
    for op in recorded:
        node = nodes.get((op.shapes.name, op.sequence))
        if node is not None and not (op.shapes.dims and op.shapes.dims[0]):
            found[op.row] = with_counterpart(op.shapes.name, node, Shapes("", ()))
    return found


def _lookups(recorded: Sequence[Recorded]) -> dict[int, Shapes]:
    """Nodes in order of number and look-ups in order of time, between the same two numbers."""
    nodes: defaultdict[str, list[Recorded]] = defaultdict(list)
    for op in recorded:
        if named := _LOOKUP_NODE.search(op.shapes.name):
            nodes[f"fbgemm::split_embedding_codegen_lookup_{named[1]}_function"].append(op)
    if not nodes:
        return {}
    known = sorted((op.ts_ns, op.sequence) for op in recorded if op.sequence >= 0 and _forward(op))
    found: dict[int, Shapes] = {}
    for name, made in nodes.items():
        forward = [op for op in recorded if op.shapes.name == name]
        for node, op in _paired(sorted(made, key=lambda node: node.sequence), forward, known):
            found[node.row] = with_counterpart(name, node.shapes, op.shapes)
    return found


def _forward(op: Recorded) -> bool:
    return "Backward" not in op.shapes.name and "autograd" not in op.shapes.name


def _paired(
    nodes: list[Recorded], forward: list[Recorded], known: list[tuple[int, int]]
) -> list[tuple[Recorded, Recorded]]:
    times = [ts for ts, _ in known]
    numbers = [node.sequence for node in nodes]
    groups: defaultdict[tuple[int, int], list[Recorded]] = defaultdict(list)
    for op in sorted(forward, key=lambda op: op.ts_ns):
        at = bisect_right(times, op.ts_ns)
        before = known[at - 1][1] if at else -1
        after = known[at][1] if at < len(known) else 1 << 62
        groups[before, after].append(op)
    pairs: list[tuple[Recorded, Recorded]] = []
    for (before, after), ops in groups.items():
        between = nodes[bisect_left(numbers, before) : bisect_left(numbers, after)]
        if len(between) == len(ops):
            pairs.extend(zip(between, ops, strict=True))
    return pairs
