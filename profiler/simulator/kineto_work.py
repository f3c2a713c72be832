"""Device work as Kineto writes it, with the arrows that arrive there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from perfdiag.profiler.simulator.events import Called, DeviceWork
from perfdiag.profiler.simulator.kineto_collectives import Described
from perfdiag.profiler.simulator.kineto_ranges import Ranges
from perfdiag.profiler.simulator.kineto_scene import Int64s, Scene, as_times
from perfdiag.profiler.simulator.names import (
    collective_kernel,
    copy_name,
    kernel_name,
    launch_shape,
)
from perfdiag.profiler.simulator.program import Collective, Copy, Kernel, ReplayGraph

__all__ = ["Launches", "projected_lines", "recorded_work", "work_lines"]

_CHANNELS = 24
"""Blocks of a collective's kernel: NCCL's channels within a host of eight devices."""
_DIRECTIONS = {"HtoD": "HOST_TO_DEVICE", "DtoH": "DEVICE_TO_HOST"}
_WARP = {"nvidia": 32, "amd": 64}
_WARPS_THAT_FIT = 64
_PRODUCTS = ("gemm", "attention", "convolution")


@dataclass(frozen=True, slots=True)
class Launches:
    """What is known of the calls that started work, by correlation.

    Attributes:
        external: id of the operator around a call, 0 for none.
        annotation: row of the annotation around it, -1 for none.
        graphs: number of the graph that it replays.
        described: what is said of its collective.
    """

    external: Mapping[int, int]
    annotation: Mapping[int, int]
    graphs: Mapping[int, int]
    described: Mapping[int, Described]

    @classmethod
    def of(
        cls,
        calls: Sequence[Called],
        external: Sequence[int],
        annotation: Sequence[int],
        described: Mapping[int, Described],
    ) -> "Launches":
        """Those of calls, with what is around each of them."""
        numbers = [call.correlation for call in calls]
        known: dict[int, int] = {}
        graphs = {
            call.correlation: known.setdefault(id(call.source), len(known) + 1)
            for call in calls
            if isinstance(call.source, ReplayGraph)
        }
        return cls(
            dict(zip(numbers, external, strict=True)),
            dict(zip(numbers, annotation, strict=True)),
            graphs,
            described,
        )


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Work that is not lost, and the place of each piece in its graph; 0 where there is none."""

    work: list[DeviceWork]
    node: list[int]


def recorded_work(work: Sequence[DeviceWork], launches: Launches, scene: Scene) -> _Recorded:
    """Work that begins while the profiler records, without the records that are lost.

    What steps before the recorded ones launched is among it, as in real traces: it has no launch.
    """
    kept = [one for one in work if one.start_ns >= scene.since_ns]
    nodes = list(_nodes(kept, launches))
    if not scene.options.dropped:
        return _Recorded(kept, nodes)
    chance = np.random.default_rng([scene.options.seed, scene.rank])
    there = chance.random(len(kept)) >= scene.options.dropped
    rows = np.flatnonzero(there).tolist()
    return _Recorded([kept[row] for row in rows], [nodes[row] for row in rows])


def _nodes(work: Sequence[DeviceWork], launches: Launches) -> Iterator[int]:
    counts: dict[int, int] = {}
    for one in work:
        if one.correlation in launches.graphs:
            counts[one.correlation] = counts.get(one.correlation, 0) + 1
            yield counts[one.correlation]
        else:
            yield 0


def work_lines(recorded: _Recorded, launches: Launches, scene: Scene) -> Iterator[str]:
    """Work, each piece with the arrow from its call."""
    work = recorded.work
    start = as_times([one.start_ns for one in work])
    us, ns = scene.times(start)
    lengths = scene.lengths(as_times([one.end_ns for one in work]) - start)
    numbers = [one.correlation for one in work]
    known = launches.external
    linked = [f'"External id":{known[one]},' if known.get(one) else "" for one in numbers]
    rated = {kind: "{rate}" in scene.dialect.work[kind].args for kind in ("copy", "fill")}
    more = ["" if type(one.source) is Kernel else _more(one, launches, rated) for one in work]
    pieces = _pieces(recorded, launches, scene)
    columns = zip(pieces, us, ns, *lengths, linked, numbers, more, strict=True)
    for (head, before, after, where), us, ns, dur_us, dur_ns, link, number, said in columns:
        said_of = f"{link}{before}{number}{after}{said}"
        yield f'{head}{us}.{ns},"dur":{dur_us}.{dur_ns},"args":{{{said_of}}}}}'
        if number in known:
            arrow = f'"id":{number},{where},"ts":{us}.{ns}'
            yield f'{{"ph":"f",{arrow},"cat":"ac2g","name":"ac2g","bp":"e"}}'


