"""What the parts of the engine leave behind, as events and windows of a rank."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.simulator.events import (
    Called,
    DeviceWork,
    HostRange,
    RankEvents,
    Window,
)
from perfdiag.profiler.simulator.hosts import Passed
from perfdiag.profiler.simulator.plan import Plan
from perfdiag.profiler.simulator.program import (
    Allocate,
    Batch,
    Collective,
    Copy,
    Host,
    Instruction,
    Kernel,
    Launch,
    Range,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)
from perfdiag.profiler.simulator.streams import Work

__all__ = ["Outcome", "rank_events", "rank_windows"]

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times of a rank.

    Attributes:
        plan: of its steps.
        bounds_ns: (steps, n + 1) when the rows of each step start, and the last one ends.
        works_ns: (steps, m, 3) when each work starts, moves and ends.
    """

    plan: Plan
    bounds_ns: Int64s
    works_ns: Int64s

    @classmethod
    def of(cls, plan: Plan, passed: Sequence[Passed], works: Sequence[Work]) -> "Outcome":
        """Those of a host that has come to its end."""
        times = [(work.start, work.moving, work.end) for work in works]
        shape = (len(passed), len(plan.works), 3)
        bounds = np.array([step.bounds_ns() for step in passed])
        return cls(plan, bounds, np.array(times, np.int64).reshape(shape))


def rank_windows(outcome: Outcome) -> list[Window]:
    """Each step, followed by the pieces of it."""
    pieces = outcome.plan.pieces
    first = np.array([piece.first for piece in pieces])
    starts = outcome.bounds_ns[:, first]
    ends = np.column_stack((starts[:, 1:], outcome.bounds_ns[:, -1]))
    done = _completions(outcome, first, ends)
    windows = []
    for step, (begin, end, last) in enumerate(
        zip(starts.tolist(), ends.tolist(), done.tolist(), strict=True)
    ):
        windows.append(Window(step, None, begin[0], end[-1], max(last)))
        windows += map(Window, repeat(step), (one.phase for one in pieces), begin, end, last)
    return windows


def _completions(outcome: Outcome, first: Int64s, host_ends: Int64s) -> Int64s:
    """(steps, pieces) the later of the host's end and that of the last work launched."""
    rows = np.array([row for _, row in outcome.plan.works], np.int64)
    bounds = np.append(np.searchsorted(rows, first), len(rows))
    ends = outcome.works_ns[:, :, 2]
    done = host_ends.copy()
    for piece, (begin, end) in enumerate(pairwise(bounds.tolist())):
        latest = ends[:, begin:end].max(axis=1, initial=0)
        done[:, piece] = np.maximum(done[:, piece], latest)
    return done


def rank_events(rank: int, outcome: Outcome) -> RankEvents:
    """All events of a rank."""
    return RankEvents(
        rank,
        list(_host_ranges(outcome)),
        list(_calls(outcome)),
        list(_device_works(outcome)),
        rank_windows(outcome),
    )


def _host_ranges(outcome: Outcome) -> Iterator[HostRange]:
    plan = outcome.plan
    shown = [
        (row, one.thread, one.instruction)
        for row, one in enumerate(plan.placed)
        if isinstance(one.instruction, Range | Batch)
        or (isinstance(one.instruction, Host) and one.instruction.name)
    ]
    for step, bounds in enumerate(outcome.bounds_ns):
        now = [one for one in shown if _happens(one[2], step)]
        rows = [row for row, _, _ in now]
        ends = bounds[[plan.closing[row] + 1 for row in rows]].tolist()
        threads, sources = [one[1] for one in now], [one[2] for one in now]
        yield from map(HostRange, threads, sources, bounds[rows].tolist(), ends, repeat(step))


def _happens(instruction: Instruction, step: int) -> bool:
    return not isinstance(instruction, Host) or step % instruction.every == 0


_CALLS = (Launch, ReplayGraph, Collective, Copy, Record, Wait, Synchronize, Allocate)


def _call_rows(plan: Plan) -> list[int]:
    return [row for row, one in enumerate(plan.placed) if isinstance(one.instruction, _CALLS)]


def _calls(outcome: Outcome) -> Iterator[Called]:
    """Calls; they are numbered from 1 on, as is what they launch."""
    rows = _call_rows(outcome.plan)
    placed = [outcome.plan.placed[row] for row in rows]
    threads = [one.thread for one in placed]
    sources = [_called(one.instruction) for one in placed]
    after = [row + 1 for row in rows]
    for step, bounds in enumerate(outcome.bounds_ns):
        numbers = range(step * len(rows) + 1, (step + 1) * len(rows) + 1)
        starts, ends = bounds[rows].tolist(), bounds[after].tolist()
        yield from map(Called, threads, sources, starts, ends, numbers)


def _called(
    instruction: Instruction,
) -> Kernel | Collective | Copy | ReplayGraph | Record | Wait | Synchronize | Allocate:
    if isinstance(instruction, Launch):
        return instruction.kernel
    assert isinstance(
        instruction, Collective | Copy | ReplayGraph | Record | Wait | Synchronize | Allocate
    )
    return instruction


def _device_works(outcome: Outcome) -> Iterator[DeviceWork]:
    plan = outcome.plan
    calls = _call_rows(plan)
    number = {row: i + 1 for i, row in enumerate(calls)}
    rows = [row for _, row in plan.works]
    streams = [_stream(plan.placed[row].instruction) for row in rows]
    sources = [work for work, _ in plan.works]
    phases = [plan.placed[row].phase for row in rows]
    for step, times in enumerate(outcome.works_ns):
        numbers = [step * len(calls) + number[row] for row in rows]
        starts, moving, ends = times.T.tolist()
        columns = (streams, sources, starts, ends, numbers, moving, repeat(step), phases)
        yield from map(DeviceWork, *columns)


def _stream(instruction: Instruction) -> str:
    assert isinstance(instruction, Launch | ReplayGraph | Collective | Copy)
    return instruction.stream
