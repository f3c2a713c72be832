"""Counters of files as counter tracks of one trace, on its clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiag.classifiers.counter_owners import Found, Owner, find_counters
from perfdiag.classifiers.counter_places import is_finer, without_complaint
from perfdiag.profiler.counters import ClockHints, CounterFile, spans
from perfdiag.profiler.counters.opening import open_counters
from perfdiag.profiler.opening import Adjust
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import DEVICE_WORK, Counter, Recording

__all__ = ["CounterFiles", "add_counters", "counter_adder"]


@dataclass(frozen=True, slots=True)
class CounterFiles:
    """Files of counters that a user names, and what is said of their clocks.

    Attributes:
        paths: files, folders of scrapes, globs.
        offset_ns: is added to times; of a file that does not say when it was recorded, the time
            from the start of the trace to its first sample.
        utc_offset_s: seconds that local times in these files are ahead of UTC.
    """

    paths: Sequence[str] = ()
    offset_ns: int | None = None
    utc_offset_s: int | None = None


def counter_adder(files: CounterFiles) -> Adjust | None:
    """Read files of counters; what adds them to a recording, None where no file is named.

    Raises:
        InputError: a path leads to nothing, or to no file of counters.
    """
    if not files.paths:
        return None
    opened = open_counters(files.paths, ClockHints(utc_offset_s=files.utc_offset_s))
    found = [one.found for one in opened]
    return lambda recording: add_counters(recording, found, files.offset_ns)


def add_counters(
    recording: Recording, files: Sequence[CounterFile], offset_ns: int | None = None
) -> Recording:
    """The recording with the counters of its devices and host, and all notices about the files.

    Each sample says for which time it stands. Of two timelines of one counter of a device the one
    with more samples a second is taken; samples beside the trace are left out.

    Args:
        recording: normalised: its time 0 is the start of the trace.
        files: the counters.
        offset_ns: see `CounterFiles`.
    """
    owner = _owner(recording)
    kept: dict[tuple[int, str], Counter] = {}
    notices: list[Notice] = []
    for file in files:
        found, about = find_counters(file, [owner], offset_ns)
        notices += (*without_complaint(file, offset_ns).notices, *about, *_not_taken(file))
        for counter in map(_on_clock, found):
            key = counter.device, counter.name
            if key not in kept or is_finer(counter.period_ns, kept[key].period_ns):
                kept[key] = counter
    inside = [counter.within(*owner.span_ns) for counter in kept.values()]
    beside = _count(list(kept.values())) - _count(inside)
    message = "Samples of counters from before or after the trace are left out."
    taken = [counter for counter in inside if len(counter.ts_ns)]
    counters = (*recording.counters, *taken)
    notices.append(Notice("counter.missing", "info", beside, message))
    return replace(recording, counters=counters).noting(*notices)


def _owner(recording: Recording) -> Owner:
    slices = recording.slices
    lanes = np.unique(slices.lane[np.isin(slices.kind, DEVICE_WORK)]).tolist()
    devices = sorted({recording.lanes[lane].device for lane in lanes})
    span = (0, int(slices.end_ns.max(initial=0)))
    return Owner(tuple(devices), recording.host, recording.clock.unix_ns, span)


def _on_clock(found: Found) -> Counter:
    """A counter on the clock of the trace, each sample with the time that it stands for."""
    timeline = found.timeline
    held = replace(timeline.counter, period_ns=timeline.period_ns, spans=spans(timeline))
    return held.moved(found.shift_ns)


def _count(counters: Sequence[Counter]) -> int:
    return sum(len(counter.ts_ns) for counter in counters)


def _not_taken(file: CounterFile) -> Iterator[Notice]:
    """Counters without a canonical name, and figures of kernels, which have no time."""
    if file.unknown:
        listed = ", ".join(sorted(file.unknown))
        message = f"{file.path}: counters that are not in the vocabulary are left out: {listed}."
        yield Notice("counter.unmatched", "info", sum(file.unknown.values()), message)
    if file.kernels:
        message = f"{file.path}: figures of kernels have no place in time and are left out."
        yield Notice("counter.unmatched", "info", len(file.kernels), message)
