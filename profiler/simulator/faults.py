"""Faults that are put into healthy jobs, so that their cause and their cost are known.

A dose is a share of a healthy step: a fault of dose 0.2 is made to cost about a fifth of a step
where nothing hides it. Faults of configuration have no dose; they are there or not. Each fault says
which findings should name it, and which label it pushes the step to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from perfdiag.profiler.simulator import injection
from perfdiag.profiler.simulator.estimates import estimate, instructions
from perfdiag.profiler.simulator.families import DenseSize, DiffusionSize, MoeSize, Size
from perfdiag.profiler.simulator.injection import Scene
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Host, Job
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["FAULTS", "Fault", "inject", "mend"]

Label = Literal["compute-bound", "memory-bound", "collective-bound", "host-bound"]


def _healthy(scene: Scene) -> Job:
    return scene.job


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    Attributes:
        id: for tables and commands; `title`: for people.
        findings: ids of diagnoses, of which one at least should name it.
        label: that it pushes the step of the ranks that have it to.
        dosed: whether it has a dose.
        one_rank: whether it is one rank's, which others wait for.
        change: puts it in.
        mended: the job after its fix; unless stated the healthy one.
    """

    id: str
    title: str
    findings: tuple[str, ...]
    label: Label
    change: Callable[[Scene], Job]
    dosed: bool = True
    one_rank: bool = False
    mended: Callable[[Scene], Job] = _healthy


def inject(
    fault: str,
    spec: JobSpec,
    platform: Platform,
    dose: float = 0.0,
    ranks: tuple[int, ...] = (),
    step_ns: float | None = None,
) -> Job:
    """A job with a fault.

    Args:
        fault: id of one of `FAULTS`.
        spec: of the healthy job.
        platform: that it runs on.
        dose: share of a healthy step.
        ranks: that have it; by default the last one of faults of one rank, else all.
        step_ns: a healthy step; by default it is estimated.

    Raises:
        UsageError: there is no such fault, or the job cannot have it.
    """
    return _found(fault, spec).change(_scene(fault, spec, platform, (dose, ranks, step_ns)))


def mend(
    fault: str,
    spec: JobSpec,
    platform: Platform,
    dose: float = 0.0,
    ranks: tuple[int, ...] = (),
    step_ns: float | None = None,
) -> Job:
    """What a job with a fault becomes by its fix: what the fault is made with stays.

    Args:
        fault: as in `inject`, like all else.
        spec: of the healthy job.
        platform: that it runs on.
        dose: share of a healthy step.
        ranks: that have it.
        step_ns: a healthy step.

    Raises:
        UsageError: there is no such fault, or its means cannot be put into the job.
    """
    return _found(fault, spec).mended(_scene(fault, spec, platform, (dose, ranks, step_ns)))


def _found(fault: str, spec: JobSpec) -> Fault:
    if fault not in FAULTS:
        problem = f"no fault {fault!r}: one of {', '.join(FAULTS)}"
        raise UsageError(problem)
    found = FAULTS[fault]
    if found.one_rank and spec.ranks == 1:
        problem = f"{fault!r} makes others wait for one rank: the job needs two ranks or more"
        raise UsageError(problem)
    return found


def _scene(
    fault: str,
    spec: JobSpec,
    platform: Platform,
    dosed: tuple[float, tuple[int, ...], float | None],
) -> Scene:
    dose, ranks, step_ns = dosed
    job = build_job(spec)
    everyone = tuple(range(spec.ranks))
    chosen = ranks or (everyone[-1:] if FAULTS[fault].one_rank else everyone)
    step = estimate(job, platform).step_ns if step_ns is None else step_ns
    return Scene(spec, job, platform, step, dose, chosen)


def _small_batch(scene: Scene) -> Job:
    """A sixteenth of the batch."""
    return build_job(replace(scene.spec, size=_with_batch(scene.spec.size, 16)))


