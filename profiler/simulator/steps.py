"""One training step of one rank: what its main thread does, and what autograd's does for it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from perfdiag.profiler.simulator.families.model import Block, Op, op, tensor
from perfdiag.profiler.simulator.optimizers import clip, optimizer_step, zero_grad
from perfdiag.profiler.simulator.passes import backward_pass, forward_pass
from perfdiag.profiler.simulator.program import (
    Batch,
    Call,
    Collective,
    Copy,
    Dtype,
    Host,
    Instruction,
    Record,
    Wait,
)
from perfdiag.profiler.simulator.sharding import Members, Sharding
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.tape import Tape

__all__ = [
    "AUTOGRAD",
    "AUTOGRAD_SYNCED",
    "Part",
    "Threads",
    "end_of_step",
    "take_batch",
    "threads",
    "to_device",
]

AUTOGRAD = "autograd"
AUTOGRAD_SYNCED = "autograd:synced"
"""Autograd's thread in the last of several micro-batches, where it reduces gradients too. The name
before the colon is the thread's."""

LOOP_NS = 40_000
"""Python of a training loop in each step, beside what its calls cost."""

Threads = Mapping[str, tuple[Instruction, ...]]


class Part(NamedTuple):
    """What of a model a rank has.

    Attributes:
        blocks: modules.
        inputs: bytes of the tensors of a batch that it needs.
        dtype: of parameters in the optimizer.
        sharding: how gradients and parameters are shared.
        norm: group over which the norm of gradients is summed, None where a rank has all.
        family: of the model.
    """

    blocks: Sequence[Block]
    inputs: Sequence[int]
    dtype: Dtype
    sharding: Sharding
    norm: Members | None
    family: str

    @property
    def parameters(self) -> tuple[int, ...]:
        """Elements of the parameters that this rank's optimizer updates."""
        nodes = [node for block in self.blocks for node in block.nodes]
        shared = [size for node in nodes for size in node.parameters]
        return (*self.sharding.owned(shared), *(size for node in nodes for size in node.own))


def threads(spec: JobSpec, part: Part) -> Threads:
    """Instructions of a step by thread, without a pipeline.

    Gradients are accumulated over the spec's micro-batches. DistributedDataParallel reduces them
    in the last one only (`no_sync`); sharded gradients are scattered in each.
    """
    tape = Tape(spec.style)
    accumulates = spec.micro_batches > 1 and spec.parallelism != "fsdp"
    with tape.range("ProfilerStep#", "annotation", LOOP_NS):
        for number in range(spec.micro_batches):
            take_batch(tape, spec, part)
            if not number:
                zero_grad(tape, part.parameters)
            if not spec.annotated:
                to_device(tape, spec, part)
            with tape.range(f"nn.Module: {part.family.title()}_0", "frame", phase="forward"):
                forward_pass(tape, part.blocks, part.sharding)
            last = number == spec.micro_batches - 1
            _backward(tape, AUTOGRAD_SYNCED if last and accumulates else AUTOGRAD)
        end_of_step(tape, spec, part)
    return {"main": tuple(tape.instructions), **_autograd(spec, part, accumulates)}


def _backward(tape: Tape, thread: str) -> None:
    with tape.range("torch/_tensor.py(648): backward", "frame", 5_000, phase="backward"):
        tape.put(Call(thread))


def _autograd(spec: JobSpec, part: Part, accumulates: bool) -> Threads:
    shared = Tape(spec.style)
    backward_pass(shared, part.blocks, part.sharding, spec.checkpointing)
    if not accumulates:
        return {AUTOGRAD: tuple(shared.instructions)}
    alone = Tape(spec.style)
    backward_pass(alone, part.blocks, Sharding(), spec.checkpointing)
    return {
        AUTOGRAD: tuple(alone.instructions),
        AUTOGRAD_SYNCED: tuple(shared.instructions),
    }


def take_batch(tape: Tape, spec: JobSpec, part: Part) -> None:
    """The next batch from the loader, with its copies to the device where a range marks them."""
    name = "torch/utils/data/dataloader.py(728): __next__"
    with tape.range(name, "frame", 5_000, phase="data"):
        tape.put(Batch())
    if spec.annotated and part.inputs:
        with tape.range("## copy_batch_to_gpu ##", "annotation", 2_000, phase="data"):
            _copies(tape, spec, part.inputs)


def to_device(tape: Tape, spec: JobSpec, part: Part) -> None:
    """Copies of the batch to the device that no range marks: operators before the forward ones."""
    if part.inputs:
        with tape.range("train.py(88): to_device", "frame", phase="forward"):
            _copies(tape, spec, part.inputs)


def _copies(tape: Tape, spec: JobSpec, inputs: Sequence[int]) -> None:
    for size in inputs:
        moved = Copy(size, "HtoD", blocking=not spec.pinned, pinned=spec.pinned)
        there = (tensor("fp32", size // 4),)
        copied = Op("aten::copy_", (moved,), there)
        tape.op(op("aten::to", op("aten::_to_copy", copied), inputs=there))


def end_of_step(tape: Tape, spec: JobSpec, part: Part) -> None:
    """After the backward pass: reading the loss, clipping, the optimizer, logging, collecting."""
    with tape.range("train.py(97): after_backward", "frame", phase="other"):
        if spec.item_each_step:
            tape.item()
        if spec.clip:
            _clip(tape, part)
    optimizer_step(tape, spec.optimizer, part.parameters, part.dtype)
    with tape.range("train.py(104): after_step", "frame", phase="other"):
        if spec.log_every:
            tape.put(Host(spec.log_ns, "logger.info", spec.log_every))
        if spec.gc_every:
            tape.put(Host(spec.gc_ns, "gc.collect", spec.gc_every))


def _clip(tape: Tape, part: Part) -> None:
    clip(tape, part.parameters, part.dtype)
    if part.norm is not None:
        group, stream = part.norm.group, part.norm.stream
        run = Collective("all_reduce", group, 4, "fp32", stream)
        tape.put(Record("norm", "compute"), Wait("norm", stream))
        there = (tensor("fp32", 1),)
        noted = Op("record_param_comms", (Op("nccl:all_reduce", (run,), there),), there)
        tape.op(Op("c10d::allreduce_", (noted,), there))
        tape.put(Record("normed", stream), Wait("normed", "compute"))
