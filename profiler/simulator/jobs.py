"""Jobs from their specifications: groups of ranks, and what each rank does."""

from collections.abc import Sequence
from dataclasses import replace

from perfdiag.profiler.simulator.families import build_model, family_of
from perfdiag.profiler.simulator.families.model import Model
from perfdiag.profiler.simulator.families.spread import ALONE, Spread
from perfdiag.profiler.simulator.pipeline import Stage, pipeline_threads
from perfdiag.profiler.simulator.program import (
    Collective,
    Dtype,
    Group,
    Instruction,
    Job,
    RankProgram,
)
from perfdiag.profiler.simulator.sharding import Buckets, Gathered, Members, Sharding
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.profiler.simulator.steps import Part, Threads, threads
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["WORLD", "build_job", "sketch_job"]

WORLD = "0"
"""Name of the group of all ranks, as PyTorch writes it."""

_WHOLE = ("single", "ddp", "fsdp")
"""Ways in which each rank has the whole model, so that all do the same."""

_CUT = {"tp": ("dense",), "ep": ("moe", "recommendation")}
"""Families of which a way of spreading cuts the operators."""


def build_job(spec: JobSpec) -> Job:
    """The job of a specification.

    Raises:
        UsageError: ranks and parallelism do not fit.
    """
    _check(spec)
    models = [_model_rank(spec, rank) for rank in range(spec.ranks)]
    made = {rank: _program(spec, rank) for rank in sorted(set(models))}
    return _job(
        spec,
        tuple(_moved(spec, made[like], like, rank) for rank, like in enumerate(models)),
    )


def sketch_job(spec: JobSpec) -> Job:
    """The job with the program of its first rank alone, to estimate what a step takes.

    Raises:
        UsageError: ranks and parallelism do not fit.
    """
    _check(spec)
    return _job(spec, (_program(spec, 0),))


def _job(spec: JobSpec, programs: Sequence[RankProgram]) -> Job:
    family = family_of(spec.size)
    name = f"{family} {spec.parallelism} x{spec.ranks}"
    return Job(name, family, spec.parallelism, programs, _groups(spec), spec.steps, _options(spec))


def _check(spec: JobSpec) -> None:
    family = family_of(spec.size)
    if family not in _CUT.get(spec.parallelism, (family,)):
        problem = f"{spec.parallelism!r} does not cut a model of family {family!r}"
        raise UsageError(problem)
    fits = {
        "single": spec.ranks == 1 and spec.shard == 1,
        "ddp": spec.shard == 1,
        "fsdp": spec.shard == 1,
        "ep": spec.shard == spec.ranks,
    }
    if not 1 <= spec.ranks <= 64 or not fits.get(spec.parallelism, spec.ranks % spec.shard == 0):
        problem = (
            f"{spec.ranks} ranks in shards of {spec.shard} do not make a job with "
            f"{spec.parallelism!r}: 1 to 64 ranks, shards of 1 for 'single', 'ddp' and 'fsdp', of "
            "all ranks for 'ep', and that divide the ranks for 'tp' and 'pp'"
        )
        raise UsageError(problem)


def _options(spec: JobSpec) -> dict[str, str]:
    style = spec.style
    dispatch = ("compiled" if style.compiled else "eager") + ("+graph" if style.graph else "")
    return {
        "dtype": spec.dtype,
        "dispatch": dispatch,
        "optimizer": spec.optimizer,
        "checkpointing": "yes" if spec.checkpointing else "no",
        "micro_batches": str(spec.micro_batches),
    }


def _groups(spec: JobSpec) -> tuple[Group, ...]:
    """All ranks; the ranks of each copy of the model; those that have the same part of it."""
    if spec.ranks == 1:
        return ()
    everyone = Group(WORLD, "default_pg", tuple(range(spec.ranks)))
    if spec.parallelism in _WHOLE:
        return (everyone,)
    copies, kind = spec.ranks // spec.shard, spec.parallelism
    models = [
        Group(_model_group(spec, at), f"mesh_{kind}", tuple(range(at, at + spec.shard)))
        for at in range(0, spec.ranks, spec.shard)
    ]
    data = [
        Group(_data_group(spec, at), "mesh_dp", tuple(range(at, spec.ranks, spec.shard)))
        for at in range(spec.shard)
        if copies > 1 and kind != "ep"
    ]
    return (everyone, *models, *data)