def _pieces(recorded: _Recorded, launches: Launches, scene: Scene) -> Iterator[tuple[str, ...]]:
    """What stands before the start, before and after the correlation, and the place."""
    by_stream = {
        name: scene.texts.setdefault(("work", scene.device, number), {})
        for name, number in scene.streams.items()
    }
    for one, node in zip(recorded.work, recorded.node, strict=True):
        graph = launches.graphs[one.correlation] if node else 0
        key = (id(one.source), graph, node) if node else id(one.source)
        texts = by_stream[one.stream]
        found = texts.get(key)
        if found is None:
            found = texts[key] = _piece(one, graph, node, scene)
        yield found


def _more(one: DeviceWork, launches: Launches, rated: Mapping[str, bool]) -> str:
    """What only this piece of work says: numbers of a collective, bandwidth of a copy."""
    if isinstance(one.source, Collective):
        described = launches.described.get(one.correlation)
        return f",{described.args}" if described else ""
    if isinstance(one.source, Copy) and rated[_copy_kind(one.source)]:
        return f"{one.source.bytes / max(1, one.end_ns - one.start_ns):.6f}"
    return ""


def _copy_kind(copy: Copy) -> str:
    return "fill" if copy.direction == "fill" else "copy"


def _piece(one: DeviceWork, graph: int, node: int, scene: Scene) -> tuple[str, str, str, str]:
    source = one.source
    fields: dict[str, object] = {"device": scene.device, "stream": scene.streams[one.stream]}
    if isinstance(source, Copy):
        kind, name = _copy_kind(source), copy_name(source, scene.dialect.vendor)
        fields |= _copy_fields(source, scene)
    else:
        kind, name = "graph_kernel" if node else "kernel", _name(source, scene)
        fields |= _kernel_fields(source, scene) | {"graph": graph, "node": 100 + node}
    category, args = scene.dialect.work[kind]
    before, _, after = args.partition("{correlation}")
    where = f'"pid":{scene.device},"tid":{scene.streams[one.stream]}'
    head = f'{{"ph":"X","cat":"{category}","name":{json.dumps(name)},{where},"ts":'
    return head, before.format(**fields), after.format(**fields), where


def _name(source: Kernel | Collective, scene: Scene) -> str:
    platform = scene.platform
    if isinstance(source, Collective):
        return collective_kernel(source, platform.vendor)
    return kernel_name(source, platform.vendor, platform.device, scene.options.unknown_names)


def _copy_fields(copy: Copy, scene: Scene) -> dict[str, object]:
    mtia = scene.dialect.vendor == "mtia"
    direction = _DIRECTIONS.get(copy.direction, "DEVICE_TO_DEVICE") if mtia else copy.direction
    return {"bytes": copy.bytes, "direction": direction, "rate": "", "node": copy.bytes % 499}


def _kernel_fields(source: Kernel | Collective, scene: Scene) -> dict[str, object]:
    if isinstance(source, Collective):
        grid, block = (_CHANNELS, 1, 1), (544, 1, 1)
        registers, shared = 96, 82_240
    else:
        grid, block = launch_shape(source)
        heavy = source.family in _PRODUCTS
        registers, shared = (168, 98_304) if heavy else (32, 0)
    blocks = prod(grid) / scene.platform.multiprocessors
    warps = blocks * -(-prod(block) // _WARP.get(scene.dialect.vendor, 32))
    fits = _WARPS_THAT_FIT if shared == 0 else 8
    return {
        "registers": registers,
        "shared": shared,
        "blocks": f"{blocks:.6f}",
        "warps": f"{warps:.6f}",
        "grid": ",".join(map(str, grid)),
        "block": ",".join(map(str, block)),
        "occupancy": round(100 * min(1.0, warps / _WARPS_THAT_FIT, fits / _WARPS_THAT_FIT)),
    }


def projected_lines(
    work: Sequence[DeviceWork],
    launches: Launches,
    ranges: Ranges,
    external: Sequence[int],
    scene: Scene,
) -> Iterator[str]:
    """Annotations on streams: from the first to the last work that each one launched there.

    Kineto widens them by 1 ns before and 2 ns behind.

    Args:
        work: of the device.
        launches: its calls.
        ranges: of the host.
        external: ids of these.
        scene: the rank.
    """
    spans: dict[tuple[int, str], list[int]] = {}
    for one in work:
        row = launches.annotation.get(one.correlation, -1)
        if row >= 0:
            span = spans.setdefault((row, one.stream), [one.start_ns, one.end_ns])
            span[0], span[1] = min(span[0], one.start_ns), max(span[1], one.end_ns)
    bounds: Int64s = np.array(list(spans.values()), np.int64).reshape(-1, 2)
    times, lengths = scene.times(bounds[:, 0] - 1), scene.lengths(bounds[:, 1] - bounds[:, 0] + 3)
    for (row, stream), us, ns, dur_us, dur_ns in zip(spans, *times, *lengths, strict=True):
        yield (
            f'{{"ph":"X","cat":"gpu_user_annotation","name":{json.dumps(ranges.sources[row].name)},'
            f'"pid":{scene.device},"tid":{scene.streams[stream]},"ts":{us}.{ns},'
            f'"dur":{dur_us}.{dur_ns},"args":{{"External id":{external[row]}}}}}'
        )
