"""What tells one simulated job from another: model, sizes, parallelism and options."""

from dataclasses import dataclass
from typing import Literal

from perfdiag.profiler.simulator.families import Size
from perfdiag.profiler.simulator.optimizers import OptimizerKind
from perfdiag.profiler.simulator.program import Dtype, Loader
from perfdiag.profiler.simulator.tape import Style

__all__ = ["PARALLELISMS", "JobSpec", "Parallelism"]

EAGER = Style()
LOADER = Loader(workers=4, load_ns=4_000_000)

Parallelism = Literal["single", "ddp", "fsdp", "tp", "pp", "ep"]
PARALLELISMS: tuple[Parallelism, ...] = ("single", "ddp", "fsdp", "tp", "pp", "ep")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to build.

    Attributes:
        size: of the model; its type says which family.
        parallelism: how the model is spread. `tp`, `pp` and `ep` cut it over `shard` ranks, and
            groups of those are data parallel beside each other.
        ranks: 1 to 64; `shard`: ranks of one copy of the model, which divide them.
        steps: how many are simulated.
        dtype: of activations and products.
        optimizer: how its step is launched.
        style: how operators are dispatched.
        loader: of batches.
        micro_batches: of a step: gradients are accumulated over them, or a pipeline is filled.
        checkpointing: blocks are run again in the backward pass.
        prefetch: sharded parameters are gathered a block ahead.
        bucket_bytes: see `sharding.Buckets`; `bucket_views`: gradients are views into them.
        clip: gradients are clipped.
        pinned: batches are copied from page-locked memory, without waiting; `annotated`: in a range
            that says so.
        item_each_step: the loss is read after the backward pass.
        log_every, log_ns: steps between two writings of metrics, and what one takes; 0 for none.
        gc_every, gc_ns: likewise of collections of garbage.
        uneven: how much more the rank with most tokens gets of them under expert parallelism.
    """

    size: Size
    parallelism: Parallelism = "single"
    ranks: int = 1
    shard: int = 1
    steps: int = 5
    dtype: Dtype = "bf16"
    optimizer: OptimizerKind = "foreach"
    style: Style = EAGER
    loader: Loader = LOADER
    micro_batches: int = 1
    checkpointing: bool = False
    prefetch: bool = True
    bucket_bytes: int = 25 << 20
    bucket_views: bool = False
    clip: bool = False
    pinned: bool = True
    annotated: bool = False
    item_each_step: bool = False
    log_every: int = 0
    log_ns: int = 2_000_000
    gc_every: int = 0
    gc_ns: int = 5_000_000
    uneven: float = 0.0
