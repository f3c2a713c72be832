"""A rank's host: does the instructions of its plan, step after step.

The host runs ahead of its device until it has to wait for it. Only instructions that touch the
device or the loader are looked at one by one: the time that passes between them is known before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.simulator.chance import Costs
from perfdiag.profiler.simulator.loading import Batches
from perfdiag.profiler.simulator.plan import Plan
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import (
    Allocate,
    Batch,
    Collective,
    Copy,
    Instruction,
    Launch,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)
from perfdiag.profiler.simulator.rendezvous import Meetings
from perfdiag.profiler.simulator.streams import (
    UNKNOWN,
    CollectiveWork,
    CopyWork,
    Device,
    KernelWork,
    Stream,
    Work,
)

__all__ = ["HostThread", "Passed"]

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Passed:
    """A step that the host has done.

    Attributes:
        after_ns: (n + 1,) as in `Costs`.
        rows: from which on the host is `behind_ns` that, until the next.
    """

    after_ns: Int64s
    rows: list[int]
    behind_ns: list[int]

    def bounds_ns(self) -> Int64s:
        """(n + 1,) when the step starts, and when each row ends, which is when the next starts."""
        rows = np.array([*self.rows, len(self.after_ns) - 1], np.int64)
        lasting = rows[1:] - rows[:-1]
        behind = np.repeat(np.array(self.behind_ns, np.int64), lasting)
        start = np.array(self.behind_ns[:1], np.int64)
        return np.concatenate((start, self.after_ns[1:] + behind))


_Action = tuple[Callable[[int, Any], bool], int, Any]
"""What to do, the row, and what with; false when it has to wait, and be done again."""


class HostThread:
    """The host of a rank, with all its threads: one runs at a time.

    Args:
        plan: of each step.
        costs: of each step.
        device: its own.
        batches: of its loader.
        meetings: where its collectives meet those of others.
        platform: it is on.

    Attributes:
        works: all that it has launched, in order.
        passed: its steps.
    """

    def __init__(
        self,
        plan: Plan,
        costs: Iterator[Costs],
        device: Device,
        batches: Batches,
        meetings: Meetings,
        platform: Platform,
    ) -> None:
        """Before the first step."""
        self.works: list[Work] = []
        self.passed: list[Passed] = []
        self._costs = costs
        self._device = device
        self._batches = batches
        self._meetings = meetings
        self._queue = platform.queue
        self._latency_ns = round(platform.latency_ns)
        self._gap_ns = round(platform.graph_gap_ns)
        self._events: dict[str, tuple[Work, ...]] = {}
        self._blocked = 0
        self._works_ns: list[int] = []
        self._actions = list(self._translated(plan))
        self._at = len(self._actions)
        self._behind = 0

    def run(self) -> None:
        """Go on until there is something to wait for, or the last step is done."""
        actions, count = self._actions, len(self._actions)
        while self._at < count or self._next_step():
            while self._at < count:
                act, row, what = actions[self._at]
                if not act(row, what):
                    return
                self._at += 1

    def freed(self, _now: int) -> None:
        """Something that it waited for has ended."""
        self._blocked -= 1
        if not self._blocked:
            self.run()

    def forget(self) -> None:
        """Let go of all works: they would keep each other in memory without a collector."""
        self.works.clear()
        self._actions.clear()
        self._events.clear()
        for stream in self._device.streams.values():
            stream.launched.clear()
            stream.last = None

    def _next_step(self) -> bool:
        if self.passed:
            self._behind += self._after_ns[-1]
        costs = next(self._costs, None)
        if costs is None:
            return False
        self.passed.append(Passed(costs.after_ns, [0], [self._behind]))
        self._after_ns: list[int] = costs.after_ns.tolist()
        self._works_ns = costs.works_ns
        self._at = 0
        return True

    def _translated(self, plan: Plan) -> Iterator[_Action]:
        index = 0
        for row, one in enumerate(plan.placed):
            instruction = one.instruction
            if isinstance(instruction, Launch | ReplayGraph | Collective | Copy):
                stream = self._device.stream(instruction.stream)
                action = self._launch_of(instruction)
                yield action, row, (stream, index, instruction)
                count = len(instruction.kernels) if isinstance(instruction, ReplayGraph) else 1
                index += count
                if isinstance(instruction, Copy) and instruction.blocking:
                    yield self._drain_stream, row, stream
            else:
                yield from self._other(row, instruction)

    def _launch_of(
        self, instruction: Launch | ReplayGraph | Collective | Copy
    ) -> Callable[[int, Any], bool]:
        if isinstance(instruction, Launch):
            return self._kernel
        if isinstance(instruction, ReplayGraph):
            return self._graph
        return self._collective if isinstance(instruction, Collective) else self._copy

    def _other(self, row: int, instruction: Instruction) -> Iterator[_Action]:
        if isinstance(instruction, Batch):
            yield self._batch, row, None
        elif isinstance(instruction, Record):
            yield self._record, row, (instruction.event, self._device.stream(instruction.stream))
        elif isinstance(instruction, Wait):
            yield self._wait, row, (instruction.event, self._device.stream(instruction.stream))
        elif isinstance(instruction, Synchronize) and instruction.stream is not None:
            yield self._drain_stream, row, self._device.stream(instruction.stream)
        elif isinstance(instruction, Synchronize):
            yield self._drain_device, row, None
        elif isinstance(instruction, Allocate) and instruction.free:
            yield self._drain_before, row, None

    def _kernel(self, row: int, what: tuple[Stream, int, Launch]) -> bool:
        stream, index, _ = what
        if self._full(row, stream):
            return False
        self._add(stream, KernelWork(stream, self._ready(row), self._works_ns[index]))
        return True

    def _graph(self, row: int, what: tuple[Stream, int, ReplayGraph]) -> bool:
        stream, index, graph = what
        if self._full(row, stream):
            return False
        ready = self._ready(row)
        for i in range(len(graph.kernels)):
            gap = self._gap_ns if i else 0
            work = KernelWork(stream, ready, self._works_ns[index + i], gap)
            self._add(stream, work, last=i + 1 == len(graph.kernels))
        return True

    def _copy(self, row: int, what: tuple[Stream, int, Copy]) -> bool:
        stream, index, copy = what
        if self._full(row, stream):
            return False
        work = CopyWork(stream, self._ready(row), self._works_ns[index])
        work.engine = self._device.engines.get(copy.direction)
        self._add(stream, work)
        return True

    def _collective(self, row: int, what: tuple[Stream, int, Collective]) -> bool:
        stream, _, collective = what
        if self._full(row, stream):
            return False
        work = CollectiveWork(stream, self._ready(row), 0)
        work.meeting = self._meetings.join(self._device.rank, collective)
        self._add(stream, work)
        return True

    def _add(self, stream: Stream, work: Work, *, last: bool = True) -> None:
        self.works.append(work)
        if last:
            stream.launched.append(work)
        stream.add(work)

    def _ready(self, row: int) -> int:
        return self._after_ns[row + 1] + self._behind + self._latency_ns

    def _full(self, row: int, stream: Stream) -> bool:
        """Whether the call has to wait because the stream holds as many launches as it can."""
        beyond = len(stream.launched) - self._queue
        if beyond < 0:
            return False
        first = stream.launched[beyond]
        if first.end == UNKNOWN:
            first.notify(self)
            self._blocked = 1
            return True
        self._wait_until(first.end, row, row)
        return False

    def _batch(self, row: int, _: None) -> bool:
        now = self._after_ns[row + 1] + self._behind
        self._wait_until(self._batches.take(now), row, row + 1)
        return True

    def _record(self, _row: int, what: tuple[str, Stream]) -> bool:
        event, stream = what
        self._events[event] = stream.tail()
        return True

    def _wait(self, _row: int, what: tuple[str, Stream]) -> bool:
        """An event that was never recorded, or is over, holds nothing up."""
        event, stream = what
        coming = tuple(work for work in self._events.get(event, ()) if work.end == UNKNOWN)
        stream.waits += coming
        return True

    def _drain_stream(self, row: int, stream: Stream) -> bool:
        return self._ended(stream.tail(), row, row + 1)

    def _drain_device(self, row: int, _: None) -> bool:
        return self._ended(self._tails(), row, row + 1)

    def _drain_before(self, row: int, _: None) -> bool:
        return self._ended(self._tails(), row, row)

    def _tails(self) -> tuple[Work, ...]:
        return tuple(work for stream in self._device.streams.values() for work in stream.tail())

    def _ended(self, works: Sequence[Work], row: int, at: int) -> bool:
        """Whether the ends of works are known, and the host has come that far.

        Args:
            works: to wait for.
            row: that waits.
            at: itself if it waits before it does what it does, the next one if after.
        """
        coming = [work for work in works if work.end == UNKNOWN]
        self._blocked = len(coming)
        for work in coming:
            work.notify(self)
        if coming:
            return False
        self._wait_until(max((work.end for work in works), default=0), row, at)
        return True

    def _wait_until(self, time_ns: int, row: int, at: int) -> None:
        behind = time_ns - self._after_ns[at]
        if behind > self._behind:
            self._behind = behind
            step = self.passed[-1]
            step.rows.append(row)
            step.behind_ns.append(behind)
