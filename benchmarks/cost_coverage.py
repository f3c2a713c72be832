"""How much kernel time has a cost model on real traces, and whether FLOPs agree with TraceLens'.

Usage: python benchmarks/cost_coverage.py TRACE... [--reference FOLDER] [--uncovered 12]

Collectives are no kernels here. Of the rest it gives the time whose launch lies in an operator with
recorded inputs ("with shapes"), the part of that with a cost, and names the rest. FOLDER holds the
tables that TraceLens published for the same traces, in a folder named after each trace
(AMD-AGI/TraceLens, tests/traces/**/*_perf_report_csvs).
"""

import argparse
import ast
import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from measure import table

from perfdiag.classifiers.costs import (
    Cost,
    Launch,
    Recorded,
    Shapes,
    attribute,
    cost_of,
    counterparts,
    parse_shapes,
)
from perfdiag.trace_schemas.kernels import classify_kernel

Event = Mapping[str, Any]

WITHIN = 0.01
"""Of TraceLens' FLOPs: what counts as the same."""

TARGET = 0.95
"""Of the kernel time with shapes: what is to be covered."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Kernels of a trace, and the operators around their launches."""

    launches: list[Launch]
    op: np.ndarray[Any, np.dtype[np.int64]]
    names: list[str]
    parent: np.ndarray[Any, np.dtype[np.int64]]
    shapes: dict[int, Shapes]


def read(path: Path) -> Trace:
    """Read a Kineto trace."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    content = msgspec.json.decode(raw)
    events = content["traceEvents"] if isinstance(content, dict) else content
    ops = [event for event in events if event.get("cat") == "cpu_op" and event.get("ph") == "X"]
    kernels = [event for event in events if event.get("cat") == "kernel" and "dur" in event]
    launches = [_launch(event) for event in kernels]
    kept = [at for at, launch in enumerate(launches) if launch is not None]
    op, parent = _nested(events, ops, [kernels[at] for at in kept])
    recorded = [found for row, event in enumerate(ops) if (found := _recorded(row, event))]
    shapes = {found.row: found.shapes for found in recorded} | counterparts(recorded)
    found_launches = [launch for launch in launches if launch is not None]
    return Trace(found_launches, op, [str(event["name"]) for event in ops], parent, shapes)


def _launch(event: Event) -> Launch | None:
    kernel = classify_kernel(event["name"])
    if kernel.kind.name != "KERNEL":
        return None
    grid = tuple(event["args"].get("grid", ()))
    return Launch(event["name"], kernel.family, _ns(event["dur"]), grid)


def _recorded(row: int, event: Event) -> Recorded | None:
    given = event.get("args", {})
    if "Input Dims" not in given:
        return None
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    shapes = parse_shapes(event["name"], *(given.get(key) for key in keys))
    return Recorded(row, shapes, int(given.get("Sequence number", -1)), _ns(event["ts"]))


def _ns(microseconds: Any) -> int:
    return round(float(microseconds) * 1000)


def _nested(
    events: Sequence[Event], ops: Sequence[Event], kernels: Sequence[Event]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(kernels,) innermost operator around each launch, (operators,) around each one; or -1."""
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if "_runtime" in str(event.get("cat")) or "_driver" in str(event.get("cat"))
        if "correlation" in event.get("args", {})
    }
    threads: defaultdict[Any, list[tuple[int, int, bool, int]]] = defaultdict(list)
    for row, event in enumerate(ops):
        threads[event["tid"]].append((_ns(event["ts"]), -_ns(event["dur"]), False, row))
    for row, kernel in enumerate(kernels):
        call = calls.get(kernel["args"].get("correlation"))
        if call is not None:
            threads[call["tid"]].append((_ns(call["ts"]), 0, True, row))
    op, parent = np.full(len(kernels), -1, np.int64), np.full(len(ops), -1, np.int64)
    for rows in threads.values():
        _walk(sorted(rows), op, parent)
    return op, parent


