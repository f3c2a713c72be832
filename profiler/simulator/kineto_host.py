"""Ranges of the host as Kineto writes them: operators, annotations, Python frames."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np

from perfdiag.profiler.simulator.kineto_collectives import Described
from perfdiag.profiler.simulator.kineto_ranges import DESCRIBES, Ranges, parents
from perfdiag.profiler.simulator.kineto_scene import Int64s, Scene
from perfdiag.profiler.simulator.program import Range, Tensor

__all__ = ["external_ids", "frame_lines", "host_lines"]

_MODULE = re.compile(r"nn\.Module: .*_(\d+)$")


def external_ids(ranges: Ranges) -> list[int]:
    """By row the id of an operator or annotation by which work is linked to it; 0 for frames."""
    external = [0] * len(ranges.sources)
    for number, row in enumerate(ranges.rows("op", "annotation").tolist()):
        external[row] = number + 1
    return external


def host_lines(ranges: Ranges, described: Mapping[int, Described], scene: Scene) -> Iterator[str]:
    """Operators and annotations, with arrows from forward to backward ones.

    Args:
        ranges: of the host.
        described: collectives by the row of the operator that describes them.
        scene: the rank.
    """
    rows = ranges.rows("op", "annotation")
    sequence = _sequence(ranges)
    said = {row: f'"Sequence number":{number},' for row, number in sequence.items()}
    said |= {row: f"{one.args},{said.get(row, '')}" for row, one in described.items()}
    times = scene.times(ranges.start_ns[rows])
    lengths = scene.lengths((ranges.end_ns - ranges.start_ns)[rows])
    mine = [said.get(row, "") for row in rows.tolist()]
    pieces = _pieces(ranges, rows, scene)
    columns = zip(pieces, mine, *times, *lengths, strict=True)
    for number, ((head, inputs), more, us, ns, dur_us, dur_ns) in enumerate(columns, 1):
        yield (
            f'{head}{us}.{ns},"dur":{dur_us}.{dur_ns},"args":{{"External id":{number},'
            f'"Record function id":0,{more}{inputs}"Ev Idx":{number}}}}}'
        )
    yield from _flows(ranges, sequence, scene)


def _sequence(ranges: Ranges) -> dict[int, int]:
    """Autograd's numbers by row, which count on from step to step."""
    own = {row: one.sequence for row, one in enumerate(ranges.sources) if one.sequence is not None}
    span = max(own.values(), default=0) + 1
    return {row: number + span * ranges.step[row] for row, number in own.items()}


def _pieces(ranges: Ranges, rows: Int64s, scene: Scene) -> list[tuple[str, ...]]:
    """What stands before the start of a range, and what is said of its inputs."""
    found: list[tuple[str, ...]] = []
    tids = ranges.tid[rows]
    for tid in np.unique(tids).tolist():
        mine = [ranges.sources[row] for row in rows[tids == tid].tolist()]
        texts = scene.texts.setdefault(("range", scene.device, tid), {})
        unique = {id(source): source for source in mine}
        texts |= {key: _piece(unique[key], tid, scene) for key in unique.keys() - texts.keys()}
        found += [texts[id(source)] for source in mine]
    return found


def _piece(source: Range, tid: int, scene: Scene) -> tuple[str, str]:
    category = "cpu_op" if source.kind == "op" else "user_annotation"
    said = ""
    if source.kind == "op":
        if source.sequence is not None:
            said = f'"Fwd thread id":{int(_is_backward(source.name))},'
        if scene.options.shapes and source.name != DESCRIBES:
            said += _inputs(source.inputs)
    name = json.dumps(scene.dialect.operator(source.name))
    head = f'{{"ph":"X","cat":"{category}","name":{name},"pid":{scene.pid},"tid":{tid},"ts":'
    return head, said


def _is_backward(name: str) -> bool:
    return "Backward" in name


@lru_cache(maxsize=1 << 14)
def _inputs(inputs: tuple[Tensor, ...]) -> str:
    if not inputs:
        return ""
    values = {
        "Concrete Inputs": [one.value for one in inputs],
        "Input type": [one.dtype for one in inputs],
        "Input Strides": [_strides(one.dims) for one in inputs],
        "Input Dims": [list(one.dims) for one in inputs],
    }
    text = json.dumps(values, separators=(",", ":"))
    return f"{text[1:-1]},"


def _strides(dims: tuple[int, ...]) -> list[int]:
    """Of a tensor without gaps."""
    strides, step = [], 1
    for size in reversed(dims):
        strides.append(step)
        step *= max(1, size)
    return strides[::-1]


def _flows(ranges: Ranges, sequence: Mapping[int, int], scene: Scene) -> Iterator[str]:
    """From forward operators to backward ones of the same number: from and to the innermost."""
    forward: dict[int, int] = {}
    backward: dict[int, int] = {}
    for row, number in sequence.items():
        (backward if _is_backward(ranges.sources[row].name) else forward)[number] = row
    pairs = [(forward[number], row) for number, row in backward.items() if number in forward]
    rows = np.array(pairs, np.int64).reshape(-1)
    us, ns = scene.times(ranges.start_ns[rows])
    ends = [("s", ""), ("f", ',"bp":"e"')] * len(pairs)
    columns = zip(ends, us, ns, ranges.tid[rows].tolist(), strict=True)
    for row, ((phase, more), whole, rest, tid) in enumerate(columns):
        yield (
            f'{{"ph":"{phase}","id":{row // 2 + 1},"pid":{scene.pid},"tid":{tid},'
            f'"ts":{whole}.{rest},"cat":"fwdbwd","name":"fwdbwd"{more}}}'
        )


def frame_lines(ranges: Ranges, scene: Scene) -> Iterator[str]:
    """Python frames, with the frame that called each."""
    every = ranges.rows("frame")
    first = 1
    for tid in dict.fromkeys(ranges.tid[every].tolist()):
        rows = every[ranges.tid[every] == tid]
        starts, ends = ranges.start_ns[rows], ranges.end_ns[rows]
        callers = parents(starts.tolist(), ends.tolist())
        columns = zip(rows.tolist(), callers, *scene.times(starts), strict=True)
        lengths = zip(*scene.lengths(ends - starts), strict=True)
        for number, ((row, caller, us, ns), length) in enumerate(
            zip(columns, lengths, strict=True)
        ):
            name = ranges.sources[row].name
            module = _MODULE.match(name)
            of_module = f'"Python module id":{module[1]},' if module else ""
            parent = first + caller if caller >= 0 else "null"
            yield (
                f'{{"ph":"X","cat":"python_function","name":{json.dumps(name)},'
                f'"pid":{scene.pid},"tid":{tid},"ts":{us}.{ns},"dur":{length[0]}.{length[1]},'
                f'"args":{{"Python parent id":{parent},"Python id":{first + number},'
                f'{of_module}"Ev Idx":{first + number}}}}}'
            )
        first += len(rows)
