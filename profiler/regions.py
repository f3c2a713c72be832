"""Regions of steps: phases, the user's annotations, and modules.

Regions of one kind partition their step. Like a step, a region lasts from the completion of
the one before it to its own, inside its step: a phase that hides behind device work has an
empty window and costs nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.nesting import nest
from perfdiag.profiler.steps import Launched, Step
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.host_ranges import classify_range, step_marker
from perfdiag.trace_schemas.recording import ABSENT, Int32s, Int64s, Kind, Recording

__all__ = ["Region", "find_regions"]

RegionKind = Literal["phase", "annotation", "module"]

MOST_PER_STEP = 64
"""A step cut into more pieces than this is read at the level above."""


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a step: its window, and since when the host was in it.

    On the host it lasts until the next region of its kind begins there, or its step ends.
    """

    step: int
    kind: RegionKind
    name: str
    ts_ns: int
    dur_ns: int
    host_ts_ns: int


@dataclass(frozen=True, slots=True)
class _Mark:
    """From `start_ns` on, until the next mark, the host is in `name`."""

    start_ns: int
    name: str


def find_regions(recording: Recording, steps: Sequence[Step]) -> list[Region]:
    """Regions of every kind that the trace supports, step by step."""
    if not steps:
        return []
    marks: list[tuple[RegionKind, list[_Mark]]] = [
        ("phase", _phase_marks(recording, steps)),
        ("annotation", _range_marks(_annotations(recording, steps))),
        ("module", _range_marks(_modules(recording, len(steps)))),
    ]
    launched = Launched.of(recording)
    return [r for kind, found in marks if found for r in _regions(launched, steps, kind, found)]


def _regions(
    launched: Launched, steps: Sequence[Step], kind: RegionKind, marks: list[_Mark]
) -> Iterable[Region]:
    times = np.array([m.start_ns for m in marks])
    for step in steps:
        inside = range(
            int(np.searchsorted(times, step.host_ts_ns, "left")),
            int(np.searchsorted(times, step.host_end_ns, "left")),
        )
        segments = _segments(step, [marks[i] for i in inside])
        yield from _windows(launched, step, kind, segments)


def _segments(step: Step, marks: list[_Mark]) -> list[_Mark]:
    """Marks of a step with equal neighbours joined; what comes before the first is `other`."""
    segments = [_Mark(step.host_ts_ns, "other")]
    for mark in marks:
        if mark.start_ns == segments[-1].start_ns:
            segments[-1] = mark
        elif mark.name != segments[-1].name:
            segments.append(mark)
    joined = segments[:1]
    for segment in segments[1:]:
        if segment.name != joined[-1].name:
            joined.append(segment)
    return joined


def _windows(
    launched: Launched, step: Step, kind: RegionKind, segments: list[_Mark]
) -> Iterable[Region]:
    starts = np.array([s.start_ns for s in segments])
    ends = np.append(starts[1:], max(step.host_end_ns, int(starts[-1]) + 1))
    done = np.maximum.accumulate(launched.completions(starts, ends))
    done = np.clip(done, step.ts_ns, step.end_ns)
    done[-1] = step.end_ns
    begin = step.ts_ns
    for segment, end in zip(segments, done.tolist(), strict=True):
        yield Region(step.ordinal, kind, segment.name, begin, end - begin, segment.start_ns)
        begin = end


_PHASES = {"input": "data", "forward": "forward", "backward": "backward", "optimizer": "optimizer"}


def _phase_marks(recording: Recording, steps: Sequence[Step]) -> list[_Mark]:
    """Where each phase begins on the host, over all steps.

    Loader, optimizer and forward ranges say so themselves. Backward is what autograd's threads
    run; operators of the issuing thread before it are forward. Operators that no backward
    follows are forward only where the trace shows training elsewhere. Ranges of one phase are
    one, unless the issuing thread runs operators between them: it accumulates gradients, or a step
    begins. Replays of graphs outside any operator count like operators: a phase does not go on in
    what is replayed after it.
    """
    slices = recording.slices
    hosts = np.flatnonzero(np.isin(slices.kind, (Kind.HOST_OP, Kind.ANNOTATION)))
    if not len(hosts):
        return []
    phase = _phase_by_name(recording)[slices.name[hosts]]
    lane, named = _issuing_lane(slices.lane[hosts], phase), phase != ""
    ops = _issued(recording, lane, replays=bool(named.any()))
    hosts, phase = hosts[named], phase[named]
    starts, ends = slices.ts_ns[hosts].tolist(), slices.end_ns[hosts].tolist()
    spans = list(zip(starts, ends, phase.tolist(), strict=True))
    return _fill(ops, steps, _merge(spans, ops, [step.host_ts_ns for step in steps]))