def _model_group(spec: JobSpec, rank: int) -> str:
    """Name of the group that one copy of the model is cut over."""
    return WORLD if spec.parallelism in _WHOLE else str(1 + rank // spec.shard)


def _data_group(spec: JobSpec, rank: int) -> str:
    """Name of the group that averages the same gradients."""
    if spec.parallelism in ("ddp", "fsdp", "ep"):
        return WORLD
    return str(1 + spec.ranks // spec.shard + rank % spec.shard)


def _program(spec: JobSpec, rank: int) -> RankProgram:
    model = build_model(spec.size, spec.dtype, _spread(spec, rank))
    if spec.parallelism == "pp":
        return RankProgram(_stage_threads(spec, model, rank), spec.loader)
    part = _part(spec, model, rank)
    return RankProgram(threads(spec, part), spec.loader)


def _model_rank(spec: JobSpec, rank: int) -> int:
    """The first rank that does the same, but in groups of other names."""
    if spec.parallelism == "pp":
        return rank % spec.shard
    return min(rank, 1) if spec.uneven else 0


def _moved(spec: JobSpec, program: RankProgram, like: int, rank: int) -> RankProgram:
    """The program of one rank as that of another, which does the same in its own groups."""
    names = {
        name(spec, like): name(spec, rank)
        for name in (_model_group, _data_group)
        if name(spec, like) != name(spec, rank)
    }
    if rank == like or not names:
        return program

    def moved(one: Instruction) -> Instruction:
        if not isinstance(one, Collective) or one.group not in names:
            return one
        peer = None if one.peer is None else one.peer + rank - like
        return replace(one, group=names[one.group], peer=peer)

    threads = {name: tuple(map(moved, done)) for name, done in program.threads.items()}
    return replace(program, threads=threads)


def _spread(spec: JobSpec, rank: int) -> Spread:
    if spec.parallelism not in ("tp", "ep") or spec.shard == 1:
        return ALONE
    load = 1 + spec.uneven if rank == 0 else 1 - spec.uneven / (spec.shard - 1)
    return Spread(spec.shard, _model_group(spec, rank), load=load)


def _part(spec: JobSpec, model: Model, rank: int) -> Part:
    """What a rank has of a model."""
    norm = None
    if spec.ranks > 1 and spec.parallelism != "ddp":
        norm = Members(WORLD, spec.ranks, "fp32")
    return Part(
        blocks=model.blocks,
        inputs=model.inputs,
        dtype=_state_dtype(spec),
        sharding=_sharding(spec, model, rank),
        norm=norm,
        family=family_of(spec.size),
    )


def _sharding(spec: JobSpec, model: Model, rank: int) -> Sharding:
    copies = spec.ranks if spec.parallelism == "ep" else spec.ranks // spec.shard
    if copies == 1:
        return Sharding()
    group = _data_group(spec, rank)
    stream = "comm" if group == WORLD else "comm_data"
    members = Members(group, copies, _gradient_dtype(spec), stream)
    if spec.parallelism == "fsdp":
        return Gathered(members, model.blocks, spec.prefetch)
    return Buckets(members, spec.bucket_bytes, spec.bucket_views)


def _gradient_dtype(spec: JobSpec) -> Dtype:
    """Gradients have the type of their parameters."""
    if getattr(spec.size, "autocast", False) and spec.parallelism != "fsdp":
        return "fp32"
    return spec.dtype


def _state_dtype(spec: JobSpec) -> Dtype:
    """Of parameters and moments: float32, unless the whole model is bfloat16."""
    pure = spec.dtype == "bf16" and not getattr(spec.size, "autocast", False)
    return "bf16" if pure and spec.parallelism != "fsdp" else "fp32"


def _stage_threads(spec: JobSpec, model: Model, rank: int) -> Threads:
    at, count = rank % spec.shard, spec.shard
    edges = [round(i * len(model.blocks) / count) for i in range(count + 1)]
    blocks = model.blocks[edges[at] : edges[at + 1]]
    if not blocks:
        problem = f"{len(model.blocks)} blocks do not fill {count} stages"
        raise UsageError(problem)
    first, last = at == 0, at == count - 1
    inputs = tuple(size * spec.micro_batches for size in model.inputs) if first or last else ()
    mine = replace(model, blocks=blocks, inputs=inputs)
    stage = Stage(
        index=at,
        count=count,
        group=_model_group(spec, rank),
        before=None if first else rank - 1,
        behind=None if last else rank + 1,
        boundary_bytes=model.boundary_bytes,
        dtype=model.dtype,
    )
    return pipeline_threads(spec, _part(spec, mine, rank), stage)
