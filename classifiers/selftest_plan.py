"""What the self-test runs: healthy programs, and what is done to them.

The programs are small, so that all fit into a minute, and each is bound by something else. Their
sizes and platforms are choices: they were made so that the truth of each is clear.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfdiag.profiler.simulator.families import (
    ConvolutionalSize,
    DenseSize,
    DiffusionSize,
    RecommendationSize,
)
from perfdiag.profiler.simulator.platform import Link, Platform
from perfdiag.profiler.simulator.platforms import platform_named
from perfdiag.profiler.simulator.program import Loader
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.tape import Style

__all__ = ["DAMAGES", "DOSES", "HEALTHY", "JUDGED", "PROGRAMS", "Case", "Program", "plan"]

DOSES = (0.05, 0.1, 0.2, 0.5)
"""Shares of a healthy step that faults cost."""

JUDGED = 0.1
"""Least dose that must be found: less is counted, but may go unnoticed."""

HEALTHY = "healthy"
"""In place of a fault, where there is none."""

_QUICK = (0.2,)
_STEPS = 4


@dataclass(frozen=True, slots=True)
class Program:
    """A healthy job.

    Attributes:
        title: for people.
        spec, platform: what runs on what.
        own: findings that name a fault elsewhere, and what this program does by design.
    """

    title: str
    spec: JobSpec
    platform: Platform
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and what is done to it: a fault, damage to its traces, or nothing.

    Attributes:
        program: of `PROGRAMS`.
        fault: id of `profiler.simulator.faults.FAULTS`.
        dose: of the fault, None where it has none.
        damage: id of `profiler.simulator.corruptions.CORRUPTIONS`.
        ranks: that have the fault; empty for those that it has by itself.
    """

    program: str
    fault: str | None = None
    dose: float | None = None
    damage: str | None = None
    ranks: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What is done, for people."""
        return self.fault or self.damage or HEALTHY

    @property
    def judged(self) -> bool:
        """Whether it must come out right."""
        return self.dose is None or self.dose >= JUDGED


def _slower_links(platform: Platform, times: float) -> Platform:
    """What Ethernet is beside NVLink."""
    near, far = (
        Link(link.latency_ns, link.bytes_per_s / times) for link in (platform.near, platform.far)
    )
    return replace(platform, near=near, far=far)


def _spec(spec: JobSpec) -> JobSpec:
    """With what all programs have in common.

    Each of them begins with its trace, so that the first step waits for the first batch. Loaders
    are quick, so that this is no finding in a trace that was cut short.
    """
    return replace(spec, steps=_STEPS, optimizer="fused", loader=Loader(workers=4, load_ns=20_000))


PROGRAMS: Mapping[str, Program] = {
    "dense": Program(
        "dense transformer, 1 rank, H100",
        _spec(JobSpec(DenseSize(8, 1024, 4096, 2, 32))),
        platform_named("h100"),
    ),
    "recommendation": Program(
        "embeddings and small layers, 1 rank, MI300X",
        _spec(JobSpec(RecommendationSize(8192))),
        platform_named("mi300x"),
        own=("exposed_input_copy",),  # its batches are large, beside a short step
    ),
    "diffusion": Program(
        "U-Net with little to do for its device, 1 rank, H100",
        _spec(JobSpec(DiffusionSize(1, levels=(1, 2)), style=Style(python_ns=10_000))),
        platform_named("h100"),
        own=("launch_bound_small_kernels", "python_overhead", "underfilled_kernels"),
    ),
    "sharded": Program(
        "dense transformer under FSDP, 2 ranks, A100 with slow links",
        _spec(JobSpec(DenseSize(2, 512, 2048, 2, 16), "fsdp", 2)),
        _slower_links(platform_named("a100"), 8),
        own=("exposed_all_reduce", "all_gather_not_prefetched"),  # more to move than to hide it
    ),
    "convolutional": Program(
        "ResNet under DDP, 2 ranks, V100",
        _spec(JobSpec(ConvolutionalSize(64), "ddp", 2, dtype="fp16")),
        platform_named("v100"),
        # V100 has no TF32, and images are copied before the forward pass.
        own=("exposed_input_copy", "fp32_gemm_without_tf32"),
    ),
    "meshed": Program(
        "dense transformer cut over 2 of 4 ranks, A100",
        _spec(JobSpec(DenseSize(8, 1024, 2048, 1, 16), "tp", 4, 2)),
        platform_named("a100"),
        own=("exposed_all_reduce",),  # the next operator waits for each of them
    ),
}

_ON: Mapping[str, str] = {
    "slow_loader": "dense",
    "item_each_layer": "dense",
    "allocator_storm": "dense",
    "capped_clock": "dense",
    "garbage": "diffusion",
    "pageable_copies": "recommendation",
    "logging": "recommendation",
    "late_by_loader": "convolutional",
    "late_by_garbage": "convolutional",
    "late_by_clock": "convolutional",
    "late_by_kernels": "convolutional",
}
"""The program that a fault is put into: nothing may hide there what its dose costs."""

_SMALL = Case("recommendation", "small_batch")
_ALL_LINKS = Case("convolutional", "slow_link", 0.2)
_LINK = Case("meshed", "slow_link", ranks=(0,))
_OF_FOUR = tuple(
    Case("meshed", fault, 0.1) for fault in ("late_by_loader", "late_by_garbage", "late_by_clock")
)

DAMAGES: Mapping[str, tuple[str, ...]] = {
    "lost_device_share": ("dense", "sharded"),
    "lost_device_tail": ("dense",),
    "durations_hour": ("recommendation",),
    "durations_wrapped": ("dense",),
    "durations_covering": ("convolutional",),
    "lost_calls": ("diffusion",),
    "renamed_collectives": ("sharded",),
    "skewed_clocks": ("sharded",),
    "drifting_clocks": ("convolutional",),
}
"""Damage that is tried, and on which programs."""

_QUICK_DAMAGES = ("lost_device_share", "durations_hour", "renamed_collectives", "skewed_clocks")


def plan(*, quick: bool) -> tuple[Case, ...]:
    """All that is run: healthy programs first, then faults, then damage.

    Args:
        quick: one dose of each fault, on as few ranks as it can be shown with.
    """
    names = [name for name, one in PROGRAMS.items() if not quick or one.spec.ranks <= 2]
    doses = _QUICK if quick else DOSES
    faults = [Case(program, fault, dose) for fault, program in _ON.items() for dose in doses]
    links = [] if quick else [replace(_LINK, dose=dose) for dose in doses]
    return (
        *map(Case, names),
        *faults,
        _SMALL,
        _ALL_LINKS,
        *links,
        *(() if quick else _OF_FOUR),
        *_damages(quick=quick),
    )


def _damages(*, quick: bool) -> list[Case]:
    if quick:
        return [Case(DAMAGES[name][0], damage=name) for name in _QUICK_DAMAGES]
    return [Case(program, damage=name) for name, on in DAMAGES.items() for program in on]