def _issued(recording: Recording, lane: int, *, replays: bool) -> list[int]:
    """When the thread of a lane runs operators, in order, and replays graphs outside of them.

    A graph is replayed without an operator, so the call tells that a phase is over; where none is
    named it tells nothing. Old traces write steps as operators too.
    """
    slices = recording.slices
    marker = np.array([step_marker(s) is not None for s in recording.strings] or [False])
    ops = (slices.lane == lane) & (slices.kind == Kind.HOST_OP) & ~marker[slices.name]
    rows = np.flatnonzero(ops)
    rows = rows[np.argsort(slices.ts_ns[rows], kind="stable")]
    times = slices.ts_ns[rows]
    if replays:
        alone = _replays_outside(recording, lane, times, slices.end_ns[rows])
        times = np.sort(np.concatenate((times, alone)))
    issued: list[int] = times.tolist()
    return issued


def _replays_outside(recording: Recording, lane: int, starts: Int64s, ends: Int64s) -> Int64s:
    """Times of a lane's calls that replay graphs outside the given ranges, which are in order."""
    slices = recording.slices
    graph = np.array([classify_api(s) == "graph_launch" for s in recording.strings] or [False])
    calls = (slices.lane == lane) & (slices.kind == Kind.RUNTIME) & graph[slices.name]
    times = slices.ts_ns[calls]
    until = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, ends))
    return np.asarray(times[until[np.searchsorted(starts, times, "right")] <= times], np.int64)


def _issuing_lane(lane: Int32s, phase: NDArray[np.object_]) -> int:
    """Lane of the thread that runs the step; one that only runs backward is autograd's."""
    own = (phase == "forward") | (phase == "optimizer")
    if not own.any():
        own = ~np.isin(lane, lane[phase == "backward"])
    return int(np.bincount(lane[own] if own.any() else lane).argmax())


def _phase_by_name(recording: Recording) -> NDArray[np.object_]:
    return np.array([_PHASES.get(classify_range(s), "") for s in recording.strings] or [""], object)


Span = tuple[int, int, str]


def _merge(spans: list[Span], ops: list[int], steps: list[int]) -> list[Span]:
    """Spans in order of start; those inside another, or following one of their own, joined."""
    merged: list[Span] = []
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        last = merged[-1] if merged else (start, start, "")
        same_step = bisect_right(steps, last[0]) == bisect_right(steps, start)
        if last[2] == name and same_step and _first(ops, last[1], start) == start:
            merged[-1] = (last[0], max(end, last[1]), name)
        elif not merged or end > last[1]:
            merged.append((start, end, name))
    return merged


def _first(times: list[int], begin: int, until: int) -> int:
    """The first of some times between two times; the later of these where there is none."""
    at = bisect_left(times, begin)
    return min(times[at], until) if at < len(times) else until


def _fill(ops: list[int], steps: Sequence[Step], ranges: list[Span]) -> list[_Mark]:
    """Give the operators between the named ranges to forward, up to the next backward."""
    training = any(name in ("backward", "optimizer", "forward") for _, _, name in ranges)
    begins = [start for start, _, _ in ranges]
    marks: list[_Mark] = []
    for step in steps:
        inside = ranges[
            bisect_left(begins, step.host_ts_ns) : bisect_left(begins, step.host_end_ns)
        ]
        at = step.host_ts_ns
        for start, end, name in [*inside, (step.host_end_ns, step.host_end_ns, "")]:
            first = _first(ops, at, start)
            if first < start and training and name in ("backward", "forward"):
                marks.append(_Mark(first, "forward"))
            elif first < start and name != "forward":
                marks.append(_Mark(first, "other"))
            if name:
                marks.append(_Mark(start, name))
            at = max(at, end)
    return marks


def _annotations(recording: Recording, steps: Sequence[Step]) -> list[Span]:
    """The user's outermost ranges in steps, on the lane that has most of them."""
    slices = recording.slices
    rows = np.flatnonzero(slices.kind == Kind.ANNOTATION)
    rows = (
        rows[[_is_users(recording.strings[n]) for n in slices.name[rows].tolist()]]
        if len(rows)
        else rows
    )
    return _top_level(_inside(steps, _on_one_lane(recording, rows)))


def _inside(steps: Sequence[Step], spans: list[Span]) -> list[Span]:
    """Spans that start in a step and end before the next: one around many steps divides none."""
    starts = [step.host_ts_ns for step in steps]
    kept = []
    for span in spans:
        at = bisect_right(starts, span[0]) - 1
        last = at + 1 == len(steps) or span[1] <= starts[at + 1]
        if at >= 0 and span[0] < steps[at].host_end_ns and last:
            kept.append(span)
    return kept


