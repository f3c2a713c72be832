"""XProf at a27d00a: its thresholds for parts of a step, then what bounds the device's compute.

Published, of openxla/xprof: a moment of a step belongs to the type of the highest order that holds
it (`utils/event_span.h`; names and correlation ids tell the type, `xplane_to_step_events.cc`):
device compute, copies to the host, copies within devices, waiting for input, collectives, kernel
launch, copies to the device, host compute, none. Input is the wait for it with copies to the
device. A part is "high" from 20 % of the step on for input and output, from 15 % for kernel launch,
all others and collectives (`op_stats_to_input_pipeline_analysis.cc`). Smart suggestions: bound by
compute where the matrix units are used above 70 % and the memory below 50 %, by memory the other
way round, by latency where both are below 50 %. The roofline's record of the whole program:
`bound_by` is the larger of FLOP/s by the peak and bytes/s by the bandwidth, all operators together
(`op_metrics_to_record.h`); caches, whose peaks are higher and whose rate is taken to be the
memory's, cannot win on GPUs.

It has one peak for all types; a collective is what begins with "nccl" in any case of letters; every
runtime call is kernel launch, a blocking one as well. The build that is published registers one
other suggestion only (`smart_suggestion_processor.cc`), so that rule is the strongest reading.

Our mapping: of the parts that are high, the largest decides: input, kernel launch and all others
("could be due to Python") are host-bound, output is memory-bound as copies are in this project,
collectives are collective-bound. If none is high and the device computes for half of the window:
compute- or memory-bound by the suggestion, unknown by its latency; where counters say neither, by
`bound_by`; without either compute-bound, as the tool then says no more than that the program is
not bound by input. Else unknown.
"""

import re

import numpy as np
from numpy.typing import NDArray

from baselines.counted import figure_means
from baselines.rule import Baseline, heaviest
from baselines.seen import LOADER, device_spans, host_spans, named
from baselines.spans import Spans, Windows, layers, rows_from, sums
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.devices import DevicePeaks
from perfdiag.trace_schemas.host_ranges import marks_step
from perfdiag.trace_schemas.report import Label

__all__ = ["XPROF"]

TRANSFERS_HIGH, OTHERS_HIGH = 0.2, 0.15
USED, SPARED = 0.7, 0.5

_NCCL = re.compile("nccl", re.IGNORECASE)
_LOADER = re.compile(f"{re.escape(LOADER)}|IteratorGetNext", re.IGNORECASE)
_TO_HOST, _TO_DEVICE = re.compile("Memcpy DtoH"), re.compile("Memcpy HtoD")


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    parts = layers(_types(facts), windows).astype(np.float64)
    shares = parts / np.maximum(windows[1] - windows[0], 1)
    computing = _computing(facts, windows)
    return [_label(*row) for row in zip(shares.T.tolist(), computing, strict=True)]


def _types(facts: RankFacts) -> list[Spans]:
    """Times of each type of event, the highest first."""
    work, calls, hosts = facts.model.work, facts.model.calls, facts.model.hosts
    copies = work.kind.where("copy")
    nccl = named(work, _NCCL) & ~copies
    to_host, to_device = (copies & named(work, side) for side in (_TO_HOST, _TO_DEVICE))
    device = (~copies & ~nccl, to_host, copies & ~to_host & ~to_device, nccl, to_device)
    computed, output, within, collectives, sent = (device_spans(work, rows) for rows in device)
    own = hosts.kind.where("host_op", "annotation") & ~hosts.name.map(marks_step, np.bool_)
    waits = host_spans(facts, _LOADER, "host_op", "annotation")
    launches, ran = (calls.ts_ns, calls.end_ns), (hosts.ts_ns[own], hosts.end_ns[own])
    return [computed, output, within, waits, collectives, launches, sent, ran]


def _label(shares: list[float], computing: Label) -> Label:
    computed, output, _, waits, collectives, launches, sent, _, others = shares
    fed = waits + sent
    found: list[tuple[Label, float, float]] = [
        ("host-bound", fed, TRANSFERS_HIGH),
        ("memory-bound", output, TRANSFERS_HIGH),
        ("host-bound", launches, OTHERS_HIGH),
        ("host-bound", others, OTHERS_HIGH),
        ("collective-bound", collectives, OTHERS_HIGH),
    ]
    high = [(label, share) for label, share, bound in found if share >= bound]
    if high:
        return heaviest(high)
    return computing if computed >= 0.5 else "unknown"


def _computing(facts: RankFacts, windows: Windows) -> list[Label]:
    """What bounds the device's compute in each window."""
    matrix, memory = (figure_means(facts, m, windows) for m in ("tensor_active", "dram_active"))
    bounds = _bound_by(facts, windows)
    return [_suggestion(*row) for row in zip(matrix, memory, bounds, strict=True)]


def _suggestion(matrix: float, memory: float, bound_by: Label) -> Label:
    """By counters; nan, where there is none, is neither above nor below a bound."""
    if matrix > USED and memory < SPARED:
        return "compute-bound"
    if memory > USED and matrix < SPARED:
        return "memory-bound"
    return "unknown" if matrix < SPARED and memory < SPARED else bound_by


def _bound_by(facts: RankFacts, windows: Windows) -> list[Label]:
    """By all FLOPs and bytes of the kernels that start in each window."""
    costs, peaks = facts.costs, facts.peaks
    if costs is None or peaks is None or peaks.memory is None:
        return ["compute-bound"] * len(windows[0])
    rows = rows_from(facts.model.work.ts_ns, windows)
    flops, moved = (
        sums(np.where(costs.known, side, 0.0), rows) for side in (costs.flops, costs.bytes)
    )
    memory_s: NDArray[np.float64] = moved / peaks.memory.datasheet
    return ["memory-bound" if m else "compute-bound" for m in memory_s > flops / _peak(peaks)]


def _peak(peaks: DevicePeaks) -> float:
    """The one peak that XProf computes for a GPU: that of 16-bit products."""
    found = [peaks.compute("bf16"), peaks.compute("fp16")]
    return max((peak.datasheet for peak in found if peak is not None), default=np.inf)


XPROF = Baseline("XProf thresholds", "openxla/xprof a27d00a, xprof/convert", _judge)
