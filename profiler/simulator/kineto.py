"""Traces of simulated jobs as PyTorch's profiler writes them: Kineto's Chrome JSON.

Only what a profiler sees goes in: names, times, links and inputs. What a kernel costs, why a
collective waits and what ails the job are in the events, and stay there.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from perfdiag.profiler.simulator.events import Called, DeviceWork, JobEvents, RankEvents
from perfdiag.profiler.simulator.kineto_calls import call_lines
from perfdiag.profiler.simulator.kineto_collectives import Described, describe
from perfdiag.profiler.simulator.kineto_head import head_text, lane_lines, span_lines, tail_text
from perfdiag.profiler.simulator.kineto_host import external_ids, frame_lines, host_lines
from perfdiag.profiler.simulator.kineto_options import TraceOptions
from perfdiag.profiler.simulator.kineto_ranges import (
    DESCRIBES,
    Around,
    Ranges,
    around,
    recorded_calls,
    recorded_ranges,
)
from perfdiag.profiler.simulator.kineto_scene import Scene, Texts, set_scene
from perfdiag.profiler.simulator.kineto_waits import wait_lines
from perfdiag.profiler.simulator.kineto_work import (
    Launches,
    projected_lines,
    recorded_work,
    work_lines,
)
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Job

__all__ = ["TraceOptions", "kineto_json", "write_job"]

_LEVEL = 1
"""Of compression: traces repeat themselves so much that more costs time and saves little."""
_LINES = 1024
"""Of a piece: half a megabyte at most, which stays in the caches."""


def kineto_json(events: RankEvents, job: Job, platform: Platform, options: TraceOptions) -> bytes:
    """The trace of one rank.

    Args:
        events: what happened.
        job: the job that it belongs to.
        platform: that it ran on: its vendor decides how things are called.
        options: what is recorded.
    """
    return b"".join(_pieces(events, set_scene(events, job, platform, options, {})))


def write_job(
    events: JobEvents, job: Job, platform: Platform, options: TraceOptions, folder: Path
) -> list[Path]:
    """Write a file a rank: `rank0.json.gz`, or `rank0.json` where files are not compressed.

    Returns:
        The files, in order of ranks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ending = ".json.gz" if options.compress else ".json"
    paths, texts = [], Texts()
    for one in events.ranks:
        pieces = _pieces(one, set_scene(one, job, platform, options, texts))
        path = folder / f"rank{one.rank}{ending}"
        with path.open("wb") as file:
            file.writelines(_compressed(pieces) if options.compress else pieces)
        paths.append(path)
    return paths


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """As gzip writes them, without a time."""
    packer = zlib.compressobj(_LEVEL, wbits=16 + zlib.MAX_WBITS)
    yield from map(packer.compress, pieces)
    yield packer.flush()


def _pieces(events: RankEvents, scene: Scene) -> Iterator[bytes]:
    """The file in pieces: whole, its text takes longer to move about than to make."""
    lines = _lines(events, scene)
    separator = head_text(scene)
    while text := ",\n".join(islice(lines, _LINES)):
        yield f"{separator}{text}".encode()
        separator = ",\n"
    yield tail_text(scene).encode()


def _lines(events: RankEvents, scene: Scene) -> Iterator[str]:
    """All events: of the host, of the runtime, of the device, and names."""
    calls = recorded_calls(events, scene)
    ranges = recorded_ranges(events, calls, scene)
    described = describe(events.calls, scene.since_ns, scene)
    beside = around(ranges, calls, scene)
    external = external_ids(ranges)
    of_calls = [external[row] if row >= 0 else 0 for row in beside.op]
    launches = Launches.of(calls, of_calls, beside.annotation, described)
    recorded = recorded_work(events.device, launches, scene)
    yield from host_lines(ranges, _describing(ranges, calls, beside, described), scene)
    yield from frame_lines(ranges, scene)
    yield from call_lines(calls, of_calls, scene)
    yield from work_lines(recorded, launches, scene)
    if scene.options.sync_events and scene.dialect.sync_records:
        yield from wait_lines(calls, of_calls, scene)
    yield from projected_lines(recorded.work, launches, ranges, external, scene)
    start, end = _extent(ranges, calls, recorded.work, scene)
    yield from lane_lines(scene, start)
    yield from span_lines(start, end)


def _describing(
    ranges: Ranges, calls: Sequence[Called], beside: Around, described: dict[int, Described]
) -> dict[int, Described]:
    """Collectives by the row of the operator that describes them."""
    return {
        row: described[call.correlation]
        for call, row in zip(calls, beside.op, strict=True)
        if call.correlation in described and row >= 0 and ranges.sources[row].name == DESCRIBES
    }


def _extent(
    ranges: Ranges, calls: Sequence[Called], work: Sequence[DeviceWork], scene: Scene
) -> tuple[int, int]:
    starts, ends = ranges.start_ns.tolist(), ranges.end_ns.tolist()
    starts += [call.start_ns for call in calls]
    ends += [call.end_ns for call in calls]
    ends += [one.end_ns for one in work]
    start = min(starts, default=0)
    return start + scene.shift_ns, max(ends, default=start) + scene.shift_ns
