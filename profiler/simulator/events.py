"""What happened in a simulated job: by rank, in whole nanoseconds since the job's start."""

from dataclasses import dataclass
from typing import NamedTuple

from perfdiag.profiler.simulator.program import (
    Allocate,
    Batch,
    Collective,
    Copy,
    Host,
    Kernel,
    Phase,
    Range,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)

__all__ = ["Called", "DeviceWork", "HostRange", "JobEvents", "RankEvents", "Window"]

NO_CALL = 0
"""Correlation of what no call launched."""


class HostRange(NamedTuple):
    """A range, or host time that bears a name, on a thread; `step` counts from 0."""

    thread: str
    source: Range | Host | Batch
    start_ns: int
    end_ns: int
    step: int


class Called(NamedTuple):
    """A call of the runtime; `correlation` is that of the work it launched, else its own number."""

    thread: str
    source: Kernel | Collective | Copy | ReplayGraph | Record | Wait | Synchronize | Allocate
    start_ns: int
    end_ns: int
    correlation: int


class DeviceWork(NamedTuple):
    """Work on a stream.

    `moving_ns`: of a collective when the last rank has come and data begin to move, elsewhere the
    start. `step` and `phase`: those of its launch.
    """

    stream: str
    source: Kernel | Collective | Copy
    start_ns: int
    end_ns: int
    correlation: int
    moving_ns: int
    step: int
    phase: Phase


class Window(NamedTuple):
    """A step (`phase` None) or a phase of one: host times, and the completion that bounds it."""

    step: int
    phase: Phase | None
    host_start_ns: int
    host_end_ns: int
    completion_ns: int


@dataclass(frozen=True, slots=True)
class RankEvents:
    """One rank's events, each list in order of start for its thread or stream."""

    rank: int
    host: list[HostRange]
    calls: list[Called]
    device: list[DeviceWork]
    windows: list[Window]


@dataclass(frozen=True, slots=True)
class JobEvents:
    """All ranks' events."""

    ranks: list[RankEvents]
