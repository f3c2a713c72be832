"""How gradients and parameters are shared by the ranks of one group while a model runs."""

from collections.abc import Sequence
from typing import NamedTuple

from perfdiag.profiler.simulator.families.model import (
    ELEMENT_BYTES,
    Block,
    Op,
    op,
    streaming,
    tensor,
)
from perfdiag.profiler.simulator.program import (
    Collective,
    CollectiveOp,
    Dtype,
    End,
    Range,
    Record,
    Wait,
)
from perfdiag.profiler.simulator.tape import COMPOSITE_NS, Tape

__all__ = ["Buckets", "Gathered", "Members", "Sharding", "accumulate"]

FIRST_BUCKET_BYTES = 1 << 20
"""DistributedDataParallel's first bucket, so that reducing starts early (torch/nn/parallel)."""

HOOK_NS = 6_000
"""Of FSDP before and after each module."""


class Members(NamedTuple):
    """A process group, and the type of the gradients that it reduces."""

    group: str
    size: int
    dtype: Dtype
    stream: str = "comm"


class Sharding:
    """Nothing is shared; the ways of sharing are below."""

    def before_forward(self, tape: Tape, index: int) -> None:
        """Before a block's forward pass."""

    def after_forward(self, tape: Tape, index: int) -> None:
        """After it."""

    def before_backward(self, tape: Tape, index: int) -> None:
        """Before a block's backward pass."""

    def ready(self, tape: Tape, parameters: Sequence[int]) -> None:
        """The gradients of parameters, in elements each, are there."""

    def after_backward(self, tape: Tape, index: int) -> None:
        """After a block's backward pass."""

    def finish(self, tape: Tape) -> None:
        """At the end of the whole backward pass."""

    def owned(self, parameters: Sequence[int]) -> tuple[int, ...]:
        """Of each parameter the elements that this rank's optimizer updates."""
        return tuple(parameters)


def accumulate(tape: Tape) -> None:
    """The engine hands a gradient to its parameter."""
    name = "torch::autograd::AccumulateGrad"
    with tape.range(f"autograd::engine::evaluate_function: {name}", "op", COMPOSITE_NS):
        tape.put(Range(name, "op", COMPOSITE_NS), End())


def _launch(tape: Tape, kind: CollectiveOp, elements: int, members: Members, event: str) -> None:
    """A collective behind what the compute stream has been given so far."""
    calls = {
        "all_reduce": ("c10d::allreduce_", "nccl:all_reduce"),
        "all_gather": ("c10d::_allgather_base_", "nccl:_all_gather_base"),
        "reduce_scatter": ("c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base"),
    }
    name, annotation = calls[kind]
    there = (tensor(members.dtype, elements),)
    size = elements * ELEMENT_BYTES[members.dtype]
    run = Collective(kind, members.group, size, members.dtype, members.stream)
    noted = Op("record_param_comms", (Op(annotation, (run,), there),), there)
    tape.op(op(name, noted, Record(event, members.stream), inputs=there))


class Buckets(Sharding):
    """DistributedDataParallel: gradients are reduced in buckets while the backward pass goes on.

    Args:
        members: the group.
        bucket_bytes: a bucket is reduced when it holds that much (25 MiB is the default of
            PyTorch); 0 reduces everything after the backward pass.
        view: gradients are views into the buckets; if not, each is copied into its bucket.
    """

    def __init__(self, members: Members, bucket_bytes: int = 25 << 20, view: bool = False) -> None:
        """Start with an empty bucket."""
        self._members = members
        self._limit = bucket_bytes
        self._view = view
        self._held = 0
        self._sent = 0

    def ready(self, tape: Tape, parameters: Sequence[int]) -> None:
        """Put gradients into the bucket, and reduce it when it is full."""
        for elements in reversed(parameters):
            if not self._view:
                tape.op(_into_bucket(elements, self._members.dtype))
            self._held += elements
            limit = self._limit if self._sent else min(self._limit, FIRST_BUCKET_BYTES)
            held = self._held * ELEMENT_BYTES[self._members.dtype]
            if self._limit and held >= limit:
                self._reduce(tape)

    def finish(self, tape: Tape) -> None:
        """Reduce the rest; what comes after waits for all buckets."""
        if self._held:
            self._reduce(tape)
        for number in range(self._sent):
            tape.put(Wait(f"reduced_{number}", "compute"))
        self._sent = 0

    def _reduce(self, tape: Tape) -> None:
        tape.put(Record("bucket", "compute"), Wait("bucket", self._members.stream))
        _launch(tape, "all_reduce", self._held, self._members, f"reduced_{self._sent}")
        self._held = 0
        self._sent += 1