def _walk(
    rows: list[tuple[int, int, bool, int]], op: np.ndarray[Any, Any], parent: np.ndarray[Any, Any]
) -> None:
    around: list[tuple[int, int]] = []
    for start, negative, is_kernel, row in rows:
        # Times of old exports are whole microseconds: neighbours touch, children stick out.
        while around and around[-1][0] < start + (not is_kernel):
            around.pop()
        (op if is_kernel else parent)[row] = around[-1][1] if around else -1
        if not is_kernel:
            around.append((start - negative, row))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Kernel time in ns: all, with shapes, of that with a cost; and the rest by operator."""

    all_ns: int
    shaped_ns: int
    covered_ns: int
    uncovered: dict[str, int]


def coverage(trace: Trace, costs: Sequence[Cost | None]) -> Coverage:
    """Sum up what is covered."""
    whole = shaped = covered = 0
    uncovered: defaultdict[str, int] = defaultdict(int)
    for launch, op, cost in zip(trace.launches, trace.op.tolist(), costs, strict=True):
        whole += launch.duration_ns
        chain = list(_chain(trace, op))
        if not any(row in trace.shapes for row in chain):
            continue
        shaped += launch.duration_ns
        if cost is not None:
            covered += launch.duration_ns
        else:
            names = " < ".join(trace.names[row] for row in chain[:2])
            uncovered[f"{names}  [{launch.family}: {launch.name[:60]}]"] += launch.duration_ns
    return Coverage(whole, shaped, covered, dict(uncovered))


def _chain(trace: Trace, op: int) -> Iterator[int]:
    while op >= 0:
        yield op
        op = int(trace.parent[op])


TABLES = ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "SDPA_bwd")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rows of TraceLens' tables: how many agree, and how the others differ."""

    rows: int
    agree: int
    differences: list[tuple[str, str, str]]


def compare(folder: Path) -> Agreement:
    """Compare FLOPs of matrix products, convolutions and attention, row by row."""
    rows = [row for name in TABLES for row in _rows(folder / f"{name}.csv")]
    differences = []
    for row in rows:
        theirs, shapes = float(row["GFLOPS_first"]) * 1e9, _shapes(row)
        ours = cost_of(shapes)
        if ours is None or abs(ours.flops - theirs) > WITHIN * theirs:
            said = f"{ours.flops:.4g}" if ours else "no model"
            differences.append((f"{shapes.name} {shapes.dims[:3]}", f"{theirs:.4g}", said))
    return Agreement(len(rows), len(rows) - len(differences), differences)


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _shapes(row: Mapping[str, str]) -> Shapes:
    keys = ("Input Dims_first", "Input type_first", "Input Strides_first", "Concrete Inputs_first")
    return parse_shapes(row["name"], *(ast.literal_eval(row[key]) for key in keys))


def main() -> int:
    """Print coverage and agreement; 1 where a trace misses the target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="+", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--uncovered", type=int, default=12)
    options = parser.parse_args()
    found = {path.name.partition(".json")[0]: covered(path) for path in options.trace}
    print(_shares(found))
    for name, share in found.items():
        print(_missing(name, share, options.uncovered), end="")
    if options.reference:
        _print_agreement(options.reference, list(found))
    return int(any(share.covered_ns < TARGET * share.shaped_ns for share in found.values()))


def covered(path: Path) -> Coverage:
    """Read a trace and sum up what is covered."""
    trace = read(path)
    costs, _ = attribute(trace.launches, trace.op, trace.parent, trace.shapes)
    return coverage(trace, costs)


def _shares(found: Mapping[str, Coverage]) -> str:
    rows = [
        (
            name,
            f"{share.all_ns / 1e6:.3f}",
            _share(share.shaped_ns, share.all_ns),
            _share(share.covered_ns, share.shaped_ns),
        )
        for name, share in found.items()
    ]
    return table(("trace", "kernel time (ms)", "with shapes", "of that covered"), rows)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else ""


def _missing(name: str, share: Coverage, most: int) -> str:
    worst = sorted(share.uncovered.items(), key=lambda item: -item[1])[:most]
    lines = [f"  {_share(time, share.shaped_ns):>7} {what}\n" for what, time in worst]
    return "".join([f"\n{name}: without a cost\n", *lines]) if lines else ""


def _print_agreement(reference: Path, names: Sequence[str]) -> None:
    for name in names:
        agreement = compare(reference / name)
        if agreement.rows:
            print(f"\n{name}: {agreement.agree} of {agreement.rows} rows within {WITHIN:.0%}")
        for what, theirs, ours in agreement.differences:
            print(f"  {what}: TraceLens {theirs}, ours {ours}")


if __name__ == "__main__":
    sys.exit(main())
