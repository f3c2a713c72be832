"""TraceLens at 171dd74: the largest part of the device's timeline, and rooflines of its kernels.

Published: `TreePerf/gpu_event_analyser.py` and `perf_model.py` of AMD-AGI/TraceLens. Of device work
that is linked to a launch, computation is the union of kernels and fills without "nccl" in their
names; communication and then copies count where nothing before them runs; the rest is idle. The
time is that from the first to the last of this work. An operator is compute-bound where its FLOPs
by the peak take no less than its bytes by the bandwidth, else memory-bound; the peaks are the most
that was measured, not those of data sheets.

What lies before the first and after the last kernel is in no part. Work without a launch, which is
all of it where a trace writes other arrows, is left out, and a window without linked work has no
answer. Communication of any other name is computation.

Our mapping: the largest part; exposed communication is collective-bound, exposed copies are
memory-bound, idle is host-bound. Computation has the bound that holds most of the time of the
kernels that start in the window and have a cost, and is compute-bound where none has. The costs are
those of this project, which come from the same recorded shapes; TraceLens' own tables of operators
cover others. Nothing is told from counters.
"""

import re

import numpy as np
from numpy.typing import NDArray

from baselines.rule import Baseline, heaviest
from baselines.seen import device_spans, named
from baselines.spans import Cover, Windows, layers, rows_from, sums
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.devices import DTYPES
from perfdiag.trace_schemas.report import Label

__all__ = ["TRACELENS"]

Bools = NDArray[np.bool_]

_NCCL = re.compile(".*nccl")


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    work = facts.model.work
    linked = work.launch_id >= 0
    copies = work.kind.where("copy")
    nccl = named(work, _NCCL) & ~copies
    parts = [device_spans(work, linked & rows) for rows in (~nccl & ~copies, nccl, copies)]
    computed, exposed, copied, _ = layers(parts, windows)
    idle = Cover.of(*parts).extent(windows) - computed - exposed - copied
    bounds = _bounds(facts, linked & ~nccl & ~copies, windows)
    rows = zip(bounds, *(ns.tolist() for ns in (computed, exposed, copied, idle)), strict=True)
    return [_largest(*row) for row in rows]


def _largest(bound: Label, computed: int, exposed: int, copied: int, idle: int) -> Label:
    return heaviest(
        [
            (bound, computed),
            ("collective-bound", exposed),
            ("memory-bound", copied),
            ("host-bound", idle),
        ]
    )


def _bounds(facts: RankFacts, wanted: Bools, windows: Windows) -> list[Label]:
    """What holds most of the time of the kernels of each window."""
    work = facts.model.work
    compute, memory = _roofline(facts)
    rows = rows_from(work.ts_ns, windows)
    length = np.where(wanted, work.end_ns - work.ts_ns, 0).astype(np.float64)
    under = [sums(length * side, rows).tolist() for side in (compute, memory)]
    return ["memory-bound" if m > c else "compute-bound" for c, m in zip(*under, strict=True)]


def _roofline(facts: RankFacts) -> tuple[Bools, Bools]:
    """(work,) kernels under either roof; under none where there is no cost or no peak."""
    costs, peaks = facts.costs, facts.peaks
    if costs is None or peaks is None or peaks.memory is None:
        none = np.zeros(len(facts.model.work.id), np.bool_)
        return none, none
    found = [peaks.compute(name) if name in DTYPES else None for name in costs.dtypes]
    roof = np.array([*(np.nan if p is None else p.at("achievable") for p in found), np.nan])
    compute_s = costs.flops / roof[costs.dtype]  # the last for no type, whose code is -1
    memory_s = costs.bytes / peaks.memory.at("achievable")
    told = costs.known & (~np.isnan(compute_s) | (costs.flops == 0))
    compute = told & (np.nan_to_num(compute_s) >= memory_s)
    return compute, told & ~compute


TRACELENS = Baseline("TraceLens", "AMD-AGI/TraceLens 171dd74, TreePerf", _judge)
