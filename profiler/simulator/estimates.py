"""How long a step of a job takes, roughly and at once: to draw jobs, and to measure doses in.

The simulation says it exactly. Here the longest of host, loader and device counts, and of each way
of spreading a model a fixed share of its transfers is taken as not hidden.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfdiag.profiler.simulator.platform import RESOURCES, Platform, Resource, with_faster
from perfdiag.profiler.simulator.program import (
    Call,
    Collective,
    Copy,
    Host,
    Instruction,
    Job,
    Kernel,
    Launch,
    Loader,
    Range,
    RankProgram,
    Record,
    ReplayGraph,
    Wait,
)

__all__ = ["Estimate", "Load", "batch_ns", "estimate", "instructions", "sized"]

EXPOSED: Mapping[str, float] = {"ddp": 0.5, "fsdp": 0.6}
"""Share of transfers that is not hidden; all of them where the next operator waits."""

EVENT_SHARE = 0.3
"""Of a launch's host time, what recording an event or waiting for one costs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of a step of one rank.

    Attributes:
        host_ns: its threads, none of them waiting; `loader_ns`: between two batches.
        kernels_ns, transfers_ns: on the device; `exposed_ns`: transfers that are not hidden.
        kernels: how many.
    """

    host_ns: float
    loader_ns: float
    kernels_ns: float
    transfers_ns: float
    exposed_ns: float
    kernels: int

    @property
    def step_ns(self) -> float:
        """The whole step."""
        return max(self.host_ns, self.loader_ns, self.kernels_ns + self.exposed_ns)


@dataclass(frozen=True, slots=True)
class Load:
    """What a rank does in a step, counted.

    Attributes:
        host_ns: without calls, on a host of speed 1; `calls`: launches that this many cost as much
            as.
        kernels: each with how often it runs; `graphed`: how many of them from graphs.
        copies: between host and device, and on it.
        collectives: each with the ranks that it spans, and how many times as long it takes.
        loader_ns: between two batches, on a host of speed 1.
        exposed: share of transfers that is not hidden.
        host_speed, device_speed: of the rank.
    """

    host_ns: float
    calls: float
    kernels: Mapping[Kernel, int]
    graphed: int
    copies: tuple[Copy, ...]
    collectives: tuple[tuple[Collective, tuple[int, ...], float], ...]
    loader_ns: float
    exposed: float
    host_speed: float
    device_speed: float

    def on(self, platform: Platform) -> Estimate:
        """How long it takes on a platform."""
        speed = self.host_speed * platform.host_speed
        device = sum(
            times * platform.kernel_ns(kernel, self.device_speed)
            for kernel, times in self.kernels.items()
        )
        copied = sum(platform.copy_ns(copy) for copy in self.copies)
        moved = sum(
            slow * platform.transfer_ns(collective, ranks)
            for collective, ranks, slow in self.collectives
        )
        return Estimate(
            host_ns=(self.host_ns + self.calls * platform.launch_ns) / speed,
            loader_ns=self.loader_ns / speed,
            kernels_ns=device + copied + self.graphed * platform.graph_gap_ns,
            transfers_ns=moved,
            exposed_ns=self.exposed * moved,
            kernels=sum(self.kernels.values()),
        )

    def bound_by(self, platform: Platform) -> Resource:
        """The resource that, twice as fast, would shorten the step most."""
        return min(RESOURCES, key=lambda one: self.on(with_faster(platform, one)).step_ns)


def estimate(job: Job, platform: Platform) -> Estimate:
    """How long a step of the first rank takes, and its parts."""
    return sized(job).on(platform)


def sized(job: Job, of_rank: int = 0) -> Load:
    """What a rank of a job, by default the first, does in a step."""
    rank = job.ranks[of_rank]
    groups = {group.name: group for group in job.groups}
    done = list(instructions(rank))
    launched: dict[Kernel, int] = {}
    for kernel in _kernels(done):
        launched[kernel] = launched.get(kernel, 0) + 1
    return Load(
        host_ns=sum(_host_ns(one) for one in done),
        calls=sum(_calls(one) for one in done),
        kernels=launched,
        graphed=sum(len(one.kernels) for one in done if isinstance(one, ReplayGraph)),
        copies=tuple(one for one in done if isinstance(one, Copy)),
        collectives=tuple(
            (one, groups[one.group].ranks[: 2 if one.peer is not None else None], slow)
            for one in done
            if isinstance(one, Collective)
            for slow in (groups[one.group].slowdown,)
        ),
        loader_ns=batch_ns(rank.loader),
        exposed=EXPOSED.get(job.parallelism, 1.0),
        host_speed=rank.host_speed,
        device_speed=rank.device_speed,
    )


def instructions(rank: RankProgram, thread: str = "main") -> Iterable[Instruction]:
    """What a rank does in a step, with what other threads do where it calls them."""
    for one in rank.threads[thread]:
        if isinstance(one, Call):
            yield from instructions(rank, one.thread)
        else:
            yield one


def batch_ns(loader: Loader) -> float:
    """Time between two batches, on a host of speed 1."""
    return loader.load_ns / max(1, loader.workers)


def _kernels(done: Iterable[Instruction]) -> Iterable[Kernel]:
    for one in done:
        if isinstance(one, Launch):
            yield one.kernel
        elif isinstance(one, ReplayGraph):
            yield from one.kernels


def _host_ns(one: Instruction) -> float:
    if isinstance(one, Range):
        return one.cost_ns
    return one.cost_ns / one.every if isinstance(one, Host) else 0.0


def _calls(one: Instruction) -> float:
    if isinstance(one, Launch | ReplayGraph | Collective | Copy):
        return 1.0
    return EVENT_SHARE if isinstance(one, Record | Wait) else 0.0
