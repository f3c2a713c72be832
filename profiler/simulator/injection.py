"""Faults by changing what ranks do or how fast they are. Each takes a scene and gives a job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeGuard

from perfdiag.profiler.simulator.edits import (
    gaps,
    in_thread,
    inserted,
    on_ranks,
    spaced,
    without_range,
)
from perfdiag.profiler.simulator.estimates import instructions, sized
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import (
    Allocate,
    Copy,
    End,
    Host,
    Instruction,
    Job,
    Kernel,
    Launch,
    Loader,
    Phase,
    Range,
    RankProgram,
)
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.tape import Style, Tape
from perfdiag.trace_schemas.errors import UsageError

__all__ = [
    "Scene",
    "allocate_each_step",
    "collect_garbage",
    "copy_pageable",
    "copy_pinned",
    "launch_more",
    "load_ahead",
    "load_by_more",
    "load_inline",
    "load_slowly",
    "look_late",
    "lower_clock",
    "read_values",
    "slow_links",
    "write_logs",
]

READS = 8
"""Values that are read in a step: one a layer of a small model."""

SLOWEST = 0.2
"""Clock beside the usual one below which no device runs."""

WORKERS = 4
"""Of a loader that works ahead: default of --workers in PyTorch's ImageNet example."""

LARGEST_BYTES = 1 << 27
"""Of one block of memory that an allocator asks for."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A healthy job, and what shall become of it.

    Attributes:
        spec: that the job was built from; `job`: it.
        platform: that it runs on.
        step_ns: a healthy step, simulated or estimated.
        dose: share of that.
        ranks: that have the fault.
    """

    spec: JobSpec
    job: Job
    platform: Platform
    step_ns: float
    dose: float
    ranks: tuple[int, ...]

    @property
    def cost_ns(self) -> float:
        """What the fault shall cost."""
        return self.dose * self.step_ns

    @property
    def work_ns(self) -> int:
        """Host time, on a host of speed 1, that takes as long as the fault shall cost."""
        return self._on_host(self.cost_ns)

    @property
    def noticed_ns(self) -> int:
        """The same, and what a host that runs ahead of its device hides of it.

        Where the loss is read in each step, the host does not run ahead.
        """
        if self.spec.item_each_step:
            return self.work_ns
        host = sized(self.job, self.ranks[0]).on(self.platform).host_ns
        return self._on_host(self.cost_ns + max(0.0, self.step_ns - host))

    def _on_host(self, ns: float) -> int:
        return max(1, round(ns * self.platform.host_speed))


def load_slowly(scene: Scene) -> Job:
    """Workers need as much longer for a batch that a step waits for them, by the dose."""
    between = scene.step_ns + scene.cost_ns

    def slower(program: RankProgram) -> RankProgram:
        workers = max(1, program.loader.workers)
        load = round(between * workers * scene.platform.host_speed * program.host_speed)
        return replace(program, loader=replace(program.loader, workers=workers, load_ns=load))

    return on_ranks(scene.job, scene.ranks, slower)


def load_by_more(scene: Scene) -> Job:
    """The same batches, by twice as many workers."""
    return on_ranks(
        load_slowly(scene),
        scene.ranks,
        lambda program: replace(
            program, loader=replace(program.loader, workers=2 * program.loader.workers)
        ),
    )


def load_inline(scene: Scene) -> Job:
    """The training process loads its batches itself."""

    def inline(program: RankProgram) -> RankProgram:
        times = scene.spec.micro_batches if scene.spec.parallelism != "pp" else 1
        load = max(1, round(scene.noticed_ns * program.host_speed / times))
        return replace(program, loader=Loader(workers=0, load_ns=load))

    return on_ranks(scene.job, scene.ranks, inline)


def load_ahead(scene: Scene) -> Job:
    """The same batches, by workers."""
    return on_ranks(
        load_inline(scene),
        scene.ranks,
        lambda program: replace(program, loader=replace(program.loader, workers=WORKERS)),
    )


