"""What bounds each part of a simulated job: known, because it was tried.

The job is run again with one class of resources twice as fast, for each of the classes. What
shortens a window most is what bounds it. All runs meet the same chance.
"""

import gc
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from perfdiag.profiler.simulator.engine import simulate_windows
from perfdiag.profiler.simulator.events import JobEvents
from perfdiag.profiler.simulator.platform import RESOURCES, Platform, Resource, with_faster
from perfdiag.profiler.simulator.program import Job
from perfdiag.profiler.simulator.truth_types import (
    PhaseTruth,
    RankTruth,
    StepTruth,
    Truth,
    Verdict,
)
from perfdiag.profiler.simulator.waits import CollectiveTruth, find_collectives, latest
from perfdiag.profiler.simulator.windows import Part, mean_step_ns, window_lengths
from perfdiag.trace_schemas.report import Label

__all__ = ["LABEL_OF", "find_truth", "judge", "saving_of"]

LABEL_OF: Mapping[Resource, Label] = {
    "compute": "compute-bound",
    "memory": "memory-bound",
    "collective": "collective-bound",
    "host": "host-bound",
}

CLOSE = 0.85
"""Of the best saving: a runner-up that reaches it makes the label ambiguous."""

LEAST_SAVING = 0.05
"""Of a window: where no class saves as much, nothing that a label stands for bounds it."""

LEAST_PHASE = 0.01
"""Of its step: a shorter phase is left out, since a label of it says nothing."""

Lengths = Mapping[Part, int]


def find_truth(
    job: Job, platform: Platform, seed: int, baseline: JobEvents, workers: int = 1
) -> Truth:
    """What bounds each part of a job.

    Args:
        job: of at least two steps.
        platform: it runs on.
        seed: of chance.
        baseline: what `simulate` gave for these three.
        workers: processes that run the job again.

    Raises:
        ValueError: the job has one step only.
    """
    before = [window_lengths(events.windows) for events in baseline.ranks]
    after = _interventions(job, platform, seed, workers)
    saved = {LABEL_OF[r]: mean_step_ns(before) - mean_step_ns(ranks) for r, ranks in after.items()}
    collectives = find_collectives(baseline)
    ranks = [
        _rank_truth(rank, lengths, {r: ranks[rank] for r, ranks in after.items()}, met)
        for rank, (lengths, met) in enumerate(zip(before, collectives, strict=True))
    ]
    return Truth(
        job=job.name,
        family=job.family,
        parallelism=job.parallelism,
        options=dict(job.options),
        platform=platform.name,
        vendor=platform.vendor,
        seed=seed,
        verdict=judge(mean_step_ns(before), saved),
        ranks=ranks,
    )


def saving_of(job: Job, repaired: Job, platform: Platform, seed: int) -> float:
    """By how much a repair shortens the mean step, in ns, under the same chance."""
    before, after = (
        mean_step_ns([window_lengths(windows) for windows in simulate_windows(one, platform, seed)])
        for one in (job, repaired)
    )
    return before - after


def judge(window_ns: float, saved_ns: Mapping[Label, float]) -> Verdict:
    """The label of a window, from what each class of resources saves."""
    ranked = sorted(saved_ns, key=lambda label: -saved_ns[label])
    best, second = (saved_ns[label] for label in ranked[:2])
    return Verdict(
        window_ns=window_ns,
        saved_ns={label: saved_ns[label] for label in saved_ns},
        label=ranked[0],
        runner_up=ranked[1],
        ambiguous=second >= CLOSE * best or best < LEAST_SAVING * window_ns,
    )


def _interventions(
    job: Job, platform: Platform, seed: int, workers: int
) -> dict[Resource, list[Lengths]]:
    """For each class of resources the windows of each rank when it is twice as fast."""
    run = partial(_with_faster, job, platform, seed)
    if workers == 1:
        return {resource: run(resource) for resource in RESOURCES}
    # Started afresh, not forked: whoever calls this may run threads. Runs leave no cycles behind
    # that are worth the time of a collector.
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=gc.disable) as pool:
        return dict(zip(RESOURCES, pool.map(run, RESOURCES), strict=True))


def _with_faster(job: Job, platform: Platform, seed: int, resource: Resource) -> list[Lengths]:
    windows = simulate_windows(job, with_faster(platform, resource), seed)
    return [window_lengths(one) for one in windows]


def _rank_truth(
    rank: int,
    before: Lengths,
    after: Mapping[Resource, Lengths],
    collectives: Sequence[CollectiveTruth],
) -> RankTruth:
    mean = mean_step_ns([before])
    saved = {LABEL_OF[r]: mean - mean_step_ns([lengths]) for r, lengths in after.items()}
    verdicts = {
        part: judge(length, {LABEL_OF[r]: length - faster[part] for r, faster in after.items()})
        for part, length in before.items()
    }
    steps = [
        StepTruth(
            step=part.step,
            warm_up=part.step == 0,
            verdict=verdict,
            late=latest(collectives, part.step),
            phases=_phases(part.step, verdicts),
        )
        for part, verdict in verdicts.items()
        if part.phase is None
    ]
    return RankTruth(
        rank=rank, verdict=judge(mean, saved), steps=steps, collectives=list(collectives)
    )


def _phases(step: int, verdicts: Mapping[Part, Verdict]) -> list[PhaseTruth]:
    least = LEAST_PHASE * verdicts[Part(step, None)].window_ns
    return [
        PhaseTruth(phase=part.phase, verdict=verdict)
        for part, verdict in verdicts.items()
        if part.step == step and part.phase is not None and verdict.window_ns >= max(1, least)
    ]
