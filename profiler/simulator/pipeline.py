"""Stages of a pipeline: one forward, one backward (1F1B), with transfers between neighbours.

A stage runs so many forward passes ahead as stages come after it, then alternates (Narayanan 2021,
arXiv:2104.04473). Each direction of transfers has a stream of its own, so that a transfer that
waits for its peer blocks no other, as in batched isend and irecv.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from perfdiag.profiler.simulator.families.model import ELEMENT_BYTES, Op, tensor
from perfdiag.profiler.simulator.optimizers import zero_grad
from perfdiag.profiler.simulator.passes import backward_pass, forward_pass
from perfdiag.profiler.simulator.program import Call, Collective, Dtype, Record, Wait
from perfdiag.profiler.simulator.sharding import Sharding
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.steps import (
    AUTOGRAD,
    LOOP_NS,
    Part,
    Threads,
    end_of_step,
    take_batch,
    to_device,
)
from perfdiag.profiler.simulator.tape import Tape

__all__ = ["Stage", "pipeline_threads", "schedule"]

Way = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Place of a rank in a pipeline.

    Attributes:
        index: of the stage; `count`: how many there are.
        group: their process group.
        before, behind: ranks of the neighbours, None at the ends.
        boundary_bytes: of activations, and of their gradients, between two stages.
        dtype: of their elements.
    """

    index: int
    count: int
    group: str
    before: int | None
    behind: int | None
    boundary_bytes: int
    dtype: Dtype


def schedule(stage: Stage, micro_batches: int) -> Iterator[Way]:
    """Passes of a stage in order; the n-th of each kind is of micro-batch n."""
    ahead = min(stage.count - stage.index - 1, micro_batches)
    for _ in range(ahead):
        yield "forward"
    for _ in range(micro_batches - ahead):
        yield "forward"
        yield "backward"
    for _ in range(ahead):
        yield "backward"


def pipeline_threads(spec: JobSpec, part: Part, stage: Stage) -> Threads:
    """Instructions of a step by thread for one stage."""
    tape = Tape(spec.style)
    with tape.range("ProfilerStep#", "annotation", LOOP_NS):
        take_batch(tape, spec, part)
        zero_grad(tape, part.parameters)
        if not spec.annotated:
            to_device(tape, spec, part)
        for way in schedule(stage, spec.micro_batches):
            if way == "forward":
                _forward(tape, part, stage)
            else:
                _backward(tape, stage)
        with tape.range("train.py(95): reduce_gradients", "frame", phase="other"):
            _reduce(tape, part)
        end_of_step(tape, spec, part)
    behind = Tape(spec.style)
    backward_pass(behind, part.blocks, Sharding(), spec.checkpointing)
    return {"main": tuple(tape.instructions), AUTOGRAD: tuple(behind.instructions)}


def _forward(tape: Tape, part: Part, stage: Stage) -> None:
    with tape.range(f"nn.Module: {part.family.title()}_0", "frame", phase="forward"):
        _transfer(tape, "recv", "forward", stage.before, stage)
        forward_pass(tape, part.blocks, Sharding())
        _transfer(tape, "send", "forward", stage.behind, stage)


def _backward(tape: Tape, stage: Stage) -> None:
    with tape.range("torch/autograd/graph.py(829): backward", "frame", 5_000, phase="backward"):
        _transfer(tape, "recv", "backward", stage.behind, stage)
        tape.put(Call(AUTOGRAD))
        _transfer(tape, "send", "backward", stage.before, stage)


def _transfer(
    tape: Tape, op: Literal["send", "recv"], way: Way, peer: int | None, stage: Stage
) -> None:
    """One side of a transfer: what is sent was computed, what is received is waited for."""
    if peer is None:
        return
    stream = f"{op}_{way}"
    size = stage.boundary_bytes
    there = (tensor(stage.dtype, size // ELEMENT_BYTES[stage.dtype]),)
    run = Collective(op, stage.group, size, stage.dtype, stream, peer)
    if op == "send":
        tape.put(Record(f"{stream}_made", "compute"), Wait(f"{stream}_made", stream))
    noted = Op("record_param_comms", (Op(f"nccl:{op}", (run,), there),), there)
    tape.op(Op(f"c10d::{op}{'_' if op == 'recv' else ''}", (noted,), there))
    if op == "recv":
        tape.put(Record(f"{stream}_there", stream), Wait(f"{stream}_there", "compute"))


def _reduce(tape: Tape, part: Part) -> None:
    """Average gradients over the copies of the pipeline, once all micro-batches are through."""
    for block in reversed(part.blocks):
        for node in reversed(block.nodes):
            if node.parameters:
                part.sharding.ready(tape, node.parameters)
    part.sharding.finish(tape)
