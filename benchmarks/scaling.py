"""How time and memory of `perfdiag analyze` grow with a trace: a generated one, 1x, 4x and 16x.

Usage: python benchmarks/scaling.py [--rounds 5] [--base-steps 20]

A step is always the same; a larger trace has more of them. Linear growth shows as the same cost
of an event from 1x to 4x as from 4x to 16x.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression
from typing import Any

from measure import Figures, bytecode, interleave, load, machine, summarise, table

SCALES = (1, 4, 16)
ITEMS = 200
"""Operators in a step; each is five events: op, launch, kernel, and both ends of their arrow."""

ITEM_US, STEP_US = 40, 10_000
HOST, STREAM = 4242, 7

Event = dict[str, Any]


def main() -> None:
    """Measure the three sizes and print how they relate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--base-steps", type=int, default=20, help="steps of the smallest trace")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        traces = {scale: Path(folder) / f"{scale}x.json" for scale in SCALES}
        events = {s: write_trace(path, s * options.base_steps) for s, path in traces.items()}
        figures = _measure(traces, options.rounds)
    counts = [events[scale] for scale in SCALES]
    print(f"{machine()}; {load()}\n\n{_sizes(counts, figures)}\n\n{_growth(counts, figures)}")


def write_trace(path: Path, steps: int) -> int:
    """Write a Kineto trace of that many steps, event by event; how many events it has."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"schemaVersion": 1, "deviceProperties": [_DEVICE]})[:-1])
        file.write(', "traceEvents": [\n')
        for count, event in enumerate(_events(steps), 1):
            file.write((",\n" if count > 1 else "") + json.dumps(event))
        file.write("\n]}\n")
    return count


_DEVICE = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_000_000_000,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
}


def _events(steps: int) -> Iterator[Event]:
    for step in range(steps):
        start = step * STEP_US
        name = f"ProfilerStep#{step}"
        yield _slice("user_annotation", name, HOST, HOST, start, STEP_US - 10, {})
        for item in range(ITEMS):
            yield from _item(start + 1000 + item * ITEM_US, step * ITEMS + item)


def _item(ts: int, number: int) -> Iterator[Event]:
    """A host op, its launch and its kernel, with the arrow between them."""
    shapes = {"Input Dims": [[64 * (number % 30 + 1), 1024], [1024, 1024]], "External id": number}
    yield _slice("cpu_op", "aten::mm", HOST, HOST, ts, 20, shapes)
    linked = {"correlation": number, "External id": number}
    yield _slice("cuda_runtime", "cudaLaunchKernel", HOST, HOST, ts + 5, 8, linked)
    kernel = f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize{number % 30}x128x64"
    placed = linked | {"device": 0, "stream": STREAM, "grid": [132, 1, 1], "block": [128, 1, 1]}
    yield _slice("kernel", kernel, 0, STREAM, ts + 20, 35, placed)
    arrow = {"cat": "ac2g", "name": "ac2g", "id": number}
    yield arrow | {"ph": "s", "pid": HOST, "tid": HOST, "ts": ts + 5}
    yield arrow | {"ph": "f", "bp": "e", "pid": 0, "tid": STREAM, "ts": ts + 20}


def _slice(category: str, name: str, pid: int, tid: int, ts: int, dur: int, args: Event) -> Event:
    event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return event | {"args": args}


def _measure(traces: Mapping[int, Path], rounds: int) -> list[Figures]:
    program = str(Path(sys.executable).with_name("perfdiag"))
    commands = {
        f"{scale}x": (program, "analyze", str(path), "--format", "json")
        for scale, path in traces.items()
    }
    with bytecode() as environment:
        samples = interleave(commands, rounds, environment)
    return [summarise(found) for found in samples.values()]


def _sizes(counts: Sequence[int], figures: Sequence[Figures]) -> str:
    rows = [
        (
            f"{scale}x",
            f"{count:,}",
            f"{f.wall_s:.2f}",
            f"{f.fastest_s:.2f} - {f.slowest_s:.2f}",
            f"{f.cpu_s:.2f}",
            f"{f.peak_bytes / 1e6:.0f}",
        )
        for scale, count, f in zip(SCALES, counts, figures, strict=True)
    ]
    return table(("trace", "events", "wall s", "fastest - slowest", "CPU s", "peak MB"), rows)


def _growth(counts: Sequence[int], figures: Sequence[Figures]) -> str:
    """What an event costs, per quantity: between the sizes, and fitted over all of them."""
    rows = [
        _growth_row("wall, us", counts, [f.wall_s * 1e6 for f in figures]),
        _growth_row("wall of the fastest, us", counts, [f.fastest_s * 1e6 for f in figures]),
        _growth_row("CPU, us", counts, [f.cpu_s * 1e6 for f in figures]),
        _growth_row("peak memory, bytes", counts, [f.peak_bytes for f in figures]),
    ]
    between = [f"{a}x to {b}x" for a, b in pairwise(SCALES)]
    return table(("per event", *between, "later / earlier", "fitted slope", "fixed cost"), rows)


def _growth_row(what: str, counts: Sequence[int], costs: Sequence[float]) -> tuple[str, ...]:
    points = list(zip(counts, costs, strict=True))
    marginal = [(c2 - c1) / (n2 - n1) for (n1, c1), (n2, c2) in pairwise(points)]
    slope, intercept = linear_regression(counts, costs)
    ratio = marginal[-1] / marginal[0] if marginal[0] else float("nan")
    shown = [f"{value:.2f}" for value in (*marginal, ratio, slope)]
    return what, *shown, f"{intercept:,.0f}"


if __name__ == "__main__":
    main()
