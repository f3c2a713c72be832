"""What the parts of one rank's trace share: names, numbers, clock, and how texts are made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.simulator.dialects import Dialect, find_dialect
from perfdiag.profiler.simulator.events import RankEvents
from perfdiag.profiler.simulator.kineto_options import TraceOptions
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Group, Job

__all__ = ["MAIN", "Int64s", "Scene", "Texts", "Times", "as_times", "set_scene"]

Int64s = NDArray[np.int64]
Times = tuple[list[int], list[str]]
"""Whole microseconds, and the three digits behind them."""

Texts = dict[tuple[object, ...], dict[object, tuple[str, ...]]]

MAIN = "main"
_FRACTIONS = [f"{ns:03d}" for ns in range(1000)]
_PID = 41_000
_APART = 64
"""Between the numbers of processes of one host, and of threads of one process."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One rank.

    Attributes:
        rank, job, platform, options: as given.
        dialect: of the platform's vendor.
        device: ordinal, which is also the number of its process in the trace.
        pid: number of the process; its main thread has the same.
        tids: numbers of threads, by all of their names; `streams`: of streams.
        groups: of the job, by name.
        shift_ns: from time of events to time of the trace.
        since_ns: events before this are not recorded.
        texts: pieces of events that stay the same from one time to the next, by where they are
            and then by what they are; ranks of one device ordinal share them.
    """

    rank: int
    job: Job
    platform: Platform
    options: TraceOptions
    dialect: Dialect
    device: int
    pid: int
    tids: dict[str, int]
    streams: dict[str, int]
    groups: dict[str, Group]
    shift_ns: int
    since_ns: int
    texts: Texts

    @property
    def loads_itself(self) -> bool:
        """Whether the main thread loads batches, and no workers do."""
        return not self.job.ranks[self.rank].loader.workers

    def times(self, ns: Int64s) -> Times:
        """Times of events as the trace writes them."""
        return _split(ns + self.shift_ns)

    def lengths(self, ns: Int64s) -> Times:
        """Durations as the trace writes them."""
        return _split(ns)


def set_scene(
    events: RankEvents, job: Job, platform: Platform, options: TraceOptions, texts: Texts
) -> Scene:
    """The scene of a rank; see `Scene` for `texts`, which belong to one job and its options."""
    device = events.rank % platform.ranks_per_host
    dialect = find_dialect(platform.vendor)
    pid = _PID + _APART**2 * device
    names = {one.thread for one in events.host} | {one.thread for one in events.calls}
    others = sorted({name.partition(":")[0] for name in names} - {MAIN})
    numbers = {MAIN: pid} | {name: pid + _APART * (i + 1) for i, name in enumerate(others)}
    skipped = [
        window.host_start_ns
        for window in events.windows
        if window.phase is None and window.step == options.skipped_steps
    ]
    return Scene(
        rank=events.rank,
        job=job,
        platform=platform,
        options=options,
        dialect=dialect,
        device=device,
        pid=pid,
        tids=numbers | {name: numbers[name.partition(":")[0]] for name in names},
        streams=dialect.stream_numbers(work.stream for work in events.device),
        groups={group.name: group for group in job.groups},
        shift_ns=options.unix_ns(events.rank) - options.base_ns,
        since_ns=min(skipped, default=0) if options.skipped_steps else 0,
        texts=texts,
    )


def _split(ns: Int64s) -> Times:
    whole, rest = np.divmod(ns, 1000)
    return whole.tolist(), [_FRACTIONS[digits] for digits in rest.tolist()]


def as_times(values: Sequence[int]) -> Int64s:
    """Whole nanoseconds as an array."""
    return np.array(values, np.int64)