def _is_users(name: str) -> bool:
    framework = ("nccl:", "gloo:", "hccl:", "Optimizer.", "enumerate(DataLoader)", "autograd::")
    return bool(name) and not name.startswith(framework) and step_marker(name) is None


def _on_one_lane(recording: Recording, rows: Int64s) -> list[Span]:
    slices = recording.slices
    if not len(rows):
        return []
    lane = np.bincount(slices.lane[rows]).argmax()
    rows = rows[slices.lane[rows] == lane]
    names = [recording.strings[n] for n in slices.name[rows].tolist()]
    return _spans(recording, rows, names)


def _spans(recording: Recording, rows: Int64s, names: list[str]) -> list[Span]:
    starts, ends = recording.slices.ts_ns[rows], recording.slices.end_ns[rows]
    return list(zip(starts.tolist(), ends.tolist(), names, strict=True))


def _top_level(spans: list[Span]) -> list[Span]:
    top: list[Span] = []
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not top or start >= top[-1][1]:
            top.append((start, end, name))
    return top


def _modules(recording: Recording, steps: int) -> list[Span]:
    """Module frames of one level, with their path."""
    slices = recording.slices
    is_module = np.array([s.startswith("nn.Module: ") for s in recording.strings] or [False])
    rows = np.flatnonzero((slices.kind == Kind.PYTHON) & is_module[slices.name])
    if not len(rows):
        return []
    parent = nest(slices.ts_ns[rows], slices.dur_ns[rows], slices.lane[rows]).parent
    paths = _paths([recording.strings[slices.name[r]][11:] for r in rows.tolist()], parent)
    depth = np.array([path.count(".") for path in paths])
    level = _readable_level(depth, slices.dur_ns[rows], MOST_PER_STEP * steps)
    chosen = np.flatnonzero(depth == level)
    forward = _top_level(_spans(recording, rows[chosen], [paths[i] for i in chosen.tolist()]))
    return _top_level([*forward, *_backward(recording, forward)])


def _backward(recording: Recording, forward: list[Span]) -> list[Span]:
    """What autograd runs for each module: a backward node bears the number of its operator."""
    slices = recording.slices
    number, thread = slices.args.get("sequence_number"), slices.args.get("fwd_thread")
    if number is None or thread is None or not forward:
        return []
    behind = np.isin(number.rows, thread.rows[np.asarray(thread.values, np.int64) > 0])
    ops, nodes = number.rows[~behind], number.rows[behind]
    begins, ends = (np.array(side, np.int64) for side in list(zip(*forward, strict=True))[:2])
    at = np.searchsorted(begins, slices.ts_ns[ops], "right") - 1
    inside = (at >= 0) & (slices.ts_ns[ops] < ends[np.maximum(at, 0)])
    known = number.values[~behind][inside].tolist()
    module = {n: forward[i][2] for n, i in zip(known, at[inside].tolist(), strict=True) if n >= 0}
    names = [module.get(n, "") for n in number.values[behind].tolist()]
    spans = _spans(recording, nodes, names)
    return [span for span in _top_level(spans) if span[2]]


LEAST_SHARE = 0.8
"""A level of modules must hold this much of the time of the outermost ones to stand for it."""


def _readable_level(depth: Int64s, dur_ns: Int64s, most: int) -> int:
    """The deepest level that is neither too many modules nor too small a part of their time."""
    counts = np.bincount(depth)
    spent = np.bincount(depth, weights=dur_ns.astype(np.float64))
    fit = np.flatnonzero((counts <= most) & (spent >= LEAST_SHARE * spent[0]))
    return int(fit.max(initial=0))


def _paths(names: list[str], parent: Int64s) -> list[str]:
    paths: dict[int, str] = {}
    for row in range(len(names)):
        chain = []
        at = row
        while at != ABSENT and at not in paths:
            chain.append(at)
            at = int(parent[at])
        for node in reversed(chain):
            above = int(parent[node])
            paths[node] = names[node] if above == ABSENT else f"{paths[above]}.{names[node]}"
    return [paths[row] for row in range(len(names))]


def _range_marks(spans: list[Span]) -> list[_Mark]:
    """Marks at both ends of ranges; what lies between them is `other`."""
    marks: list[_Mark] = []
    for start, end, name in spans:
        if marks and marks[-1].start_ns == start:
            marks.pop()
        marks += [_Mark(start, name), _Mark(end, "other")]
    return marks