def read_values(scene: Scene) -> Job:
    """Values are read in the middle of the forward pass, and looked at in Python."""
    tape = Tape(Style())
    tape.item()
    what = (*tape.instructions, Host(max(1, scene.work_ns // READS)))
    return _in_phase(scene, "forward", what, READS)


def look_late(scene: Scene) -> Job:
    """Python looks at values of the step before: nobody waits for any value of this one."""
    looked = _in_phase(scene, "forward", (Host(max(1, scene.work_ns // READS)),), READS)
    return on_ranks(
        looked,
        scene.ranks,
        lambda program: in_thread(program, lambda done: without_range(done, "aten::item")),
    )


def collect_garbage(scene: Scene) -> Job:
    """A collection of garbage in the middle of each forward pass."""
    return _in_phase(scene, "forward", (Host(scene.noticed_ns, "gc.collect"),), 1)


def write_logs(scene: Scene) -> Job:
    """Metrics are read and written after each step."""
    tape = Tape(Style())
    tape.item()
    what = (*tape.instructions, Host(scene.work_ns, "logger.info"))
    return _in_phase(scene, "other", what, 1)


def allocate_each_step(scene: Scene) -> Job:
    """Memory is given back to the driver after each step, and asked for again in the next."""
    calls = max(1, round(scene.work_ns / scene.platform.allocate_ns / 2))
    asked = _in_phase(scene, "forward", (Allocate(LARGEST_BYTES),), calls)
    after = replace(scene, job=asked)
    return _in_phase(after, "other", (Allocate(LARGEST_BYTES, free=True),), calls)


def _in_phase(scene: Scene, phase: Phase, what: Sequence[Instruction], count: int) -> Job:
    """Instructions put into a phase of the main thread, so many times at even distances."""

    def changed(done: Sequence[Instruction]) -> Sequence[Instruction]:
        places = gaps(done, phase)
        if not places:
            problem = f"no place in phase {phase!r} to put the fault"
            raise UsageError(problem)
        return inserted(done, spaced(places, count), what)

    return on_ranks(scene.job, scene.ranks, lambda program: in_thread(program, changed))


def copy_pageable(scene: Scene) -> Job:
    """Batches are copied from pageable memory, and are so large that it takes the dose."""
    return _copied(scene, lambda one: replace(one, blocking=True, pinned=False))


def copy_pinned(scene: Scene) -> Job:
    """Batches as large, copied as in the healthy job."""
    return _copied(scene, lambda one: one)


def _copied(scene: Scene, how: Callable[[Copy], Copy]) -> Job:
    """Batches are so large that it takes the dose to copy them from pageable memory."""
    first = next(r for r in scene.ranks if any(map(_to_device, instructions(scene.job.ranks[r]))))
    own = sum(c.bytes for c in instructions(scene.job.ranks[first]) if _to_device(c))
    wanted = scene.cost_ns * scene.platform.pageable_bytes_per_s / 1e9
    times = max(1.0, wanted / own)

    def changed(one: Instruction) -> Instruction:
        return how(replace(one, bytes=round(one.bytes * times))) if _to_device(one) else one

    return on_ranks(
        scene.job,
        scene.ranks,
        lambda program: in_thread(program, lambda done: [changed(one) for one in done]),
    )


def _to_device(one: Instruction) -> TypeGuard[Copy]:
    return isinstance(one, Copy) and one.direction == "HtoD"


def slow_links(scene: Scene) -> Job:
    """Groups with one of the ranks transfer so slowly that a step takes longer by the dose."""
    chosen = set(scene.ranks)
    hit = {group.name for group in scene.job.groups if chosen & set(group.ranks)}
    load = sized(scene.job)
    healthy = sum(
        scene.platform.transfer_ns(one, ranks)
        for one, ranks, _ in load.collectives
        if one.group in hit
    )
    if not healthy:
        problem = "no collective runs over a link of these ranks"
        raise UsageError(problem)
    times = 1 + scene.cost_ns / healthy
    groups = tuple(
        replace(group, slowdown=group.slowdown * times) if group.name in hit else group
        for group in scene.job.groups
    )
    return replace(scene.job, groups=groups)


def lower_clock(scene: Scene) -> Job:
    """Clocks of devices are so low that kernels take longer by the dose, on the busiest rank.

    Where memory bounds too many kernels for that, the clock is the lowest there is.
    """
    loads = [sized(scene.job, rank) for rank in scene.ranks]
    load = max(loads, key=lambda one: one.on(scene.platform).kernels_ns)
    wanted = load.on(scene.platform).kernels_ns + scene.cost_ns
    low, high = SLOWEST, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        slower = replace(load, device_speed=middle * load.device_speed)
        if slower.on(scene.platform).kernels_ns > wanted:
            low = middle
        else:
            high = middle
    return on_ranks(
        scene.job,
        scene.ranks,
        lambda program: replace(program, device_speed=program.device_speed * high),
    )


def launch_more(scene: Scene) -> Job:
    """Some ranks have more to compute: their largest kernel again and again."""
    load = sized(scene.job, scene.ranks[0])
    largest = max(load.kernels, key=scene.platform.kernel_ns)
    takes = scene.platform.kernel_ns(largest) - scene.platform.floor_ns
    count = max(1, ceil(scene.cost_ns / takes))
    times = max(0.0, scene.cost_ns / count - scene.platform.floor_ns) / takes
    more = replace(largest, flops=largest.flops * times, bytes=largest.bytes * times)
    what = (Range(_operator(more), "op", 3_000), Launch(more), End())
    return _in_phase(scene, "forward", what, count)


def _operator(kernel: Kernel) -> str:
    return "aten::mm" if kernel.family == "gemm" else f"aten::{kernel.detail or kernel.family}"
