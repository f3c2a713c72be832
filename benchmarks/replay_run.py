"""What replay.py runs: one job analysed, or one generated graph timed; seconds by stage.

Usage: python replay_run.py trace TRACE FIGURES.jsonl
       python replay_run.py graph NODES FIGURES.jsonl

A line is added to the file. Of a trace: the report's own figures on its replay, and seconds for
the graph (`build`), for timing it unchanged (`unchanged`), for what changes save (`changed`), and
for the whole of `analyze`. Of a graph: seconds to find the order of its nodes (`schedule`), to time
them once (`replay`), and with 16 scenarios at once (`replay_16`).
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from stage_clocks import Clocks, timed

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.dependencies import build_program
from perfdiag.classifiers.draft import Draft, NodeKind
from perfdiag.classifiers.graph import NEVER, Graph
from perfdiag.classifiers.replay import disagreement, replay_job, replay_row
from perfdiag.classifiers.savings import replay_savings
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Report

__all__ = ["STEP_NODES", "make_graph", "of_graph", "of_trace"]

STAGES: dict[str, tuple[Callable[..., Any], ...]] = {
    "build": (build_program,),
    "unchanged": (replay_job,),
    "changed": (replay_savings, disagreement, replay_row),
}

OTHERS = "others"

SCENARIOS = 16


def of_trace(path: str) -> dict[str, Any]:
    """Analyse a trace with clocks around what has to do with its replay."""
    clocks = Clocks()
    for stage, functions in STAGES.items():
        for function in functions:
            _put_clock(clocks, stage, function)
    with clocks.stage(OTHERS):
        report = analyze([path], Options())
    seconds = {stage: clocks.seconds[stage] for stage in (*STAGES, OTHERS)}
    return _about(report) | seconds | {"whole": sum(seconds.values())}


def _put_clock(clocks: Clocks, stage: str, function: Callable[..., Any]) -> None:
    """Put a clock around a function, wherever modules hold it."""
    clocked = timed(clocks, stage, function)
    for module in [m for name, m in sys.modules.items() if name.startswith("perfdiag.")]:
        for name in [name for name, value in vars(module).items() if value is function]:
            setattr(module, name, clocked)


def _about(report: Report) -> dict[str, Any]:
    found, error = report.replay, report.replay.error
    return {
        "steps": sum(len(rank.steps) for rank in report.ranks),
        "ranks": len(report.ranks),
        "nodes": found.nodes,
        "edges": found.edges,
        "inferred": found.inferred,
        "error": None if error is None else [error.median, error.p90, error.max],
        "believed": found.believed,
        "why": found.why,
    }


RANKS, KERNELS, COLLECTIVES = 8, 50, 5
DRAINED = 5
"""Steps after which the host waits for the device."""

LAG_NS = 6_000

STEP_NODES = RANKS * (6 * KERNELS + 2 * COLLECTIVES) + COLLECTIVES
"""Nodes of a step: two threads that launch on one stream, and collectives on another."""


def make_graph(nodes: int) -> Graph:
    """A job of 8 ranks whose two threads hand over to each other, and that reduce as they go.

    Args:
        nodes: about how many; it is as many whole steps.
    """
    steps = np.arange(max(1, round(nodes / STEP_NODES)))
    draft, chance = Draft(), np.random.default_rng(nodes)
    arrivals, transfers = [], []
    for rank in range(RANKS):
        arrival = _add_rank(draft, rank, steps, chance)
        arrivals.append(arrival)
        transfers.append(arrival + 1)
    meetings = len(steps) * COLLECTIVES
    none = np.zeros(meetings, np.int64)
    hub = draft.add_lane(-1, NodeKind.MEETING, (none, none)) + np.arange(meetings)
    for arrival, transfer in zip(arrivals, transfers, strict=True):
        draft.add_edges(arrival, hub)
        draft.add_edges(hub, transfer)
    return draft.finish()[0]


def _add_rank(draft: Draft, rank: int, steps: Int64s, chance: np.random.Generator) -> Int64s:
    """Add two threads and two streams; (meetings,) nodes that arrive at collectives."""

    def lane(each: int, low_ns: int, high_ns: int, kind: NodeKind, begin: int = NEVER) -> Int64s:
        """A lane of so many nodes a step: (steps, each) their numbers."""
        length = chance.integers(low_ns, high_ns, len(steps) * each)
        release = np.full(len(length), NEVER)
        release[0] = begin
        none = np.zeros(len(length), np.int64)
        first = draft.add_lane(rank, kind, (none, none), length_ns=length, release_ns=release)
        return first + np.arange(len(length)).reshape(-1, each)

    threads = [lane(2 * KERNELS, 1_000, 5_000, NodeKind.HOST, begin) for begin in (0, NEVER)]
    stream = lane(2 * KERNELS, 2_000, 20_000, NodeKind.WORK)
    comm = lane(2 * COLLECTIVES, 2_000, 50_000, NodeKind.WORK)
    for half, thread in enumerate(threads):
        kernels = stream[:, half * KERNELS : (half + 1) * KERNELS]
        draft.add_edges(thread[:, ::2].ravel(), kernels.ravel(), LAG_NS, from_start=True)
    draft.add_edges(threads[0][:, -1], threads[1][:, 0])
    draft.add_edges(threads[1][:-1, -1], threads[0][1:, 0])
    drained = steps[DRAINED::DRAINED]
    draft.add_edges(stream[drained - 1, -1], threads[0][drained, 0])
    after = np.linspace(0, 2 * KERNELS, COLLECTIVES + 1, dtype=np.int64)[1:] - 1
    draft.add_edges(stream[:, after].ravel(), comm[:, ::2].ravel())
    draft.add_edges(comm[:-1, -1], stream[1:, 0])
    return comm[:, ::2].ravel()


def of_graph(nodes: int) -> dict[str, Any]:
    """Time a generated graph."""
    graph = make_graph(nodes)
    times = [time.perf_counter()]
    stretches = len(graph.stretches)
    times.append(time.perf_counter())
    span_ns = int(graph.replay().end_ns.max())
    times.append(time.perf_counter())
    graph.replay(np.broadcast_to(graph.length_ns, (SCENARIOS, graph.nodes)))
    times.append(time.perf_counter())
    seconds = dict(zip(("schedule", "replay", "replay_16"), np.diff(times).tolist(), strict=True))
    sizes = {"nodes": graph.nodes, "edges": len(graph.source), "stretches": stretches}
    return sizes | {"span_ns": span_ns} | seconds


def main(what: str, of: str, output: str) -> None:
    """Add a line of figures to a file."""
    figures = of_trace(of) if what == "trace" else of_graph(int(of))
    with Path(output).open("a", encoding="utf-8") as file:
        file.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
