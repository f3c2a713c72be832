"""Healthy jobs drawn at random, faults in them, and what the analysis says of their traces."""

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from perfdiag.classifiers.analysis import analyze_whole
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.options import Options
from perfdiag.classifiers.selftest_clocks import clock_table
from perfdiag.profiler.simulator.draw import draw_spec
from perfdiag.profiler.simulator.engine import simulate, simulate_windows
from perfdiag.profiler.simulator.estimates import estimate
from perfdiag.profiler.simulator.faults import FAULTS
from perfdiag.profiler.simulator.injection import Scene
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import TraceOptions, write_job
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Job, Loader
from perfdiag.profiler.simulator.spec import PARALLELISMS, JobSpec
from perfdiag.profiler.simulator.windows import mean_step_ns, window_lengths
from perfdiag.trace_schemas.report import Report

__all__ = ["Healthy", "analysed", "draw_healthy", "injected", "judged", "mean_ns"]

SPREAD = tuple(kind for kind in PARALLELISMS if kind != "single")
"""Parallelisms of several ranks."""


WORKERS, LOADED = 4, 0.3
"""Of the loader, and the share of a step in which they together make a batch."""


STEPS = 6
"""Of a job, the first of which is not recorded."""


@dataclass(frozen=True, slots=True)
class Healthy:
    """A job without the faults that are put in, on a platform; `seed`: of all chance."""

    seed: int
    spec: JobSpec
    platform: Platform


def draw_healthy(seed: int, *, ranks: int = 1) -> Healthy:
    """A random job that lacks what faults put in, such as a slow loader; the same for a seed.

    Args:
        seed: of the draw and the job.
        ranks: it has at least so many, at most twice as many or 4.
    """
    chance = Random(f"healthy {seed}")
    kinds = PARALLELISMS if ranks == 1 else SPREAD
    spec, platform = draw_spec(chance.randrange(10**9), parallelisms=kinds)
    while spec.parallelism == "ep" and spec.ranks < ranks:  # experts lie on all ranks: as drawn
        spec, platform = draw_spec(chance.randrange(10**9), parallelisms=kinds)
    grows = spec.parallelism != "ep"
    while grows and (spec.ranks < ranks or (spec.ranks == ranks > 1 and chance.random() < 0.5)):
        spec = replace(spec, ranks=2 * spec.ranks)
    cured = _cured(spec)
    step_ns = estimate(build_job(cured), platform).step_ns
    load_ns = round(LOADED * step_ns * platform.host_speed * WORKERS)
    return Healthy(seed, replace(cured, loader=Loader(WORKERS, load_ns)), platform)


def _cured(spec: JobSpec) -> JobSpec:
    return replace(
        spec,
        steps=STEPS,
        optimizer="fused",
        prefetch=True,
        bucket_bytes=25 << 20,
        pinned=True,
        item_each_step=False,
        log_every=0,
        gc_every=0,
        uneven=0.0,
    )


def injected(healthy: Healthy, doses: Mapping[str, float], mended: Collection[str] = ()) -> Job:
    """The job with several dosed faults, one put in after the other.

    Args:
        healthy: where the loss should be read in each step, so that what one costs does not depend
            on the others.
        doses: by fault; none that builds the job anew.
        mended: those whose fixes are made, after all others are put in.

    Raises:
        UsageError: the job cannot have one of them.
    """
    job = build_job(healthy.spec)
    step_ns = estimate(job, healthy.platform).step_ns
    everyone = tuple(range(healthy.spec.ranks))
    for name in sorted(doses, key=lambda name: name in mended):
        dose = doses[name]
        ranks = everyone[-1:] if FAULTS[name].one_rank else everyone
        scene = Scene(healthy.spec, job, healthy.platform, step_ns, dose, ranks)
        job = FAULTS[name].mended(scene) if name in mended else FAULTS[name].change(scene)
    return job


def mean_ns(job: Job, healthy: Healthy) -> float:
    """Mean of the steps that traces hold, of all ranks."""
    ranks = simulate_windows(job, healthy.platform, healthy.seed)
    return mean_step_ns([window_lengths(windows) for windows in ranks])


def analysed(job: Job, healthy: Healthy, *, clocks: bool = False, skipped: int = 1) -> Report:
    """The report on the job's traces; see `judged`."""
    return judged(job, healthy, clocks=clocks, skipped=skipped).report


def judged(job: Job, healthy: Healthy, *, clocks: bool = False, skipped: int = 1) -> Judged:
    """The report on the job's traces, with what it rests on.

    Args:
        job: to simulate.
        healthy: its platform and seed.
        clocks: a log of the devices' clocks lies beside the traces.
        skipped: steps that are not recorded, as profilers are told to: the first one finds nothing
            under way, and waits for the loader's first batch.
    """
    events = simulate(job, healthy.platform, healthy.seed)
    options = TraceOptions(seed=healthy.seed, compress=False, skipped_steps=skipped)
    with tempfile.TemporaryDirectory(prefix="perfdiag-accuracy-") as folder:
        paths = write_job(events, job, healthy.platform, options, Path(folder))
        beside = Path(folder) / "clocks.csv"
        if clocks:
            beside.write_text(clock_table(job, events, options), encoding="utf-8")
        counters = (str(beside),) if clocks else ()
        settings = Options(counters=counters, counters_utc_offset_s=0)
        return analyze_whole([str(path) for path in paths], settings)
