"""Fixes on the steps in which they save time, with arrows to what proves them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from perfdiag.classifiers.annotations.scene import Scene
from perfdiag.classifiers.findings import Share
from perfdiag.profiler.annotations import Arg, RawSlice, SliceTrack, TrackSlice
from perfdiag.trace_schemas.report import Fix
from perfdiag.trace_schemas.texts import shortened

__all__ = ["fix_track"]

FIX = "perfdiag.fix"


MOST_SQL = 20_000
"""Characters of a query, which must be whole: names of templated kernels in it reach 10 kB."""


class _Here(NamedTuple):
    """A fix on one rank: its place among all, what it takes there, and in which steps."""

    place: int
    fix: Fix
    share: Share
    steps: list[int]


def fix_track(scene: Scene) -> SliceTrack:
    """On each step the fixes that save time in it, the best on top."""
    shares = {share.finding.diagnosis.id: share for share in scene.done.diagnosed.shares}
    fixes = [
        _Here(place, fix, shares[fix.id], _steps(shares[fix.id]))
        for place, fix in enumerate(scene.judged.report.fixes, 1)
        if fix.id in shares
    ]
    return SliceTrack("fixes", list(_slices(scene, fixes)))


def _steps(share: Share) -> list[int]:
    """Rows of the steps; of a fix that is spread thin all that have a verdict."""
    rows = np.flatnonzero(share.steps)
    return (rows if len(rows) else np.flatnonzero(share.facts.trusted)).tolist()


def _slices(scene: Scene, fixes: Sequence[_Here]) -> Iterator[TrackSlice]:
    steps = scene.facts.model.steps
    for row in range(len(steps.ts_ns)):
        for here in fixes:
            if row in here.steps:
                yield _slice(scene, here, row)


def _slice(scene: Scene, here: _Here, row: int) -> TrackSlice:
    steps, fix = scene.facts.model.steps, here.fix
    start, end = int(steps.ts_ns[row]), int(steps.end_ns[row])
    args: dict[str, Arg] = {
        "fix": fix.id,
        "place": here.place,
        "layer": fix.layer,
        "title": fix.title,
        "step": int(steps.ordinal[row]),
        "saving_ns_per_step": fix.saving_ns_per_step,
        "saving_here_ns": int(here.share.per_step(here.share.take.mid)[row]),
        "basis": fix.basis,
    }
    if row == here.steps[0]:  # once is enough: what it says is long
        args |= _in_full(scene, here)
    millis = fix.saving_ns_per_step / 1e6
    return TrackSlice(
        start,
        end - start,
        f"{here.place}. {fix.title} (saves {millis:.3g} ms a step)",
        FIX,
        fix.layer,
        args,
        _evidence(here, row, (start, end)),
    )


def _in_full(scene: Scene, here: _Here) -> dict[str, Arg]:
    fix = here.fix
    listed = ", ".join("?" if rank is None else str(rank) for rank in fix.ranks)
    args: dict[str, Arg] = {
        "full": 1,
        "worst": int(_worst(scene, fix.id) == scene.position),
        "why": shortened(here.share.finding.why),
        "saving_low_ns": fix.saving_low_ns,
        "saving_high_ns": fix.saving_high_ns,
        "saving_after_previous_ns": fix.saving_after_previous_ns,
        "confidence": fix.confidence,
        "ranks": shortened(listed),
        "how": shortened(fix.how),
        "verify": shortened(fix.verify),
        "refuted_by": shortened(fix.refuted_by),
    }
    for i, proof in enumerate(here.share.finding.evidence):
        args |= {
            f"evidence_{i}_value": float(proof.value),
            f"evidence_{i}_unit": proof.unit,
        }
        if len(proof.sql) <= MOST_SQL:
            args[f"evidence_{i}_sql"] = shortened(proof.sql, MOST_SQL)
    return args


def _worst(scene: Scene, name: str) -> int:
    """Position of the rank that a fix saves most on: its figures are the report's."""
    found = [
        (float(share.per_step(share.take.mid).sum()), -position)
        for position, item in enumerate(scene.judged.ranks)
        for share in item.diagnosed.shares
        if share.finding.diagnosis.id == name
    ]
    return -max(found)[1]


def _evidence(here: _Here, row: int, window: tuple[int, int]) -> tuple[RawSlice, ...]:
    """The slices that prove a fix in a step; those of no step of it with its first one."""
    steps = here.share.facts.model.steps
    spots = [RawSlice(*spot) for proof in here.share.finding.evidence for spot in proof.spots]
    bounds = [(int(steps.ts_ns[i]), int(steps.end_ns[i])) for i in here.steps]
    first = row == here.steps[0]
    return tuple(
        spot
        for spot in dict.fromkeys(spots)
        if window[0] <= spot.ts_ns < window[1]
        or (first and not any(start <= spot.ts_ns < end for start, end in bounds))
    )
