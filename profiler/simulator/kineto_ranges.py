"""Ranges of the host in one order, and which of them surrounds which call."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from perfdiag.profiler.simulator.events import Called, HostRange, RankEvents
from perfdiag.profiler.simulator.kineto_collectives import range_name
from perfdiag.profiler.simulator.kineto_scene import MAIN, Int64s, Scene, as_times
from perfdiag.profiler.simulator.program import Batch, Collective, Host, Range

__all__ = [
    "DESCRIBES",
    "Around",
    "Ranges",
    "around",
    "parents",
    "recorded_calls",
    "recorded_ranges",
]

DESCRIBES = "record_param_comms"
"""The operator by which PyTorch describes a collective."""

_STEP = "ProfilerStep#"
Kind = Literal["op", "annotation", "frame"]
_ROOTS = ("train.py(214): <module>", "train.py(171): main")


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges by thread and start, the outer before the inner.

    Attributes:
        sources: what they are, as the trace has them: name and kind are final, and one range is
            the same object in all steps.
        tid: (n,) thread; `start_ns`, `end_ns`, `step`: (n,) likewise.
    """

    sources: list[Range]
    tid: Int64s
    start_ns: Int64s
    end_ns: Int64s
    step: list[int]

    def rows(self, *kinds: Kind) -> Int64s:
        """Those of some kinds."""
        there = [row for row, source in enumerate(self.sources) if source.kind in kinds]
        return np.array(there, np.int64)


def recorded_calls(events: RankEvents, scene: Scene) -> list[Called]:
    """Calls from the first recorded step on, by thread and start."""
    kept = [call for call in events.calls if call.start_ns >= scene.since_ns]
    return sorted(kept, key=lambda call: (scene.tids[call.thread], call.start_ns))


def recorded_ranges(events: RankEvents, calls: Sequence[Called], scene: Scene) -> Ranges:
    """Ranges from the first recorded step on; frames with stacks alone."""
    kept = [one for one in events.host if one.start_ns >= scene.since_ns]
    kept += _descriptions(kept, calls, scene)
    if scene.options.stacks:
        kept = [*_roots(kept, calls), *kept]
    return _in_order(kept, scene)


def _in_order(kept: Sequence[HostRange], scene: Scene) -> Ranges:
    unique = {id(one.source): one.source for one in kept}
    written = {key: _written(source, scene) for key, source in unique.items()}
    if not scene.options.stacks:
        kept = [one for one in kept if written[id(one.source)].kind != "frame"]
    tid = np.array([scene.tids[one.thread] for one in kept], np.int64)
    start, end = as_times([one.start_ns for one in kept]), as_times([one.end_ns for one in kept])
    order = np.lexsort((-end, start, tid))
    kept = [kept[row] for row in order.tolist()]
    sources, steps = [written[id(one.source)] for one in kept], [one.step for one in kept]
    for row, source in enumerate(sources):
        if source.name == _STEP:
            sources[row] = _made(f"{_STEP}{steps[row] + scene.options.first_step}", "annotation")
    return Ranges(sources, tid[order], start[order], end[order], steps)


def _written(source: Range | Host | Batch, scene: Scene) -> Range:
    """A range as the trace has it; most are so already."""
    if isinstance(source, Batch):
        kind = "SingleProcess" if scene.loads_itself else "MultiProcessing"
        return _made(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", "annotation")
    if isinstance(source, Host):
        return _made(source.name, "annotation")
    if source.name.startswith("nccl:"):
        return _made(f"{scene.dialect.library}{source.name[4:]}", "annotation")
    return source


@cache
def _made(name: str, kind: Kind) -> Range:
    """A range that no program holds; it lives as long as this module, as its id is a key."""
    return Range(name, kind)


def _roots(kept: Sequence[HostRange], calls: Sequence[Called]) -> Iterator[HostRange]:
    """The script around all that the main thread does."""
    times = [(one.start_ns, one.end_ns) for one in kept if one.thread == MAIN]
    times += [(one.start_ns, one.end_ns) for one in calls if one.thread == MAIN]
    if times:
        begin, end = min(start for start, _ in times), max(end for _, end in times)
        for name in _ROOTS:
            yield HostRange(MAIN, _made(name, "frame"), begin, end, 0)


def _descriptions(
    kept: Sequence[HostRange], calls: Sequence[Called], scene: Scene
) -> Iterator[HostRange]:
    """The ranges by which PyTorch describes collectives, where a program leaves them out."""
    described: dict[int, list[HostRange]] = {}
    for one in kept:
        if isinstance(one.source, Range) and one.source.name == DESCRIBES:
            described.setdefault(scene.tids[one.thread], []).append(one)
    by_tid: dict[int, list[Called]] = {}
    for call in calls:
        if isinstance(call.source, Collective):
            by_tid.setdefault(scene.tids[call.thread], []).append(call)
    for tid, mine in by_tid.items():
        ranges = sorted(described.get(tid, []), key=lambda one: one.start_ns)
        starts, ends = [one.start_ns for one in ranges], [one.end_ns for one in ranges]
        for call, row in zip(mine, _inside(starts, ends, [c.start_ns for c in mine]), strict=True):
            if row < 0:
                yield from _described(call, scene)


def _described(call: Called, scene: Scene) -> Iterator[HostRange]:
    assert isinstance(call.source, Collective)
    inner = range_name(call.source, scene)
    for source in (_made(DESCRIBES, "op"), _made(inner, "annotation")):
        yield HostRange(call.thread, source, call.start_ns, call.end_ns, 0)


@dataclass(frozen=True, slots=True)
class Around:
    """(n,) rows of the innermost operator and annotation around each call; -1 for none."""

    op: list[int]
    annotation: list[int]


def around(ranges: Ranges, calls: Sequence[Called], scene: Scene) -> Around:
    """What surrounds each of the calls, which are in order of thread and start."""
    tid = np.array([scene.tids[call.thread] for call in calls], np.int64)
    start = as_times([call.start_ns for call in calls])
    return Around(*(_enclosing(ranges, ranges.rows(kind), tid, start) for kind in _CALL_SIDE))


_CALL_SIDE: tuple[Kind, Kind] = ("op", "annotation")


def _enclosing(ranges: Ranges, rows: Int64s, tid: Int64s, start: Int64s) -> list[int]:
    found: list[int] = []
    for thread in np.unique(tid).tolist():
        mine = rows[ranges.tid[rows] == thread]
        starts, ends = ranges.start_ns[mine].tolist(), ranges.end_ns[mine].tolist()
        inside = _inside(starts, ends, start[tid == thread].tolist())
        numbers = mine.tolist()
        found += [numbers[row] if row >= 0 else -1 for row in inside]
    return found


def _inside(starts: Sequence[int], ends: Sequence[int], times: Iterable[int]) -> list[int]:
    """The innermost range around each time; -1 for none. All in order of start."""
    found, opened, row, count = [], [-1], 0, len(starts)
    for time in times:
        while row < count and starts[row] <= time:
            while opened[-1] >= 0 and ends[opened[-1]] <= starts[row]:
                opened.pop()
            opened.append(row)
            row += 1
        while opened[-1] >= 0 and ends[opened[-1]] <= time:
            opened.pop()
        found.append(opened[-1])
    return found


def parents(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """The range around each range of one thread; -1 for none."""
    found, opened = [], [-1]
    for row, start in enumerate(starts):
        while opened[-1] >= 0 and ends[opened[-1]] <= start:
            opened.pop()
        found.append(opened[-1])
        opened.append(row)
    return found
