"""The time budget where it lies: every nanosecond of a rank's steps on one track."""

from collections.abc import Mapping, Sequence

import numpy as np

from perfdiag.classifiers.annotations.scene import Scene
from perfdiag.profiler.annotations import Arg, PieceTrack
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import LEAF_LABEL, LEAVES

__all__ = ["budget_args", "budget_query", "budget_track", "leaf_query", "merged"]

Bounds = tuple[int, int]


def budget_track(scene: Scene) -> PieceTrack:
    """The pieces of the budget; neighbours of one leaf are one, unless a step begins between."""
    timeline, steps = scene.facts.timeline, scene.facts.model.steps
    edges, leaf = timeline.edges_ns, timeline.leaf.astype(np.int64)
    begins = np.ones(len(leaf), bool)
    begins[1:] = (np.diff(leaf) != 0) | np.isin(edges[1:-1], (steps.ts_ns, steps.end_ns))
    first = np.flatnonzero(begins)
    bounds = np.append(edges[:-1][first], edges[-1])
    return PieceTrack(
        "budget",
        "perfdiag.budget",
        bounds[:-1],
        np.diff(bounds),
        leaf[first],
        LEAVES,
        [LEAF_LABEL[name] or "unknown" for name in LEAVES],
    )


def budget_args(budget_ns: Mapping[str, int]) -> dict[str, Arg]:
    """The leaves of a budget as arguments."""
    return {f"{leaf}_ns": ns for leaf, ns in budget_ns.items()}


_QUERY = (
    "SELECT name AS leaf, sum(min(ts + dur, {end}) - max(ts, {start})) AS ns FROM slice "
    "WHERE category = 'perfdiag.budget' AND ts < {end} AND ts + dur > {start}{where} GROUP BY name"
)
_LEAF_QUERY = (
    "SELECT sum(min(ts + dur, {end}) - max(ts, {start})) AS ns FROM slice "
    "WHERE category = 'perfdiag.budget' AND name = '{leaf}' "
    "AND ts < {end} AND ts + dur > {start}{where}"
)
_WHOLE_QUERY = (
    "SELECT name AS leaf, sum(dur) AS ns FROM slice "
    "WHERE category = 'perfdiag.budget' AND ({times}){where} GROUP BY name"
)
_OF_PROCESS = (
    " AND track_id IN (SELECT track.id FROM track JOIN process "
    "ON process.upid = extract_arg(track.dimension_arg_set_id, 'upid') "
    "WHERE process.name = '{process}')"
)


def budget_query(scene: Scene, windows: Sequence[Bounds], *, whole_steps: bool) -> str:
    """A query that returns the budget of some time, by leaf, in any Perfetto UI.

    Args:
        scene: the rank.
        windows: parts of the time, on the rank's clock.
        whole_steps: no piece of the budget reaches over the ends of the windows. Otherwise there
            is one window.
    """
    moved = [(start + scene.shift_ns, end + scene.shift_ns) for start, end in windows]
    if not whole_steps:
        return _QUERY.format(start=moved[0][0], end=moved[0][1], where=_where(scene))
    times = " OR ".join(f"(ts >= {start} AND ts < {end})" for start, end in moved)
    return _WHOLE_QUERY.format(times=times, where=_where(scene))


def leaf_query(scene: Scene, window: Bounds, leaf: str) -> str:
    """A query that returns the time in one leaf of a part of the time."""
    start, end = (bound + scene.shift_ns for bound in window)
    return _LEAF_QUERY.format(start=start, end=end, leaf=leaf, where=_where(scene))


def _where(scene: Scene) -> str:
    return _OF_PROCESS.format(process=scene.process) if scene.process else ""


def merged(starts_ns: Int64s, ends_ns: Int64s) -> list[Bounds]:
    """Windows in order, those that touch as one."""
    found: list[Bounds] = []
    for start, end in zip(starts_ns.tolist(), ends_ns.tolist(), strict=True):
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
