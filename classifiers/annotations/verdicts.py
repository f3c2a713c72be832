"""Verdicts where they hold: of the job and the rank, of each step, of each region."""

from perfdiag.classifiers.annotations.budget import budget_args, budget_query, merged
from perfdiag.classifiers.annotations.scene import Scene
from perfdiag.profiler.annotations import MOST_NAME, Arg, SliceTrack, TrackSlice
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.texts import shortened

__all__ = ["region_tracks", "step_track", "verdict_track"]

VERDICT = "perfdiag.verdict"


def verdict_track(scene: Scene) -> SliceTrack:
    """What bounds the job, and below it what bounds the rank, over all steps."""
    job, rank = scene.judged.report.job, scene.rank
    name = "?" if rank.rank is None else str(rank.rank)
    return SliceTrack(
        "verdict",
        [
            _whole(scene, job, "job", f"job: {job.label}", _job(scene)),
            _whole(scene, rank, "rank", f"rank {name}: {rank.label}", {}),
        ],
    )


def _whole(
    scene: Scene, part: report.Job | report.Rank, scope: str, text: str, more: dict[str, Arg]
) -> TrackSlice:
    """A verdict on all steps."""
    start, end = scene.facts.span_ns
    args = _of("", scope, part) | more | _whole_budget(scene, part, scope)
    return TrackSlice(start, end - start, text, VERDICT, part.label, args)


def _job(scene: Scene) -> dict[str, Arg]:
    job = scene.judged.report.job
    found: dict[str, Arg] = {"runner_up": job.runner_up or "", "steps": job.step_time_ns.n}
    if job.culprit_rank is not None:
        found["late_rank"] = job.culprit_rank
    if job.step_time_ns.median is not None:
        found["step_time_median_ns"] = job.step_time_ns.median
    return found


def _whole_budget(scene: Scene, part: report.Job | report.Rank, scope: str) -> dict[str, Arg]:
    """The budget of all steps with a verdict, and the query for it where it is the rank's own."""
    found = budget_args(part.budget_ns)
    if scope == "job" and len(scene.judged.ranks) > 1:
        return found
    steps, trusted = scene.facts.model.steps, scene.facts.trusted
    rows = trusted if trusted.any() else ~trusted
    windows = merged(steps.ts_ns[rows], steps.end_ns[rows])
    return found | {"sql": budget_query(scene, windows, whole_steps=True)}


def step_track(scene: Scene) -> SliceTrack:
    """Each step in the window of its device work, with its label."""
    return SliceTrack("steps", [_step(scene, step) for step in scene.rank.steps])


def _step(scene: Scene, step: report.Step) -> TrackSlice:
    args = _of(step.name, "step", step) | {
        "kind": "step",
        "step": step.ordinal,
        "runner_up": step.runner_up or "",
        "why": shortened(step.why),
        "coverage": step.coverage,
    }
    shares = {"mfu": step.mfu, "hfu": step.hfu}
    args |= {name: value for name, value in shares.items() if value is not None}
    window = (step.start_ns, step.start_ns + step.dur_ns)
    args |= budget_args(step.budget_ns)
    args["sql"] = budget_query(scene, [window], whole_steps=False)
    return _slice(step, args)


def region_tracks(scene: Scene) -> list[SliceTrack]:
    """A track for each kind of region: phases, annotations, modules."""
    found: dict[str, list[TrackSlice]] = {"phase": [], "annotation": [], "module": []}
    for step in scene.rank.steps:
        for region in step.regions:
            if region.dur_ns:
                found[region.kind].append(_region(scene, step.ordinal, region))
    return [
        SliceTrack(f"{kind}s", sorted(slices, key=lambda one: one.ts_ns))
        for kind, slices in found.items()
        if slices
    ]


def _region(scene: Scene, step: int, region: report.Region) -> TrackSlice:
    args = _of(region.name, "region", region) | {"kind": region.kind, "step": step}
    args |= budget_args(region.budget_ns)
    window = (region.start_ns, region.start_ns + region.dur_ns)
    args["sql"] = budget_query(scene, [window], whole_steps=False)
    return _slice(region, args)


def _of(
    name: str, scope: str, part: report.Job | report.Rank | report.Step | report.Region
) -> dict[str, Arg]:
    """What every verdict says."""
    found: dict[str, Arg] = {
        "scope": scope,
        "label": part.label,
        "probability": part.confidence,
        "by_rules": part.by_rules,
    }
    if name:
        found["name"] = shortened(name)
    if isinstance(part, report.Job | report.Rank):
        found["why"] = shortened(part.why)
    return found


def _slice(part: report.Step | report.Region, args: dict[str, Arg]) -> TrackSlice:
    text = f"{shortened(part.name, MOST_NAME)}: {part.label}"
    return TrackSlice(part.start_ns, part.dur_ns, text, VERDICT, part.label, args)