def _into_bucket(elements: int, dtype: Dtype) -> Op:
    """Divide a gradient by the number of ranks, into its place in the bucket."""
    there = (tensor(dtype, elements),) * 2
    return op("aten::mul", streaming("elementwise", dtype, (elements,), 2, "mul"), inputs=there)


class Gathered(Sharding):
    """Fully sharded parameters (FSDP2): gathered block by block, gradients scattered as sums.

    Gathers do not wait for the compute stream, but for the block before the last to give its
    memory back, so that the gather of a block runs beside the one before it.

    Args:
        members: the group.
        blocks: of the model.
        prefetch: without it a gather waits for all that has been launched.
    """

    def __init__(self, members: Members, blocks: Sequence[Block], prefetch: bool = True) -> None:
        """Pad each block's parameters to shards of one size."""
        self._members = members
        self._elements = [_padded(block.parameters, members.size) for block in blocks]
        self._prefetch = prefetch

    def before_forward(self, tape: Tape, index: int) -> None:
        """Gather the block, and the next one beside it."""
        if index == 0:
            tape.put(Record("free", "compute"))
        if index == 0 or not self._prefetch:
            self._gather(tape, index)
        if self._prefetch and index + 1 < len(self._elements):
            self._gather(tape, index + 1)
        self._unpack(tape, index)

    def after_forward(self, tape: Tape, index: int) -> None:
        """Give the block's memory back."""
        tape.put(Record("free", "compute"))

    def before_backward(self, tape: Tape, index: int) -> None:
        """Gather the block again, and the one before it beside it."""
        if index == len(self._elements) - 1:
            tape.put(Record("free", "compute"))
        if index == len(self._elements) - 1 or not self._prefetch:
            self._gather(tape, index, "backward")
        if self._prefetch and index:
            self._gather(tape, index - 1, "backward")
        self._unpack(tape, index)

    def after_backward(self, tape: Tape, index: int) -> None:
        """Scatter the sums of the block's gradients."""
        elements = self._elements[index]
        if not elements:
            return
        there = (tensor(self._members.dtype, elements),)
        packed = streaming("copy", self._members.dtype, (elements,), 2, "cat")
        tape.op(op("fsdp::chunk_cat", packed, inputs=there))
        tape.put(Record("packed", "compute"), Wait("packed", self._members.stream))
        _launch(tape, "reduce_scatter", elements, self._members, "scattered")
        tape.put(Record("free", "compute"))

    def finish(self, tape: Tape) -> None:
        """The optimizer waits for the last sums."""
        tape.put(Wait("scattered", "compute"))

    def owned(self, parameters: Sequence[int]) -> tuple[int, ...]:
        """A shard of each parameter."""
        return tuple(-(-elements // self._members.size) for elements in parameters)

    def _gather(self, tape: Tape, index: int, way: str = "forward") -> None:
        if not self._elements[index]:
            return
        with tape.range(f"FSDP::pre_{way}", "annotation", HOOK_NS):
            if not self._prefetch:
                tape.put(Record("free", "compute"))
            tape.put(Wait("free", self._members.stream))
            _launch(tape, "all_gather", self._elements[index], self._members, f"gathered_{index}")

    def _unpack(self, tape: Tape, index: int) -> None:
        """Wait for the gather, and copy each parameter to where it is read."""
        elements = self._elements[index]
        if not elements:
            return
        there = (tensor(self._members.dtype, elements),)
        unpacked = streaming("copy", self._members.dtype, (elements,), 2, "split_with_sizes")
        tape.put(Wait(f"gathered_{index}", "compute"))
        tape.op(op("fsdp::split_with_sizes_copy", unpacked, inputs=there))


def _padded(elements: int, ranks: int) -> int:
    return -(-elements // ranks) * ranks
