"""Traces of operations of pipeline- and data-parallel training, to be replayed.

The model is a published one, written anew: Lin et al., "Understanding Stragglers in Large Model
Training Using What-if Analysis" (OSDI 2025, arXiv 2505.05713), with its program and data in
github.com/ByteDance-Seed/StragglerAnalysis at 8efcd7f3 (Apache-2.0). What computes takes its time;
what talks to others takes what is left of it after the last of them launched. Hosts are not
recorded, hence not in the model.

What waits for what is the same in all steps, so that a step is a scenario of one graph.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from straggler_schedule import LIKE_TRANSFER, PLACE, STREAM, TURN, build_graph, meetings

from perfdiag.classifiers.graph import Graph
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Job", "read_job"]


@dataclass(frozen=True)
class Job:
    """The operations of a job: (n) in each of its steps.

    Attributes:
        ops: (n) dp_rank, stage, optype, seq_id; in the order of the graph's first n nodes.
        steps: (steps,) their numbers.
        recorded_ns: (steps,) how long each took.
        length_ns: (steps, n) how long operations compute, or transfer after the last launch.
        graph: the operations, and then a node for every meeting at which they wait for each other.
    """

    ops: pd.DataFrame
    steps: Int64s
    recorded_ns: Int64s
    length_ns: Int64s
    graph: Graph

    @cached_property
    def ideal_ns(self) -> Int64s:
        """(n,) What is usual for its type: the mean of what computes, the median of transfers."""
        ideal = np.empty(len(self.ops), np.int64)
        for optype, rows in self.ops.groupby("optype").indices.items():
            usual = np.median if optype in LIKE_TRANSFER else np.mean
            ideal[rows] = round(float(usual(self.length_ns[:, rows])))
        return ideal

    def replay(self, count: int, lengths: Iterable[Int64s]) -> NDArray[np.float64]:
        """How long the steps take, (count, steps) in ns.

        Args:
            count: how many scenarios.
            lengths: of each, (steps, n) or (n,): how long the operations take in it.
        """
        nodes = np.zeros((count, len(self.steps), self.graph.nodes), np.int64)
        for scenario, length in zip(nodes, lengths, strict=True):
            scenario[:, : len(self.ops)] = length
        ends = self.graph.replay(nodes.reshape(-1, self.graph.nodes)).end_ns
        step_ns: NDArray[np.float64] = ends.max(axis=1).reshape(nodes.shape[:2]).astype(np.float64)
        return step_ns


def read_job(path: Path) -> Job:
    """Read a parquet file of operations.

    Raises:
        ValueError: a step or a rank lacks operations that another has, or the model does not cover
            the schedule (interleaved stages; gradients reduced while others are made).
    """
    trace = _read(path)
    ops = _operations(trace)
    steps, start, end = _columns(trace, ops)
    meeting, communicator = meetings(ops)
    # Clocks that differ a little let some end before the last has launched.
    length = np.maximum(end - _last_launches(start, meeting), 0)
    recorded = end.max(axis=1) - start.min(axis=1)
    return Job(ops, steps, recorded, length, build_graph(ops, meeting, communicator))


def _read(path: Path) -> pd.DataFrame:
    trace = pd.read_parquet(path)
    trace["optype"] = trace["optype"].astype(str)
    if not set(trace["optype"].unique()) <= set(STREAM) or trace["mc"].max() > 0:
        msg = f"{path} has operations of a schedule that the model does not cover"
        raise ValueError(msg)
    seconds = trace[["start_ts", "duration"]].to_numpy(np.float64)
    trace[["start_ns", "duration_ns"]] = np.rint(seconds * 1e9).astype(np.int64)
    return trace


def _operations(trace: pd.DataFrame) -> pd.DataFrame:
    """The operations of a step, stream by stream in the order of their launches.

    The first step of the first replica gives the order for all, as in the published method.
    """
    first = trace[(trace["step"] == trace["step"].min()) & (trace["dp_rank"] == 0)]
    optype = first["optype"]
    first = first.assign(stream=optype.map(STREAM), turn=optype.map(TURN).fillna(0))
    pipeline = first.sort_values(["stage", "stream", "turn", "start_ns", "seq_id"])
    replicas = pd.DataFrame({"dp_rank": np.arange(trace["dp_rank"].max() + 1)})
    return replicas.merge(pipeline[[*PLACE, "stream"]], how="cross")


def _columns(trace: pd.DataFrame, ops: pd.DataFrame) -> tuple[Int64s, Int64s, Int64s]:
    """Steps, and (steps, n) starts and ends."""
    numbered = ops[["dp_rank", *PLACE]].assign(node=np.arange(len(ops)))
    node = trace.merge(numbered, on=["dp_rank", *PLACE], how="left")["node"].fillna(-1)
    steps, row = np.unique(trace["step"].to_numpy(np.int64), return_inverse=True)
    order = np.lexsort((node, row))
    if not np.array_equal(node.to_numpy()[order], np.tile(np.arange(len(ops)), len(steps))):
        msg = "the steps and ranks do not have the same operations"
        raise ValueError(msg)
    times = trace[["start_ns", "duration_ns"]].to_numpy(np.int64)[order]
    start, duration = times.reshape(len(steps), len(ops), 2).transpose(2, 0, 1)
    return steps, start, start + duration


def _last_launches(start: Int64s, meeting: Int64s) -> Int64s:
    """(steps, n) when the last operation of its meeting launched."""
    order = np.argsort(meeting, kind="stable")[np.count_nonzero(meeting < 0) :]
    first = np.flatnonzero(np.diff(meeting[order], prepend=-1))
    last = np.maximum.reduceat(start[:, order], first, axis=1)
    return np.where(meeting < 0, start, last[:, meeting])
