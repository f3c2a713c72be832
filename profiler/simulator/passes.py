"""Forward and backward passes over a model, or over the blocks that one stage has of it."""

from collections.abc import Sequence

from perfdiag.profiler.simulator.families.model import Block
from perfdiag.profiler.simulator.program import Host
from perfdiag.profiler.simulator.sharding import Sharding, accumulate
from perfdiag.profiler.simulator.tape import COMPOSITE_NS, Tape

__all__ = ["ENGINE_START_NS", "backward_pass", "forward_pass"]

ENGINE_START_NS = 30_000
"""From `loss.backward()` to the first node: autograd's engine sorts the graph and wakes its thread
(tens of microseconds in public traces)."""


def forward_pass(tape: Tape, blocks: Sequence[Block], sharding: Sharding) -> None:
    """Forward through blocks.

    Args:
        tape: of the thread.
        blocks: in order.
        sharding: is told of each block.
    """
    if not tape.style.graph:
        _forward_blocks(tape, blocks, sharding)
        return
    with tape.range("Graphed", "op", COMPOSITE_NS, sequence=1):
        _forward_blocks(tape, blocks, sharding)


def _forward_blocks(tape: Tape, blocks: Sequence[Block], sharding: Sharding) -> None:
    number = 1
    for index, block in enumerate(blocks):
        sharding.before_forward(tape, index)
        number = tape.forward(block, number)
        sharding.after_forward(tape, index)
    tape.flush()


def backward_pass(
    tape: Tape, blocks: Sequence[Block], sharding: Sharding, checkpointing: bool = False
) -> None:
    """Backward through blocks, last one first.

    Args:
        tape: of autograd's thread.
        blocks: in order of the forward pass.
        sharding: is told of each block and of each gradient.
        checkpointing: each block but the first and the last is run forward again before.
    """
    tape.put(Host(ENGINE_START_NS))
    if tape.style.graph and type(sharding) is Sharding:
        with tape.evaluated("GraphedBackward", 1):
            _blocks(tape, blocks, sharding, checkpointing)
        return
    _blocks(tape, blocks, sharding, checkpointing)
    sharding.finish(tape)


def _blocks(tape: Tape, blocks: Sequence[Block], sharding: Sharding, checkpointing: bool) -> None:
    numbers = _first_numbers(tape, blocks)
    for index in reversed(range(len(blocks))):
        block, number = blocks[index], numbers[index]
        sharding.before_backward(tape, index)
        again = checkpointing and 0 < index < len(blocks) - 1
        if again and not tape.style.graph:
            with tape.evaluated("CheckpointFunctionBackward", number):
                tape.forward(block, number)
                _through(tape, block, number, sharding)
        else:
            if again:
                tape.forward(block, number)
            _through(tape, block, number, sharding)
        sharding.after_backward(tape, index)
    tape.flush()


def _first_numbers(tape: Tape, blocks: Sequence[Block]) -> list[int]:
    """Sequence number of the first node of each block."""
    numbers, number = [], 1
    for block in blocks:
        numbers.append(number)
        number += 1 if tape.style.compiled or tape.style.graph else len(block.nodes)
    return numbers


def _through(tape: Tape, block: Block, first: int, sharding: Sharding) -> None:
    if tape.style.compiled or tape.style.graph:
        if tape.style.graph and type(sharding) is Sharding:
            tape.backward_block(block, first)
            return  # gradients are added up inside the graph
        if tape.style.graph:
            with tape.evaluated("GraphedBackward", first):
                tape.backward_block(block, first)
        else:
            tape.backward_block(block, first)
        parameters = [size for node in block.nodes for size in node.parameters]
        own = [size for node in block.nodes for size in node.own]
        _hand_over(tape, parameters, own, sharding)
        return
    for number in reversed(range(len(block.nodes))):
        node = block.nodes[number]
        if node.autograd:
            tape.backward_node(node, first + number)
        _hand_over(tape, node.parameters, node.own, sharding)


def _hand_over(
    tape: Tape, parameters: Sequence[int], own: Sequence[int], sharding: Sharding
) -> None:
    for _ in range(len(parameters) + len(own)):
        accumulate(tape)
    if parameters:
        sharding.ready(tape, parameters)
