"""From what a source read to what may be believed: a list of steps with one signature.

Each step takes a Recording in the source's own time and returns one; what cannot be placed in
time moves to `Recording.set_aside`, and a notice says how many and what that does.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.nesting import count_crossings
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.host_ranges import step_marker
from perfdiag.trace_schemas.kernels import classify_kernel
from perfdiag.trace_schemas.notices import Notice, Severity
from perfdiag.trace_schemas.recording import (
    ABSENT,
    DEVICE_WORK,
    ArgColumn,
    Counter,
    Int32s,
    Int64s,
    Kind,
    Recording,
    Slices,
)

__all__ = ["STEPS", "normalise", "rebase"]

Mask = NDArray[np.bool_]

CLOCK_SLACK_NS = 1_000
"""Old writers round to microseconds, so a kernel may seem to start 1 us before its launch."""

SKEW_NS = 1_000_000
"""Records that start earlier than this before their launch come from another clock
(pytorch/kineto#1082: 1e14 ns); below it the clocks are merely skewed and the record is kept."""

FAR_NS = 86_400_000_000_000
"""A day: no trace is as long, so that a record at 0 was never timed if all others are later."""

IMPOSSIBLE_RATIO = 10.0
"""A kernel that outlasts later kernels of its stream, and takes this many times as long as its
namesakes, has a broken end (AMD-AGI/TraceLens#669: orders of magnitude)."""

SIDE_BY_SIDE, MOST_BROKEN = 0.05, 0.25
"""Shares of the work of a lane that may outlast later work, for a usual time and for an impossible
one. Above either the lane counts as no stream, but as several drawn on one line."""

LONGEST_LAUNCH_NS = 1_000_000
"""A median launch call of a millisecond suggests nanoseconds read as microseconds: launches
take 2 to 20 us on every platform whose traces we hold."""


def normalise(recording: Recording) -> Recording:
    """Run all steps, in their order; a recording that went through them stays as it is."""
    if recording.normalised:
        return recording
    for step in STEPS:
        recording = step(recording)
    return replace(recording, normalised=True)


def name_device_kinds(recording: Recording) -> Recording:
    """Tell collectives, copies and fills from kernels by name, where the source calls them so."""
    slices = recording.slices
    rows = np.flatnonzero(slices.kind == Kind.KERNEL)
    names = np.unique(slices.name[rows])
    by_name = np.full(len(recording.strings) + 1, Kind.KERNEL, np.int8)
    by_name[names] = [classify_kernel(recording.strings[n]).kind for n in names.tolist()]
    kind = slices.kind.copy()
    kind[rows] = by_name[slices.name[rows]]
    return replace(recording, slices=replace(slices, kind=kind))


def set_zero_times_aside(recording: Recording) -> Recording:
    """Device records with time 0 were never timed: they would stretch the trace to 1970."""
    slices = recording.slices
    at_zero = _device(slices) & (slices.ts_ns <= 0)
    far = slices.ts_ns[~at_zero].min(initial=np.iinfo(np.int64).max) > FAR_NS
    untimed = at_zero & ((slices.dur_ns == 0) | far)
    timed = slices.ts_ns[~untimed]
    if not len(timed) or timed.min() <= 0:
        untimed[:] = False
    message = "Device records without time: busy time is a lower bound."
    return _set_aside(recording, untimed, "timestamp.zero", "warning", message)


def set_negative_durations_aside(recording: Recording) -> Recording:
    """An event that ends before it starts has no place in time."""
    message = "Events that end before they start: busy time is a lower bound."
    wrong = recording.slices.dur_ns < 0
    return _set_aside(recording, wrong, "duration.negative", "warning", message)


def check_causality(recording: Recording) -> Recording:
    """No device work starts before the call that launches it."""
    slices = recording.slices
    launch = launch_rows(slices)
    linked = launch != ABSENT
    delay_ns = np.zeros(len(slices), np.int64)
    delay_ns[linked] = slices.ts_ns[linked] - slices.ts_ns[launch[linked]]
    skewed = (delay_ns < -CLOCK_SLACK_NS) & (delay_ns >= -SKEW_NS)
    message = (
        f"Device records up to {-delay_ns[skewed].min(initial=0) / 1000:.0f} us before their "
        "launch: the clocks of host and device differ; gaps that short mean nothing."
    )
    recording = recording.noting(
        Notice("causality.violation", "warning", int(skewed.sum()), message)
    )
    message = "Device records from before their launch: busy time is a lower bound."
    return _set_aside(recording, delay_ns < -SKEW_NS, "causality.violation", "warning", message)


def set_impossible_durations_aside(recording: Recording) -> Recording:
    """A kernel cannot run on through the next ones of a stream that is otherwise serial."""
    slices = recording.slices
    impossible = np.zeros(len(slices), bool)
    work = np.flatnonzero(_device(slices))
    in_lanes = work[np.lexsort((slices.ts_ns[work], slices.lane[work]))]
    for rows in np.split(in_lanes, np.flatnonzero(np.diff(slices.lane[in_lanes])) + 1):
        impossible[_impossible(slices, rows)] = True
    message = "Device records whose end cannot be: they would cover later work of their stream."
    return _set_aside(recording, impossible, "duration.impossible", "warning", message)


def _impossible(slices: Slices, rows: Int64s) -> Int64s:
    """Of the rows of one stream, in order of time, those whose duration cannot be."""
    suspect = _outlasts_later(slices, rows)
    if not suspect.any() or suspect.all():
        return rows[:0]
    dur = slices.dur_ns[rows]
    broken = suspect & (dur > IMPOSSIBLE_RATIO * _usual_ns(dur, slices.name[rows], suspect))
    if (suspect & ~broken).mean() > SIDE_BY_SIDE or broken.mean() > MOST_BROKEN:
        return rows[:0]
    return rows[broken]


def _outlasts_later(slices: Slices, rows: Int64s) -> Mask:
    """(n,) whether work ends after later work of its stream that another call launched.

    What one call launched, a graph, may run side by side on a stream; a kernel that starts before
    its predecessor is done (programmatic dependent launch) still ends after it.
    """
    end, call = slices.ts_ns[rows] + slices.dur_ns[rows], slices.correlation[rows]
    fresh = np.flatnonzero((call[1:] != call[:-1]) | (call[1:] == ABSENT)) + 1
    at = np.searchsorted(fresh, np.arange(len(rows)), "right")
    known = at < len(fresh)
    earliest = np.minimum.accumulate(end[::-1])[::-1]
    outlasts = np.zeros(len(rows), bool)
    outlasts[known] = end[known] > earliest[fresh[at[known]]] + CLOCK_SLACK_NS
    return outlasts


def _usual_ns(dur_ns: Int64s, name: Int32s, suspect: Mask) -> NDArray[np.float64]:
    """(n,) how long work of the name of each suspect usually takes."""
    usual = np.full(len(dur_ns), IMPOSSIBLE_RATIO * np.median(dur_ns[~suspect]))
    for code in np.unique(name[suspect]).tolist():
        alike = name == code
        proper = dur_ns[alike & ~suspect]
        if len(proper):
            usual[alike] = np.median(proper)
        elif alike.sum() > 1:  # all of them: long, not broken
            usual[alike] = np.sort(dur_ns[alike])[(alike.sum() - 1) // 2]
    return np.maximum(usual, CLOCK_SLACK_NS)


def note_overlaps(recording: Recording) -> Recording:
    """Slices that cross lose nothing here, but readers should know that their lane is no line."""
    slices = recording.slices
    shown = np.flatnonzero(~np.isin(slices.kind, (Kind.PYTHON, *NOT_WORK)))
    count = count_crossings(slices.ts_ns[shown], slices.dur_ns[shown], slices.lane[shown])
    message = "Slices that cross another one of their lane: each keeps its own time and track."
    return recording.noting(Notice("slice.overlap", "info", count, message))


NOT_WORK = (Kind.DEVICE_ANNOTATION, Kind.DEVICE_SYNC, Kind.INSTANT)
"""Drawn over the work of their lane."""


def suspect_units(recording: Recording) -> Recording:
    """Say so where the numbers look like nanoseconds that are read as microseconds."""
    slices = recording.slices
    calls = np.flatnonzero(slices.kind == Kind.RUNTIME)
    launches = (
        calls[[classify_api(recording.strings[n]) == "launch" for n in slices.name[calls].tolist()]]
        if len(calls)
        else calls
    )
    shortest = slices.dur_ns[slices.dur_ns > 0].min(initial=np.iinfo(np.int64).max)
    if not len(launches) or shortest < LONGEST_LAUNCH_NS:
        return recording
    if np.median(slices.dur_ns[launches]) < LONGEST_LAUNCH_NS:
        return recording
    message = (
        f"The shortest event takes {shortest / 1e6:.1f} ms and a launch as long: the times look "
        "a thousand times too long. Shares hold all the same; --time-unit says what they are in."
    )
    return recording.noting(Notice("unit.suspect", "warning", len(slices), message))


def find_merged_ranks(recording: Recording) -> Recording:
    """Two processes with the same step markers and one device lane: ranks were merged."""
    slices, lanes = recording.slices, recording.lanes
    hosts = np.flatnonzero(np.isin(slices.kind, (Kind.ANNOTATION, Kind.HOST_OP)))
    numbered = np.zeros(len(recording.strings) + 1, bool)
    for name in np.unique(slices.name[hosts]).tolist():
        marker = step_marker(recording.strings[name])
        numbered[name] = marker is not None and marker.number is not None
    hosts = hosts[numbered[slices.name[hosts]]]
    owners: dict[int, set[str]] = {}
    for name, lane in zip(slices.name[hosts].tolist(), slices.lane[hosts].tolist(), strict=True):
        owners.setdefault(name, set()).add(lanes[lane].process)
    most = max(map(len, owners.values()), default=1)
    message = (
        f"{most} host processes mark the same step: several ranks were merged into this file and "
        "share its device lanes. Give the ranks as separate files."
    )
    return recording.noting(
        Notice("merge.pid_collision", "error", most if most > 1 else 0, message)
    )


def rebase(recording: Recording) -> Recording:
    """Make 0 the start of the trace, and say where that was.

    Samples of counters from before it are left out: a trace has no times below 0.
    """
    slices, clock = recording.slices, recording.clock
    origin = int(slices.ts_ns.min(initial=np.iinfo(np.int64).max)) if len(slices) else 0
    base = clock.unix_ns
    epoch = base is None and 946_684_800_000_000_000 <= origin < 4_102_444_800_000_000_000
    unix = None if base is None and not epoch else (base or 0) + origin
    return replace(
        recording,
        slices=replace(slices, ts_ns=slices.ts_ns - origin),
        counters=[_counter_from(c, origin) for c in recording.counters],
        clock=replace(
            clock,
            origin_ns=clock.origin_ns + origin,
            unix_ns=unix,
            quality="guess" if epoch else clock.quality,
        ),
    ).noting(_early_samples(recording, origin), _unanchored(unix))


def _unanchored(unix_ns: int | None) -> Notice:
    message = "The times have no known origin: other files cannot be aligned with them by clock."
    return Notice("clock.unanchored", "info", int(unix_ns is None), message)


def _counter_from(counter: Counter, origin_ns: int) -> Counter:
    return counter.within(origin_ns, np.iinfo(np.int64).max).moved(-origin_ns)


def _early_samples(recording: Recording, origin_ns: int) -> Notice:
    early = sum(int((c.ts_ns < origin_ns).sum()) for c in recording.counters)
    message = "Counter samples from before the first event are left out."
    return Notice("counter.missing", "info", early, message)


STEPS: tuple[Callable[[Recording], Recording], ...] = (
    name_device_kinds,
    set_zero_times_aside,
    set_negative_durations_aside,
    check_causality,
    set_impossible_durations_aside,
    note_overlaps,
    suspect_units,
    find_merged_ranks,
    rebase,
)


def _device(slices: Slices) -> Mask:
    return np.isin(slices.kind, DEVICE_WORK)


def _set_aside(
    recording: Recording, rows: Mask, reason: str, severity: Severity, message: str
) -> Recording:
    count = int(rows.sum())
    if not count:
        return recording
    moved = recording.slices.take(rows)
    reasons = ArgColumn(np.arange(count), np.full(count, reason, object))
    moved = replace(moved, args={**moved.args, "reason": reasons})
    return replace(
        recording,
        slices=recording.slices.take(~rows),
        set_aside=_concatenate([recording.set_aside, moved]),
    ).noting(Notice(reason, severity, count, message))


def _concatenate(parts: Sequence[Slices]) -> Slices:
    parts = [part for part in parts if len(part)]
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in (
            "ts_ns",
            "dur_ns",
            "lane",
            "name",
            "category",
            "kind",
            "correlation",
            "external_id",
        )
    }
    names = dict.fromkeys(name for part in parts for name in part.args)
    args = {name: _join_arg(name, parts, offsets.tolist()) for name in names}
    raw = None
    if any(part.raw_args is not None for part in parts):
        raw = [r for part in parts for r in (part.raw_args or [None] * len(part))]
    return Slices(**columns, args=args, raw_args=raw)


def _join_arg(name: str, parts: Sequence[Slices], offsets: Sequence[int]) -> ArgColumn:
    held = [
        (part.args[name], offset)
        for part, offset in zip(parts, offsets, strict=False)
        if name in part.args
    ]
    return ArgColumn(
        np.concatenate([column.rows + offset for column, offset in held]),
        np.concatenate([column.values for column, _ in held]),
    )