def _with_batch(size: Size, divisor: int) -> Size:
    if isinstance(size, MoeSize):
        return replace(size, base=replace(size.base, batch=max(1, size.base.batch // divisor)))
    return replace(size, batch=max(1, size.batch // divisor))


def _single_tensors(scene: Scene) -> Job:
    return build_job(replace(scene.spec, optimizer="single"))


def _without_overlap(scene: Scene) -> Job:
    if scene.spec.parallelism != "ddp":
        problem = "only gradients of distributed data parallel ('ddp') are reduced in buckets"
        raise UsageError(problem)
    return build_job(replace(scene.spec, bucket_bytes=0))


def _without_prefetch(scene: Scene) -> Job:
    if scene.spec.parallelism != "fsdp":
        problem = "only sharded parameters ('fsdp') are gathered"
        raise UsageError(problem)
    return build_job(replace(scene.spec, prefetch=False))


def _float32(scene: Scene) -> Job:
    return build_job(replace(scene.spec, dtype="fp32", size=_without_autocast(scene.spec.size)))


def _tf32(scene: Scene) -> Job:
    """The same tensors; only products round their operands. Without that type, the healthy job."""
    peaks = scene.platform.flops_per_s
    if peaks.get("tf32", 0.0) <= peaks["fp32"]:
        return scene.job
    return build_job(replace(scene.spec, dtype="tf32", size=_without_autocast(scene.spec.size)))


def _without_autocast(size: Size) -> Size:
    if isinstance(size, MoeSize):
        return replace(size, base=replace(size.base, autocast=False))
    return replace(size, autocast=False) if isinstance(size, DenseSize) else size


def _plain_attention(scene: Scene) -> Job:
    size = scene.spec.size
    if isinstance(size, MoeSize):
        changed: Size = replace(size, base=replace(size.base, fused_attention=False))
    elif isinstance(size, DenseSize | DiffusionSize):
        changed = replace(size, fused_attention=False)
    else:
        problem = "the model has no attention"
        raise UsageError(problem)
    return build_job(replace(scene.spec, size=changed))


def _python(scene: Scene) -> Job:
    """Python before each operator or module, which costs the dose in all."""
    style = scene.spec.style
    if style.compiled or style.graph:
        problem = "Python runs between operators of eager models only"
        raise UsageError(problem)
    ahead = replace(scene, spec=replace(scene.spec, item_each_step=False))
    more = ahead.noticed_ns // max(1, _between(scene.job))
    changed = replace(style, python_ns=style.python_ns + more)
    return build_job(replace(scene.spec, style=changed))


def _without_python(scene: Scene) -> Job:
    """Compiled or captured, a model runs no Python between its operators."""
    return build_job(replace(scene.spec, style=replace(scene.spec.style, python_ns=0)))


def _between(job: Job) -> int:
    """How often Python runs between two operators of the first rank in a step."""
    return sum(isinstance(one, Host) for one in instructions(job.ranks[0]))


_ALL = (
    Fault(
        "slow_loader",
        "loader workers make batches too slowly",
        ("loader_workers_starved",),
        "host-bound",
        injection.load_slowly,
        mended=injection.load_by_more,
    ),
    Fault(
        "inline_loader",
        "batches are loaded in the training process",
        ("loader_stall",),
        "host-bound",
        injection.load_inline,
        mended=injection.load_ahead,
    ),
    Fault(
        "item_each_layer",
        "values are read in the middle of the forward pass",
        ("draining_sync", "python_overhead"),
        "host-bound",
        injection.read_values,
        mended=injection.look_late,
    ),
    Fault(
        "small_batch",
        "a batch too small to fill the device",
        ("launch_bound_small_kernels", "python_overhead", "underfilled_kernels"),
        "host-bound",
        _small_batch,
        dosed=False,
    ),
    Fault(
        "python_between_operators",
        "Python between operators holds up launches",
        ("python_overhead", "launch_bound_small_kernels"),
        "host-bound",
        _python,
        mended=_without_python,
    ),
    Fault(
        "logging",
        "metrics are written after each step",
        ("logging_stall", "draining_sync"),
        "host-bound",
        injection.write_logs,
    ),
    Fault(
        "garbage",
        "garbage is collected in each step",
        ("gc_pause",),
        "host-bound",
        injection.collect_garbage,
    ),
    Fault(
        "allocator_storm",
        "memory goes back to the driver in each step",
        ("allocator_storm",),
        "host-bound",
        injection.allocate_each_step,
    ),
    Fault(
        "pageable_copies",
        "batches are copied from pageable memory",
        ("pageable_copy", "exposed_input_copy"),
        "memory-bound",
        injection.copy_pageable,
        mended=injection.copy_pinned,
    ),
    Fault(
        "single_tensor_optimizer",
        "the optimizer goes from tensor to tensor",
        ("single_tensor_optimizer", "foreach_optimizer_not_fused", "loop_over_tensors"),
        "host-bound",
        _single_tensors,
        dosed=False,
    ),
    Fault(
        "plain_attention",
        "scores of attention are written to memory",
        ("attention_not_fused",),
        "memory-bound",
        _plain_attention,
        dosed=False,
    ),
    Fault(
        "float32",
        "products in float32 instead of a shorter type",
        ("fp32_gemm_without_tf32",),
        "compute-bound",
        _float32,
        dosed=False,
        mended=_tf32,
    ),
    Fault(
        "capped_clock",
        "clocks of all devices are low",
        ("throttled_clocks",),
        "compute-bound",
        injection.lower_clock,
    ),
    Fault(
        "slow_link",
        "a link transfers slowly",
        ("slow_link", "link_below_peak", "slow_collectives", "exposed_all_reduce"),
        "collective-bound",
        injection.slow_links,
    ),
    Fault(
        "unoverlapped_all_reduce",
        "gradients are reduced after the backward pass",
        ("exposed_all_reduce",),
        "collective-bound",
        _without_overlap,
        dosed=False,
    ),
    Fault(
        "no_prefetch",
        "sharded parameters are gathered when they are needed",
        ("all_gather_not_prefetched",),
        "collective-bound",
        _without_prefetch,
        dosed=False,
    ),
    Fault(
        "late_by_loader",
        "one rank loads slowly",
        ("late_rank", "loader_stall"),
        "host-bound",
        injection.load_inline,
        one_rank=True,
    ),
    Fault(
        "late_by_garbage",
        "one rank collects garbage",
        ("late_rank", "gc_pause"),
        "host-bound",
        injection.collect_garbage,
        one_rank=True,
    ),
    Fault(
        "late_by_clock",
        "the device of one rank is slow",
        ("late_rank", "throttled_clocks"),
        "compute-bound",
        injection.lower_clock,
        one_rank=True,
    ),
    Fault(
        "late_by_kernels",
        "one rank has more to compute",
        ("late_rank",),
        "compute-bound",
        injection.launch_more,
        one_rank=True,
    ),
)

FAULTS: Mapping[str, Fault] = {fault.id: fault for fault in _ALL}
