"""Random jobs that a laboratory might run, on random platforms, all four labels among them.

Each draw leans to one resource, and is drawn again until a rough estimate agrees. So labels are
about as frequent as each other; what the label really is, the simulation says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from perfdiag.profiler.simulator.draw_sizes import draw_size, supports_shards
from perfdiag.profiler.simulator.estimates import Estimate, Load, batch_ns, sized
from perfdiag.profiler.simulator.families import FAMILIES, MoeSize, Size
from perfdiag.profiler.simulator.jobs import sketch_job
from perfdiag.profiler.simulator.platform import Link, Platform, Resource
from perfdiag.profiler.simulator.platforms import PLATFORMS, platform_named
from perfdiag.profiler.simulator.program import Dtype, Loader
from perfdiag.profiler.simulator.spec import PARALLELISMS, JobSpec, Parallelism
from perfdiag.profiler.simulator.tape import Style

__all__ = ["draw_spec"]

TRIES = 20
"""Draws before the last one stands."""

LEANS: Mapping[Resource, int] = {"compute": 24, "memory": 34, "collective": 19, "host": 23}
"""How often each is leant to. Jobs of several ranks count more than once, and of those that lean to
memory some turn out to be bound by something else."""

HEADROOM = 0.75
"""Of the device's time, the most that the host may take where the device shall bound the step: what
an estimate takes to be hidden is not always."""

KERNELS = (50, 700)
"""Least and most kernels of a step: traces that are neither empty nor dear to simulate."""

LINKS = (0.08, 2.0)
"""How far links may be from the platform's: from Ethernet beside InfiniBand to the next
generation."""

LONGEST_NS = 4e9
"""Of a step, as it is estimated."""


def draw_spec(
    seed: int,
    families: Sequence[str] = FAMILIES,
    platforms: Sequence[str] = tuple(PLATFORMS),
    parallelisms: Sequence[Parallelism] = PARALLELISMS,
) -> tuple[JobSpec, Platform]:
    """A job and a platform; the same for the same arguments.

    Args:
        seed: of the draw.
        families: of models to choose from.
        platforms: names to choose from.
        parallelisms: to choose from; those that a family lacks are replaced by the first.
    """
    chance = Random(f"job {seed}")
    lean = chance.choices(list(LEANS), list(LEANS.values()))[0]
    family, name = chance.choice(list(families)), chance.choice(list(platforms))
    for _ in range(TRIES):
        spec = _spec(chance, family, lean, parallelisms)
        job = sketch_job(spec)
        load = sized(job)
        platform = _linked(chance, load, _platform(chance, name, lean), lean)
        parts = load.on(platform)
        spec = replace(spec, loader=_loader(chance, parts, platform, lean))
        load = replace(load, loader_ns=batch_ns(spec.loader))
        if _plausible(load.on(platform), lean) and load.bound_by(platform) == lean:
            break
    return spec, platform


def _plausible(parts: Estimate, lean: Resource) -> bool:
    host = max(parts.host_ns, parts.loader_ns)
    hidden = lean == "host" or host < HEADROOM * (parts.kernels_ns + parts.exposed_ns)
    fits = KERNELS[0] <= parts.kernels <= KERNELS[1] and parts.step_ns < LONGEST_NS
    return hidden and fits


def _spec(
    chance: Random, family: str, lean: Resource, parallelisms: Sequence[Parallelism]
) -> JobSpec:
    parallelism, ranks, shard = _spread(chance, family, lean, parallelisms)
    dtype = _dtype(chance, lean)
    size = draw_size(chance, family, lean, dtype, shard)
    pipeline = parallelism == "pp"
    return JobSpec(
        size=size,
        parallelism=parallelism,
        ranks=ranks,
        shard=shard,
        steps=chance.choice((4, 5)),
        dtype=dtype,
        optimizer=chance.choices(("fused", "foreach", "single"), (4, 5, 1))[0],
        style=_style(chance, lean, size, parallelism),
        micro_batches=chance.choice((2, 3, 4)) if pipeline else chance.choices((1, 2), (5, 1))[0],
        checkpointing=chance.random() < 0.15,
        prefetch=chance.random() < (0.5 if lean == "collective" else 0.85),
        bucket_bytes=chance.choice((25 << 20, 25 << 20, 25 << 20, 100 << 20, 5 << 20)),
        bucket_views=chance.random() < 0.4,
        clip=chance.random() < 0.3,
        pinned=chance.random() < 0.85,
        annotated=chance.random() < 0.3,
        item_each_step=chance.random() < 0.25,
        log_every=chance.choice((0, 0, 1, 2)),
        log_ns=round(chance.uniform(50_000, 600_000)),
        gc_every=chance.choice((0, 0, 0, 2)),
        gc_ns=round(chance.uniform(500_000, 6_000_000)),
        uneven=chance.choice((0.0, 0.0, 0.3)) if parallelism == "ep" and family == "moe" else 0.0,
    )


def _spread(
    chance: Random, family: str, lean: Resource, parallelisms: Sequence[Parallelism]
) -> tuple[Parallelism, int, int]:
    """Parallelism, ranks, and ranks of a shard."""
    able = [p for p in parallelisms if supports_shards(family, p)] or list(parallelisms[:1])
    alone = "single" in able and lean != "collective" and chance.random() < 0.4
    spread: list[Parallelism] = [p for p in able if p != "single"]
    found: Parallelism = "single" if alone or not spread else chance.choice(spread)
    if found == "single":
        return found, 1, 1
    if found in ("ddp", "fsdp"):
        return found, chance.choice((2, 2, 4)), 1
    if found == "ep":
        ranks = chance.choice((2, 4))
        return found, ranks, ranks
    return found, *chance.choice(((2, 2), (4, 2), (4, 4)))


def _dtype(chance: Random, lean: Resource) -> Dtype:
    if lean == "compute":
        return chance.choices(("bf16", "fp16", "tf32", "fp32"), (4, 2, 2, 1))[0]
    return chance.choices(("bf16", "fp16", "tf32"), (6, 2, 1))[0]


def _style(chance: Random, lean: Resource, size: Size, parallelism: Parallelism) -> Style:
    """Compiled, from graphs, or eager with more or less Python between operators."""
    quick = chance.random()
    graph = quick < 0.15 and parallelism in ("single", "ddp") and not _reads(size)
    compiled = chance.random() < (0.25 if lean in ("host", "memory") else 0.35)
    slow = lean == "host"
    return Style(
        compiled=compiled,
        graph=graph,
        python_ns=round(chance.uniform(4_000, 40_000) if slow else chance.uniform(1_500, 7_000)),
        module_ns=round(chance.uniform(5_000, 60_000) if slow else chance.uniform(3_000, 15_000)),
    )


def _reads(size: Size) -> bool:
    return isinstance(size, MoeSize) and size.host_splits


def _platform(chance: Random, name: str, lean: Resource) -> Platform:
    """The platform as one site has it: host, launches, and where the ranks are."""
    base = platform_named(name)
    together = chance.random() < (0.5 if lean == "collective" else 0.8)
    return replace(
        base,
        host_speed=base.host_speed * chance.uniform(0.7, 1.2),
        launch_ns=base.launch_ns * chance.uniform(0.85, 1.25),
        bytes_per_s=base.bytes_per_s * chance.uniform(0.97, 1.0),
        ranks_per_host=base.ranks_per_host if together else chance.choice((1, 2)),
    )


def _linked(chance: Random, load: Load, platform: Platform, lean: Resource) -> Platform:
    """Links in proportion to the rest of the step, within what is plausible."""
    parts = load.on(platform)
    if not parts.transfers_ns:
        return platform
    wanted = chance.uniform(1.0, 4.0) if lean == "collective" else chance.uniform(0.05, 0.6)
    busy = max(parts.kernels_ns, parts.host_ns)
    times = min(max(parts.transfers_ns / (wanted * busy), LINKS[0]), LINKS[1])
    near, far = (
        Link(link.latency_ns, link.bytes_per_s * times) for link in (platform.near, platform.far)
    )
    return replace(platform, near=near, far=far)


def _loader(chance: Random, parts: Estimate, platform: Platform, lean: Resource) -> Loader:
    """Workers, and how long a batch takes them: most keep up, some of the slow ones do not."""
    workers = chance.choice((0, 1, 2, 4, 8))
    starved = lean == "host" and chance.random() < 0.4
    share = chance.uniform(1.1, 2.5) if starved else chance.uniform(0.05, 0.75)
    if not workers and not starved:
        share = chance.uniform(0.01, 0.10)
    step = max(parts.host_ns, parts.kernels_ns + parts.exposed_ns)
    load = share * step * max(1, workers) * platform.host_speed
    return Loader(workers, max(20_000, round(load)), chance.choice((2, 2, 4)))
