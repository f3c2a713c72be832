"""The report: what `perfdiag analyze --format json` prints, as types.

`report.schema.json` beside this file is generated from them (`python -m
perfdiag.trace_schemas.report`). Times are integer nanoseconds on the rank's clock, 0 at the
start of its trace. Every `budget_ns` sums exactly to the window that it splits.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

__all__ = [
    "LABELS",
    "LAYERS",
    "LEAF_LABEL",
    "LEAVES",
    "SCHEMA_ID",
    "SIZE_CLASSES",
    "STATUSES",
    "Basis",
    "Collective",
    "CounterFigure",
    "CounterFile",
    "CounterRegion",
    "CounterTimeline",
    "Device",
    "EngineInfo",
    "Evidence",
    "Finding",
    "Fix",
    "Hotspot",
    "Input",
    "Job",
    "Kernel",
    "KernelBound",
    "Label",
    "Layer",
    "NoticeRow",
    "Place",
    "Rank",
    "Region",
    "Replay",
    "ReplayError",
    "Report",
    "Roof",
    "Roofline",
    "SizeClass",
    "Status",
    "Step",
    "StepTime",
    "Thresholds",
    "Totals",
    "Wait",
    "schema",
]

SCHEMA_ID = "perfdiag.report/1"

Label = Literal["compute-bound", "memory-bound", "collective-bound", "host-bound", "unknown"]
LABELS: tuple[Label, ...] = (
    "compute-bound",
    "memory-bound",
    "collective-bound",
    "host-bound",
    "unknown",
)

Layer = Literal[
    "input-pipeline",
    "framework",
    "compiler",
    "kernels",
    "runtime",
    "collectives",
    "parallelism",
    "hardware",
]
LAYERS: tuple[Layer, ...] = (
    "input-pipeline",
    "framework",
    "compiler",
    "kernels",
    "runtime",
    "collectives",
    "parallelism",
    "hardware",
)

SizeClass = Literal["<64 kB", "64 kB-1 MB", "1-16 MB", "16-256 MB", ">=256 MB", "unknown"]
SIZE_CLASSES: tuple[SizeClass, ...] = (
    "<64 kB",
    "64 kB-1 MB",
    "1-16 MB",
    "16-256 MB",
    ">=256 MB",
    "unknown",
)
"""Bytes of one collective in decimal units, a lower bound in and an upper one out."""

Status = Literal["fires", "minor", "quiet", "not applicable", "failed"]
STATUSES: tuple[Status, ...] = ("fires", "minor", "quiet", "not applicable", "failed")

LEAF_LABEL: dict[str, Label | None] = {
    "compute_kernel": "compute-bound",
    "memory_kernel": "memory-bound",
    "copy": "memory-bound",
    "collective_transfer": "collective-bound",
    "collective_wait": "collective-bound",
    "collective_unsplit": "collective-bound",
    "input": "host-bound",
    "launch": "host-bound",
    "sync": "host-bound",
    "host_other": "host-bound",
    "dependency": None,
    "profiler": None,
    "kernel_unclassified": None,
    "unclassified": None,
}
"""The leaves of the time budget, and the label that each speaks for."""

LEAVES: tuple[str, ...] = tuple(LEAF_LABEL)

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Nanoseconds = int


class _Struct(msgspec.Struct, frozen=True, kw_only=True):
    pass


class EngineInfo(_Struct, frozen=True, kw_only=True):
    """The trace processor that answered the queries."""

    name: str
    version: str


class Device(_Struct, frozen=True, kw_only=True):
    """A device named by an input; 0 and '' where the trace does not say."""

    ordinal: int
    name: str
    vendor: str
    sm_count: int
    memory_bytes: int


class Input(_Struct, frozen=True, kw_only=True):
    """One file that was read. `sha256` and `bytes` are those of the file as it lies on disk."""

    path: str
    format: str
    bytes: int
    sha256: str
    events_read: int
    events_kept: int
    events_set_aside: int
    rank: int | None
    world_size: int | None
    host: str
    devices: list[Device]


class NoticeRow(_Struct, frozen=True, kw_only=True):
    """A notice, and the input that it is about (None: the whole job)."""

    kind: str
    severity: Literal["error", "warning", "info"]
    count: int
    input: str | None
    message: str


class Totals(_Struct, frozen=True, kw_only=True):
    """Lengths of unions of intervals on one device, clipped to the window."""

    window: Nanoseconds
    busy: Nanoseconds
    idle: Nanoseconds
    compute: Nanoseconds
    collective: Nanoseconds
    exposed_collective: Nanoseconds
    copy: Nanoseconds
    exposed_copy: Nanoseconds


class StepTime(_Struct, frozen=True, kw_only=True):
    """Step times over all ranks; None where no step has a verdict."""

    n: int
    median: Nanoseconds | None
    p10: Nanoseconds | None
    p90: Nanoseconds | None


class Hotspot(_Struct, frozen=True, kw_only=True):
    """Device work of one name that one operator launched: what a window spends its time in.

    `dur_ns` adds up durations, clipped to the window; work that overlaps counts each time.
    """

    name: str
    op: str
    family: str
    count: int
    dur_ns: Nanoseconds


class Region(_Struct, frozen=True, kw_only=True):
    """Part of a step. Regions of one kind partition their step.

    `by_rules`: the label by its budget alone; `top`: its longest work.
    """

    kind: Literal["phase", "annotation", "module"]
    name: str
    start_ns: Nanoseconds
    dur_ns: Nanoseconds
    label: Label
    confidence: Share
    by_rules: Label
    budget_ns: dict[str, Nanoseconds]
    top: list[Hotspot]


class Step(_Struct, frozen=True, kw_only=True):
    """One training iteration. `coverage`: share of launches whose device records are there.

    `mfu` and `hfu`: those of `Roofline` in this step, on the same peak; None where there is none.
    """

    ordinal: int
    name: str
    source: Literal["marker", "inferred", "whole"]
    start_ns: Nanoseconds
    dur_ns: Nanoseconds
    host_start_ns: Nanoseconds
    host_dur_ns: Nanoseconds
    label: Label
    confidence: Share
    runner_up: Label | None
    by_rules: Label
    coverage: Share
    why: str
    totals_ns: Totals
    budget_ns: dict[str, Nanoseconds]
    mfu: float | None
    hfu: float | None
    regions: list[Region]


KernelBound = Literal["compute", "memory", "under-filled", "above peak", "unknown"]


class Kernel(_Struct, frozen=True, kw_only=True):
    """Kernels of one name that one operator launched, under the roofs of their device.

    Figures are of all of them together, in all steps with a verdict. `flops` and `bytes`: what has
    to be computed and moved at least, by the inputs of the operator (`source` `shapes`), or what
    was counted (`counters`; if only one of the two was, the other is as with `shapes`). `op`: the
    operator whose inputs told, or around the launch where counters alone tell. `compute_share` and
    `memory_share`: of the roofs; `bound` follows from the nearer one: `under-filled` is far below
    both, `above peak` would be above one and is not believed. `at_datasheet`: the bound with the
    data sheet's roofs.
    """

    name: str
    op: str
    source: Literal["shapes", "counters"]
    count: int
    dur_ns: Nanoseconds
    dtype: str
    flops: float
    bytes: float
    intensity: float | None
    flops_per_s: float
    bytes_per_s: float
    compute_share: float
    memory_share: float
    bound: KernelBound
    at_datasheet: KernelBound


class Roofline(_Struct, frozen=True, kw_only=True):
    """A rank's kernels under the roofs of its device.

    `basis`: the roofs are the most that was measured, where that is published, else the data
    sheet's. `peak_flops_per_s`: by type of the operands. `unlinked`: share of the kernels' time
    whose launch, or an operator around it, is not in the trace. `covered`: share of the other
    kernels' time that a cost model prices; `uncovered`: the operators that take most of the rest.
    `bound`: share of all kernels' time by what bounds it. `hfu`: FLOPs of all kernels in the steps,
    as a share of what the device could do meanwhile in `mfu_dtype`, the type that most of them are
    in, by its data sheet: `mfu_peak_flops_per_s`; `mfu`: the same without what is computed again in
    the backward pass. Both count what is covered.
    """

    device: str
    basis: str
    peak_flops_per_s: dict[str, float]
    peak_bytes_per_s: float | None
    unlinked: Share
    covered: Share
    uncovered: list[str]
    bound: dict[str, Share]
    mfu: float | None
    hfu: float | None
    mfu_dtype: str
    mfu_peak_flops_per_s: float | None
    kernels: list[Kernel]


Roof = Literal["compute", "memory", "both", "neither", "unknown"]
"""What counters say that work is held up by: arithmetic units, memory, both of them, or neither."""


class CounterFigure(_Struct, frozen=True, kw_only=True):
    """A counter over a part of the time, each sample weighted by the time that it stands for.

    `coverage`: share of that time for which a sample stands; `samples`: how many do; `file`: as in
    `Report.counters`.
    """

    metric: str
    unit: str
    mean: float
    p10: float
    p90: float
    coverage: Share
    samples: int
    file: str


class CounterRegion(_Struct, frozen=True, kw_only=True):
    """Counters over all steps of a rank, one step, or one phase of all steps.

    `ordinal`: of the step. `roof`: what the activity of arithmetic units and of memory says, while
    kernels that are no collectives run; `why` gives the figures, or says what is lacking.
    """

    kind: Literal["steps", "step", "phase"]
    name: str
    ordinal: int | None
    dur_ns: Nanoseconds
    figures: list[CounterFigure]
    roof: Roof
    why: str


class Wait(_Struct, frozen=True, kw_only=True):
    """Exposed time that a rank waits for another, and what that one spent it in."""

    late_rank: int | None
    time_ns: Nanoseconds
    leaf_ns: dict[str, Nanoseconds]


class Rank(_Struct, frozen=True, kw_only=True):
    """One rank: its own budget, in which a wait counts as collective.

    `top`: its longest work; `waits`: for whom it waits; `clock_offset_ns`: how far its clock was
    off from those of the others, None where it was not compared. `roofline`: None where the trace
    does not hold what operators were called with, or its device is not known. `counters`: all
    steps first, then every step and phase that samples are close enough for.
    """

    rank: int | None
    label: Label
    confidence: Share
    by_rules: Label
    why: str
    totals_ns: Totals
    budget_ns: dict[str, Nanoseconds]
    waits: list[Wait]
    clock_offset_ns: int | None
    top: list[Hotspot]
    roofline: Roofline | None
    counters: list[CounterRegion]
    steps: list[Step]


class Job(_Struct, frozen=True, kw_only=True):
    """The verdict on all ranks together."""

    label: Label
    confidence: Share
    runner_up: Label | None
    by_rules: Label
    probabilities: dict[str, Share]
    culprit_rank: int | None
    why: str
    step_time_ns: StepTime
    totals_ns: Totals
    budget_ns: dict[str, Nanoseconds]


class Evidence(_Struct, frozen=True, kw_only=True):
    """What a fix rests on.

    `sql` returns `value` in one row when run with `perfdiag query` on the same input; `slices` are
    the ids of the longest of the slices that it counts, in table `slice` of the same session. On
    a job of several ranks they are those of the rank that `why` speaks of. With a time range or a
    step marker the figure is that of what was analysed, which a query does not know.
    """

    sql: str
    slices: list[int]
    value: float
    unit: str


class Place(_Struct, frozen=True, kw_only=True):
    """A part of the model or of the step in which a fix saves time."""

    kind: Literal["phase", "annotation", "module"]
    name: str
    saving_ns_per_step: Nanoseconds


Basis = Literal["replay", "static bound"]
"""Where savings come from: the job replayed with the fix, or time taken out of the budget, which
what was hidden behind it may take up again."""


class Fix(_Struct, frozen=True, kw_only=True):
    """Something to do, whose it is, and what it is worth.

    `saving_ns_per_step`: mean over the steps with a verdict, of all ranks if `basis` is `replay`;
    the low and the high one hold it nine times in ten. Otherwise of `ranks`, and they are bounds.
    `saving_after_previous_ns`: mean over the steps of all ranks, after all fixes before it, so that
    these may be added up. `curve_ns`: what 25, 50, 75 and 100 % of the fix save, empty without a
    replay.
    """

    id: str
    layer: Layer
    title: str
    why: str
    saving_ns_per_step: Nanoseconds
    saving_low_ns: Nanoseconds
    saving_high_ns: Nanoseconds
    saving_after_previous_ns: Nanoseconds
    basis: Basis
    curve_ns: list[Nanoseconds]
    confidence: Share
    ranks: list[int | None]
    steps: list[int]
    regions: list[Place]
    evidence: list[Evidence]
    how: str
    verify: str
    refuted_by: str


class Finding(_Struct, frozen=True, kw_only=True):
    """What one diagnosis says: it fires, saves too little, is quiet, cannot tell, or broke.

    `why` is that of the first of `ranks`; ranks of which a diagnosis says different things have
    one entry each.
    """

    id: str
    layer: Layer
    status: Status
    title: str
    why: str
    ranks: list[int | None]


class Thresholds(_Struct, frozen=True, kw_only=True):
    """Thresholds of the diagnoses: a hash of all of them, and those that a user has set."""

    sha256: str
    config: str | None
    overridden: dict[str, dict[str, float]]


class Collective(_Struct, frozen=True, kw_only=True):
    """Collectives of one operation, group and size class on one rank.

    `wait_ns`: exposed, for late ranks. `transfer_ns`: of those whose transfer is known, and
    `bus_bandwidth`, in bytes a second, their median by the formulas of nccl-tests; `link_share`:
    what part of the peak of the device's links that is, one way, within a host.
    """

    rank: int | None
    op: str
    group: str
    size_class: SizeClass
    count: int
    bytes: int
    total_ns: Nanoseconds
    exposed_ns: Nanoseconds
    wait_ns: Nanoseconds
    transfer_ns: Nanoseconds
    bus_bandwidth: float | None
    link_share: float | None


class CounterTimeline(_Struct, frozen=True, kw_only=True):
    """One counter of one thing over the whole file, each sample counted once.

    `device`: ordinal, None where the file gives none; `period_ns`: usual time between samples.
    """

    metric: str
    unit: str
    device: int | None
    entity: str
    samples: int
    period_ns: Nanoseconds
    mean: float
    p10: float
    p90: float


class CounterFile(_Struct, frozen=True, kw_only=True):
    """A file of counters that was read beside the traces.

    `clock`: `exact`, `given` (the user completed it), `local` (without its zone) or `none`.
    `ranks`: on whose clocks its timelines were put. `kernels`: launches with figures of their own.
    """

    path: str
    format: str
    bytes: int
    sha256: str
    clock: Literal["exact", "given", "local", "none"]
    ranks: list[int | None]
    timelines: list[CounterTimeline]
    kernels: int
    facts: dict[str, str]


class ReplayError(_Struct, frozen=True, kw_only=True):
    """How far the unchanged replay is off, over all steps with a verdict, as shares of a step."""

    median: float
    p90: float
    max: float


class Replay(_Struct, frozen=True, kw_only=True):
    """The job's dependency graph, and how far it explains the steps.

    `believed`: whether savings rest on it; `why` says so in a sentence, or what is lacking.
    `inferred`: dependencies that no call tells, only the time. `contention`: times as long as
    kernels take beside collectives, None where the trace cannot tell. `critical_path`: share of the
    steps by what the longest chain of dependencies consists of; for display, not for ranking: a
    step has many chains that are nearly as long. `twice_as_fast`: share of the steps that is saved
    if what a label stands for is twice as fast, by label; empty if the replay is not believed.
    """

    believed: bool
    why: str
    nodes: int
    edges: int
    inferred: int
    error: ReplayError | None
    contention: float | None
    critical_path: dict[str, Share]
    twice_as_fast: dict[str, Share]


class Report(_Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA_ID
    version: str
    engine: EngineInfo
    inputs: list[Input]
    notices: list[NoticeRow]
    job: Job
    ranks: list[Rank]
    fixes: list[Fix]
    findings: list[Finding]
    thresholds: Thresholds
    collectives: list[Collective]
    counters: list[CounterFile]
    replay: Replay
    model: dict[str, Any]


def schema() -> Mapping[str, Any]:
    """JSON Schema of `Report`."""
    return msgspec.json.schema(Report)


if __name__ == "__main__":
    text = msgspec.json.format(msgspec.json.encode(schema(), order="sorted"), indent=2)
    Path(__file__).with_name("report.schema.json").write_bytes(text + b"\n")
