"""Training steps: found by marker, inferred from what repeats, or the whole trace.

A step's window runs from the previous step's completion to its own; completion is the later of
its host end and the end of the last device work that it launched. Step time on the host alone
says little: launches are asynchronous.
"""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.repeats import repeating_period
from perfdiag.trace_schemas.host_ranges import STEP_RULES, classify_range, step_marker
from perfdiag.trace_schemas.notices import Notice, Severity
from perfdiag.trace_schemas.recording import ABSENT, DEVICE_WORK, Int64s, Kind, Recording

__all__ = ["Launched", "Step", "StepSource", "find_steps"]

StepSource = Literal["marker", "inferred", "whole"]


@dataclass(frozen=True, slots=True)
class Step:
    """One training iteration; see the module for what its window is."""

    ordinal: int
    name: str
    source: StepSource
    host_ts_ns: int
    host_dur_ns: int
    ts_ns: int
    dur_ns: int

    @property
    def host_end_ns(self) -> int:
        """When the host was done with it."""
        return self.host_ts_ns + self.host_dur_ns

    @property
    def end_ns(self) -> int:
        """Its completion."""
        return self.ts_ns + self.dur_ns


@dataclass(frozen=True, slots=True)
class _Range:
    name: str
    start_ns: int
    end_ns: int


def find_steps(recording: Recording, marker: str | None = None) -> tuple[list[Step], list[Notice]]:
    """The steps of a rank, and what the reader must know about them.

    Args:
        recording: rebased.
        marker: regular expression that the name of a step's range must match somewhere.
    """
    marked = _marked(recording, marker)
    if marked:
        return _windows(recording, marked, "marker"), []
    ranges = _by_optimizer(recording) or _by_launches(recording)
    severity: Severity = "info" if marker is None else "warning"
    missing = Notice("steps.missing", severity, 1, _missing_message(marker, bool(ranges)))
    notices = [missing, *_unknown_markers(recording)]
    if ranges:
        inferred = Notice(
            "steps.inferred",
            "info",
            len(ranges),
            f"{len(ranges)} steps inferred from what repeats.",
        )
        left_out = _launched_outside(recording, ranges)
        return _windows(recording, ranges, "inferred"), [*notices, inferred, left_out]
    return _windows(recording, [_whole(recording)], "whole"), notices


def _launched_outside(recording: Recording, ranges: list[_Range]) -> Notice:
    launched = Launched.of(recording).launch_ns
    begin, end = ranges[0].start_ns, ranges[-1].end_ns
    count = int(((launched < begin) | (launched >= end)).sum())
    message = "Device work launched before the first or after the last whole step is left out."
    return Notice("step.incomplete", "info", count, message)


def _missing_message(marker: str | None, inferred: bool) -> str:
    what = "The trace marks no steps" if marker is None else f"No range matches {marker!r}"
    how = "steps are inferred" if inferred else "the covered range is analysed as one region"
    return f"{what}: {how}. --step-marker REGEX names the marker."


def _marked(recording: Recording, marker: str | None) -> list[_Range]:
    """Ranges of the first convention that the trace follows; of one in another, the outer one."""
    slices = recording.slices
    rows = np.flatnonzero(np.isin(slices.kind, (Kind.ANNOTATION, Kind.HOST_OP)))
    by_rule: dict[str, list[int]] = {}
    for name in np.unique(slices.name[rows]).tolist():
        rule = _rule(recording.strings[name], marker)
        if rule:
            by_rule.setdefault(rule, []).append(name)
    for rule in ("user", *STEP_RULES):
        if rule in by_rule:
            found = rows[np.isin(slices.name[rows], by_rule[rule])]
            return _outermost(recording, found)
    return []


def _rule(name: str, marker: str | None) -> str | None:
    if marker is not None:
        return "user" if re.search(marker, name) else None
    found = step_marker(name)
    return found.rule if found else None


def _outermost(recording: Recording, rows: Int64s) -> list[_Range]:
    """On the lane that has most of them."""
    slices = recording.slices
    lane = np.bincount(slices.lane[rows]).argmax()
    rows = rows[slices.lane[rows] == lane]
    rows = rows[np.lexsort((-slices.dur_ns[rows], slices.ts_ns[rows]))]
    starts, ends = slices.ts_ns[rows].tolist(), slices.end_ns[rows].tolist()
    ranges: list[_Range] = []
    for name, start, end in zip(slices.name[rows].tolist(), starts, ends, strict=True):
        if not ranges or start >= ranges[-1].end_ns or end > ranges[-1].end_ns:
            ranges.append(_Range(recording.strings[name], start, end))
    return ranges


