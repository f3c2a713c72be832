"""What the ranks of a simulated job do: instructions of host threads, and the work they launch.

A program says what is done and what it costs in operations and bytes, never how long it takes: the
platform says that (`profiler.simulator.platform`). So one program runs on many platforms, and on
one of which a resource is twice as fast.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "COLLECTIVE_OPS",
    "PHASES",
    "Allocate",
    "Batch",
    "Call",
    "Collective",
    "Copy",
    "End",
    "Group",
    "Host",
    "Instruction",
    "Job",
    "Kernel",
    "Launch",
    "Loader",
    "Phase",
    "Range",
    "RankProgram",
    "Record",
    "ReplayGraph",
    "Synchronize",
    "Tensor",
    "Wait",
]

Phase = Literal["data", "forward", "backward", "optimizer", "other"]
PHASES: tuple[Phase, ...] = ("data", "forward", "backward", "optimizer", "other")

Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]

CollectiveOp = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", "recv"
]
COLLECTIVE_OPS: tuple[CollectiveOp, ...] = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "send",
    "recv",
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input of an operator.

    Attributes:
        dims: sizes; empty for what is no tensor.
        dtype: element type as PyTorch writes it (`c10::BFloat16`); `Scalar` or `ScalarList` for
            numbers, '' for what is not given.
        value: of numbers, as text: `1`, `[1, 1]` (the stride of a convolution).
    """

    dims: tuple[int, ...]
    dtype: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Device work that is no collective and no copy.

    Attributes:
        family: a family of `trace_schemas/kernels.toml`: how it is named, and how efficient.
        dtype: of its operands.
        dims: what its efficiency and its name hang on: (m, n, k) of a product, (b, h, s, d) of
            attention, (n, c, h, w, k, r, s) of a convolution, (elements,) of what is elementwise.
        flops: operations.
        bytes: read and written.
        detail: what else its name says: `add`, `layer_norm_fwd`, `bwd`, `multi_tensor_adamw`, the
            operators that a compiled kernel fuses.
    """

    family: str
    dtype: Dtype
    dims: tuple[int, ...]
    flops: float
    bytes: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """Opens a host range; `End` closes it. Ranges nest.

    Attributes:
        name: `aten::mm`, `ProfilerStep#`, `Optimizer.step#AdamW.step`, `nn.Module: Linear_0`.
        kind: operator, annotation (`record_function`) or Python frame.
        cost_ns: host time before what is inside, on a host of speed 1.
        inputs: of an operator.
        sequence: number by which autograd links a forward operator to its backward one.
        phase: from here to the end work belongs to this phase of the step; None leaves it.
    """

    name: str
    kind: Literal["op", "annotation", "frame"] = "op"
    cost_ns: int = 0
    inputs: tuple[Tensor, ...] = ()
    sequence: int | None = None
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class End:
    """Closes the innermost open range of the thread."""


@dataclass(frozen=True, slots=True)
class Host:
    """Host time that launches nothing.

    Attributes:
        cost_ns: on a host of speed 1.
        name: of the annotation that shows it (`gc.collect`), '' where the trace shows nothing.
        every: only in steps whose number is divisible by this.
    """

    cost_ns: int
    name: str = ""
    every: int = 1


@dataclass(frozen=True, slots=True)
class Launch:
    """Launches a kernel on a stream of the rank's device."""

    kernel: Kernel
    stream: str = "compute"


@dataclass(frozen=True, slots=True)
class ReplayGraph:
    """Launches kernels that were captured as one graph: one call, no launch for each."""

    kernels: tuple[Kernel, ...]
    stream: str = "compute"


@dataclass(frozen=True, slots=True)
class Collective:
    """Launches a collective, or one side of a transfer between two ranks.

    The n-th collective of a group on one rank meets the n-th on the others; `send` and `recv` meet
    by the two ranks and their count in that direction.

    Attributes:
        op: which.
        group: name of the process group.
        bytes: of the message as nccl-tests counts it: input of a reduction, whole output of a
            gather, whole input of a scatter, what one rank sends in an exchange.
        dtype: of its elements.
        stream: `comm` and the like; one a group in PyTorch.
        peer: rank at the other side of `send` and `recv`.
    """

    op: CollectiveOp
    group: str
    bytes: int
    dtype: Dtype = "bf16"
    stream: str = "comm"
    peer: int | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy or fill by a copy engine.

    Attributes:
        bytes: its size.
        direction: `fill` writes only.
        blocking: the host waits for its end, as for a copy from or to pageable memory.
        pinned: the host side is page-locked; if not, the copy is slower.
        stream: on which.
    """

    bytes: int
    direction: Literal["HtoD", "DtoH", "DtoD", "fill"]
    blocking: bool = False
    pinned: bool = True
    stream: str = "compute"


@dataclass(frozen=True, slots=True)
class Record:
    """Records an event on a stream. The name is that of the last record when `Wait` is called."""

    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class Wait:
    """What is launched on a stream from here on waits for an event (`cudaStreamWaitEvent`)."""

    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class Synchronize:
    """The host waits until a stream, or with None the whole device, has nothing left to do."""

    stream: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The host takes the next batch from the loader, and waits until there is one."""


@dataclass(frozen=True, slots=True)
class Allocate:
    """A call of the driver's allocator (`cudaMalloc`, or `cudaFree`, which drains the device)."""

    bytes: int
    free: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """Another thread of the rank does its instructions of this step; this one waits for their end.

    Backward passes run like that: the main thread waits in `loss.backward()` for autograd's thread.
    """

    thread: str


Instruction = (
    Range
    | End
    | Host
    | Launch
    | ReplayGraph
    | Collective
    | Copy
    | Record
    | Wait
    | Synchronize
    | Batch
    | Allocate
    | Call
)


@dataclass(frozen=True, slots=True)
class Loader:
    """Worker processes that prepare batches, in turn; each holds `prefetch` finished ones at most.

    `load_ns`: for one batch on a host of speed 1, split over workers by turns. With 0 workers the
    main thread loads itself, inside `Batch`.
    """

    workers: int
    load_ns: int
    prefetch: int = 2


@dataclass(frozen=True, slots=True)
class RankProgram:
    """What one rank does in each step.

    Attributes:
        threads: instructions of a step by thread; `main` drives, others run where it calls them.
        loader: of its batches.
        host_speed, device_speed: of this rank beside the platform's, 1 for neither faster nor
            slower; a capped clock is a `device_speed` below 1, which slows arithmetic alone.
    """

    threads: Mapping[str, tuple[Instruction, ...]]
    loader: Loader
    host_speed: float = 1.0
    device_speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Group:
    """A process group.

    Attributes:
        name: as collectives name it.
        description: as PyTorch writes it (`default_pg`, `mesh_tp`).
        ranks: members, in order.
        slowdown: how many times as long as the platform says its transfers take (a bad link).
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    slowdown: float = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """A training job.

    Attributes:
        name: for people.
        family: model family; `parallelism`: how it is spread over ranks.
        ranks: programs; ranks that do the same may share one.
        groups: process groups.
        steps: how many are simulated.
        options: what else tells it from other jobs (`eager`, `bf16`, ...), for tables.
    """

    name: str
    family: str
    parallelism: str
    ranks: Sequence[RankProgram]
    groups: Sequence[Group]
    steps: int
    options: Mapping[str, str] = field(default_factory=dict)