def _by_optimizer(recording: Recording) -> list[_Range]:
    """Steps that end with the optimizer's; at least two, or nothing repeats."""
    slices = recording.slices
    rows = np.flatnonzero(slices.kind == Kind.ANNOTATION)
    names = [recording.strings[n] for n in slices.name[rows].tolist()]
    steps = rows[[name.startswith("Optimizer.step") for name in names]] if len(rows) else rows
    if len(steps) < 2:
        return []
    ends = sorted(r.end_ns for r in _outermost(recording, steps))
    starts = [_first_host_ns(recording), *ends[:-1]]
    return [
        _Range(f"step {i}", start, end)
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def _first_host_ns(recording: Recording) -> int:
    slices = recording.slices
    host = np.isin(slices.kind, (Kind.HOST_OP, Kind.RUNTIME, Kind.ANNOTATION))
    return int(slices.ts_ns[host].min(initial=np.iinfo(np.int64).max))


def _by_launches(recording: Recording) -> list[_Range]:
    """Steps that repeat one sequence of launches, cut where the host pauses longest."""
    slices = recording.slices
    launch = launch_rows(slices)
    work = np.flatnonzero(launch != ABSENT)
    work = work[np.lexsort((slices.ts_ns[work], slices.ts_ns[launch[work]]))]
    found = repeating_period(slices.name[work])
    if found is None:
        return []
    starts_ns = slices.ts_ns[launch[work]]
    pause = np.diff(starts_ns, prepend=starts_ns[:1])
    first, period, count = found
    offsets = first + np.arange(period)
    medians = [np.median(pause[o : first + period * count : period]) for o in offsets.tolist()]
    offset = int(offsets[int(np.argmax(medians))])
    # Cut elsewhere than where the run begins, its last repeat is no whole step.
    whole = (first + period * count - offset) // period
    bounds = starts_ns[offset : offset + period * whole + 1 : period].tolist()
    if len(bounds) == whole:
        bounds.append(_last_host_ns(recording))
    pairs = enumerate(pairwise(bounds))
    return [_Range(f"step {i}", start, end) for i, (start, end) in pairs if end > start]


def _last_host_ns(recording: Recording) -> int:
    slices = recording.slices
    host = np.isin(slices.kind, (Kind.HOST_OP, Kind.RUNTIME))
    return int(slices.end_ns[host].max(initial=0))


_COVERS = (Kind.HOST_OP, Kind.RUNTIME, Kind.ANNOTATION, Kind.PYTHON, *DEVICE_WORK)


def _whole(recording: Recording) -> _Range:
    """The covered range; what the profiler draws over all of it does not count."""
    slices = recording.slices
    rows = np.flatnonzero(np.isin(slices.kind, _COVERS))
    rows = rows if len(rows) else np.arange(len(slices))
    host = rows[~np.isin(slices.kind[rows], DEVICE_WORK)]
    ends = slices.end_ns[host if len(host) else rows]
    if not len(rows):
        return _Range("trace", 0, 0)
    return _Range("trace", int(slices.ts_ns[rows].min()), int(ends.max()))


def _unknown_markers(recording: Recording) -> list[Notice]:
    """Annotations that repeat and look like steps, for `--step-marker`."""
    slices = recording.slices
    rows = np.flatnonzero(slices.kind == Kind.ANNOTATION)
    names = [recording.strings[n] for n in slices.name[rows].tolist()]
    named = Counter(
        re.sub(r"\d+", "N", name)
        for name in names
        if name
        and not classify_range(name)
        and not name.startswith(("nccl:", "gloo:", "Optimizer."))
    )
    ranked = sorted(named.items(), key=lambda item: (-item[1], item[0]))
    often = [(name, count) for name, count in ranked[:5] if count >= 3]
    if not often:
        return []
    listed = ", ".join(f"{name[:60]!r} x{count}" for name, count in often)
    message = f"Repeating annotations that may be steps: {listed}."
    return [Notice("steps.unknown_marker", "info", len(often), message)]


def _windows(recording: Recording, ranges: list[_Range], source: StepSource) -> list[Step]:
    starts = np.array([r.start_ns for r in ranges])
    ends = np.array([r.end_ns for r in ranges])
    done = np.maximum.accumulate(Launched.of(recording).completions(starts, ends))
    if source == "whole":
        done[-1] = max(done[-1], _last_work_ns(recording))
    begins = [int(starts[0]), *done[:-1].tolist()]
    return [
        Step(i, r.name, source, r.start_ns, r.end_ns - r.start_ns, begin, max(end - begin, 0))
        for i, (r, begin, end) in enumerate(zip(ranges, begins, done.tolist(), strict=True))
    ]


def _last_work_ns(recording: Recording) -> int:
    slices = recording.slices
    return int(slices.end_ns[np.isin(slices.kind, DEVICE_WORK)].max(initial=0))


@dataclass(frozen=True, slots=True)
class Launched:
    """Device work in the order of its launches: (n,) start of the launch, end of the work.

    Work without a launch counts as launched when it started.
    """

    launch_ns: Int64s
    end_ns: Int64s

    @classmethod
    def of(cls, recording: Recording) -> "Launched":
        """The work of a recording."""
        slices = recording.slices
        launch = launch_rows(slices)
        work = np.flatnonzero(np.isin(slices.kind, DEVICE_WORK))
        by = launch[work]
        launched = slices.ts_ns[np.where(by == ABSENT, work, by)]
        order = np.argsort(launched, kind="stable")
        return cls(launched[order], slices.end_ns[work[order]])

    def completions(self, starts_ns: Int64s, ends_ns: Int64s) -> Int64s:
        """(n,) completion of n host ranges in order: their end, or that of what they launched."""
        first = np.searchsorted(self.launch_ns, starts_ns, "left")
        last = np.searchsorted(self.launch_ns, ends_ns, "left")
        bounds = np.column_stack((first, np.maximum(first, last))).ravel()
        padded = np.append(self.end_ns, 0)
        latest = np.maximum.reduceat(padded, bounds)[::2]
        return np.where(last > first, np.maximum(latest, ends_ns), ends_ns)
