"""PyTorch profiler traces: Chrome JSON as libkineto writes it, of every vendor and age."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.sources.chrome_json import (
    ChromeTrace,
    TimedEvents,
    earliest_ns,
    hashable,
    read_chrome_json,
    read_salvaged,
)
from perfdiag.profiler.sources.chrome_others import Others, read_others
from perfdiag.profiler.sources.json_document import DECODE_ERRORS, Buffer
from perfdiag.profiler.sources.kineto_args import ArgsShape, DecodedArgs, decode_args
from perfdiag.profiler.sources.kineto_header import Header, read_header
from perfdiag.profiler.sources.kineto_lanes import UNDECIDED, kineto_table, make_lanes
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.kernels import grid_tells
from perfdiag.trace_schemas.notices import Notice, Severity
from perfdiag.trace_schemas.recording import (
    ABSENT,
    RANGE_CATEGORY,
    ArgColumn,
    Clock,
    Int64s,
    KeepArgs,
    Kind,
    Lane,
    Recording,
    Slices,
)

__all__ = ["UNITS_NS", "KinetoOptions", "read_kineto"]

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000}


@dataclass(frozen=True, slots=True)
class KinetoOptions:
    """How a Kineto trace is read.

    Attributes:
        unit: unit of `ts` and `dur` (`ns`, `us`, `ms`); the format says `us`.
        keep_args: keep the original arguments as JSON text: of all events, of none, or of operators
            with recorded inputs and kernels whose grid tells what they compute.
        time_range_ns: keep only what lies in this part of the trace, from its first event on.
    """

    unit: str = "us"
    keep_args: KeepArgs = False
    time_range_ns: tuple[int, int] | None = None


def read_kineto(data: Buffer, path: str, options: KinetoOptions | None = None) -> Recording:
    """Read a PyTorch profiler trace; times are in the source's own ns, not yet rebased.

    Args:
        data: the JSON text, decompressed.
        path: what the user named, for messages; a rank in its name is used as a last resort.
        options: units, and how much to keep.

    Raises:
        InputError: the document is no trace, or nothing of it can be read.
    """
    options = options or KinetoOptions()
    unit_ns = UNITS_NS[options.unit]
    span = _absolute(data, path, options, unit_ns)
    try:
        return _assemble(read_chrome_json(data, path, unit_ns), path, options, span)
    except DECODE_ERRORS:
        return _assemble(read_salvaged(data, path, unit_ns), path, options, span)


Span = tuple[int, int] | None


def _absolute(data: Buffer, path: str, options: KinetoOptions, unit_ns: int) -> Span:
    """The time range in the source's own time."""
    if options.time_range_ns is None:
        return None
    start = earliest_ns(data, unit_ns)
    if start is None:
        raise InputError(path, "is damaged, so that a time range of it cannot be found")
    return start + options.time_range_ns[0], start + options.time_range_ns[1]


@dataclass(slots=True)
class _Columns:
    """Pieces of the columns of `Slices`, to be joined at the end."""

    ts_ns: list[Int64s] = field(default_factory=list)
    dur_ns: list[Int64s] = field(default_factory=list)
    lane: list[NDArray[np.int32]] = field(default_factory=list)
    name: list[NDArray[np.int32]] = field(default_factory=list)
    category: list[NDArray[np.int32]] = field(default_factory=list)
    kind: list[NDArray[np.int8]] = field(default_factory=list)
    args: list[DecodedArgs] = field(default_factory=list)
    arg_rows: list[Int64s] = field(default_factory=list)
    raw: list[bytes | None] = field(default_factory=list)
    count: int = 0


@dataclass(slots=True)
class _Lanes:
    """Numbers for (process, thread) pairs, in the order of first sight."""

    ids: dict[tuple[Any, Any], int] = field(default_factory=dict)

    def codes(self, processes: list[Any], threads: list[Any]) -> NDArray[np.int32]:
        ids = self.ids
        pairs = list(zip(processes, threads, strict=True))
        try:
            fresh = dict.fromkeys(pairs)
        except TypeError:  # a list or an object where an id belongs
            pairs = [(hashable(p), hashable(t)) for p, t in pairs]
            fresh = dict.fromkeys(pairs)
        for pair in fresh:
            ids.setdefault(pair, len(ids))
        return np.fromiter(map(ids.__getitem__, pairs), np.int32, len(pairs))


def _assemble(trace: ChromeTrace, path: str, options: KinetoOptions, span: Span) -> Recording:
    columns, lanes = _Columns(), _Lanes()
    for piece in trace.pieces:
        _add(columns, lanes, trace, _within(piece, span), options.keep_args)
    others, instants = read_others(trace, UNITS_NS[options.unit]), 0
    for piece in (_within(p, span) for p in others.pieces):
        _add(columns, lanes, trace, piece, options.keep_args)
        instants = len(piece.ts_ns)
    if not columns.count:
        raise InputError(path, _nothing_to_analyse(trace))
    header = read_header(trace.metadata, path)
    slices, devices = _join(columns)
    made = make_lanes(list(lanes.ids), others, slices, devices, {d.ordinal for d in header.devices})
    slices = _settle_kinds(slices, made, instants if others.instants else 0)
    return _recording(trace, path, header, others, slices, made)


def _nothing_to_analyse(trace: ChromeTrace) -> str:
    if trace.out_of_range:
        return (
            f"the times of all {trace.out_of_range} events lie beyond what a clock can show; if "
            "they are nanoseconds, --time-unit ns reads them"
        )
    return "holds no event with a time: nothing to analyse"


def _within(piece: TimedEvents, span: Span) -> TimedEvents:
    """The events of a time range: what starts and ends in it, so that no step is half there."""
    return piece if span is None else piece.between(*span)


def _add(
    columns: _Columns, lanes: _Lanes, trace: ChromeTrace, piece: TimedEvents, keep_args: KeepArgs
) -> None:
    kind = _kinds(tuple(trace.strings.texts()))[piece.category]
    columns.ts_ns.append(piece.ts_ns)
    columns.dur_ns.append(piece.dur_ns)
    columns.lane.append(lanes.codes(piece.process, piece.thread))
    columns.name.append(piece.name)
    columns.category.append(piece.category)
    columns.kind.append(kind)
    for shape, rows in _shapes(trace, piece, kind):
        columns.args.append(decode_args([piece.args[i] for i in rows.tolist()], shape))
        columns.arg_rows.append(rows + columns.count)
    if keep_args == "inputs":
        columns.raw += _inputs(trace, piece, kind)
    elif keep_args:
        columns.raw += [None if len(bytes(a)) <= 2 else bytes(a) for a in piece.args]
    columns.count += len(kind)


def _inputs(trace: ChromeTrace, piece: TimedEvents, kind: NDArray[np.int8]) -> list[bytes | None]:
    """The arguments that a verdict needs.

    They are those of operators whose inputs were recorded, of kernels whose grid tells, and of the
    ranges in which CUPTI counted.
    """
    found: list[bytes | None] = [None] * len(kind)
    for row in np.flatnonzero(kind == Kind.HOST_OP).tolist():
        text = bytes(piece.args[row])
        if b'"Input' in text:
            found[row] = text
    ranges = np.flatnonzero(piece.category == trace.strings.code(RANGE_CATEGORY)).tolist()
    for row in (*_with_telling_grid(trace, piece, kind), *ranges):
        found[row] = bytes(piece.args[row])
    return found


def _with_telling_grid(trace: ChromeTrace, piece: TimedEvents, kind: NDArray[np.int8]) -> list[int]:
    """Rows of the few kernels whose grid is wanted: each name is looked at once."""
    kernels = np.flatnonzero(kind == Kind.KERNEL)
    if not len(kernels):
        return []
    strings, names = trace.strings.texts(), piece.name[kernels]
    telling = [code for code in np.unique(names).tolist() if grid_tells(strings[code])]
    return [int(row) for row in kernels[np.isin(names, telling)]] if telling else []


def _shapes(
    trace: ChromeTrace, piece: TimedEvents, kind: NDArray[np.int8]
) -> list[tuple[ArgsShape, Int64s]]:
    """Rows by what their arguments may hold; those of Python frames are not needed."""
    describes = piece.name == trace.strings.code("record_param_comms")
    op = np.isin(kind, (Kind.HOST_OP, Kind.ANNOTATION)) & ~describes
    call = kind == Kind.RUNTIME
    rest = ~op & ~call & (kind != Kind.PYTHON)
    masks: list[tuple[ArgsShape, NDArray[np.bool_]]] = [("op", op), ("call", call), ("all", rest)]
    return [(shape, np.flatnonzero(mask)) for shape, mask in masks if mask.any()]


def _kinds(strings: tuple[str, ...]) -> NDArray[np.int8]:
    by_category = {c: Kind[k] for k, names in kineto_table()["kinds"].items() for c in names}
    return np.array([by_category.get(s, UNDECIDED) for s in strings] or [UNDECIDED], np.int8)


def _join(columns: _Columns) -> tuple[Slices, DecodedArgs]:
    rows = np.concatenate(columns.arg_rows) if columns.arg_rows else np.empty(0, np.int64)
    dense = {
        name: _spread([getattr(a, name) for a in columns.args], rows, columns.count)
        for name in ("correlation", "external_id", "device", "stream")
    }
    slices = Slices(
        ts_ns=np.concatenate(columns.ts_ns),
        dur_ns=np.concatenate(columns.dur_ns),
        lane=np.concatenate(columns.lane),
        name=np.concatenate(columns.name),
        category=np.concatenate(columns.category),
        kind=np.concatenate(columns.kind),
        correlation=dense["correlation"],
        external_id=dense["external_id"],
        args=_join_args(columns),
        raw_args=columns.raw or None,
    )
    return slices, DecodedArgs(**dense, columns={})


def _spread(parts: list[Int64s], rows: Int64s, count: int) -> Int64s:
    column = np.full(count, ABSENT, np.int64)
    if parts:
        column[rows] = np.concatenate(parts)
    return column


def _join_args(columns: _Columns) -> dict[str, ArgColumn]:
    names = dict.fromkeys(name for args in columns.args for name in args.columns)
    joined = {}
    for name in names:
        parts = [
            (rows[args.columns[name].rows], args.columns[name].values)
            for rows, args in zip(columns.arg_rows, columns.args, strict=True)
            if name in args.columns
        ]
        at = np.concatenate([p[0] for p in parts])
        order = np.argsort(at)
        joined[name] = ArgColumn(at[order], np.concatenate([p[1] for p in parts])[order])
    return joined


def _settle_kinds(slices: Slices, lanes: list[Lane], instants: int) -> Slices:
    """Give slices without a known category the kind that their lane suggests."""
    on_stream = np.array([lane.kind == "stream" for lane in lanes], bool)
    undecided = slices.kind == UNDECIDED
    kind = slices.kind.copy()
    kind[undecided] = np.where(on_stream[slices.lane[undecided]], Kind.KERNEL, Kind.HOST_OP)
    if instants:
        kind[len(kind) - instants :] = Kind.INSTANT
    return replace(slices, kind=kind)


def _recording(
    trace: ChromeTrace,
    path: str,
    header: Header,
    others: Others,
    slices: Slices,
    lanes: list[Lane],
) -> Recording:
    base = header.base_ns
    return Recording(
        source=path,
        format="kineto",
        strings=trace.strings.texts(),
        lanes=lanes,
        slices=slices,
        set_aside=slices.take(np.empty(0, np.int64)),
        clock=Clock(base or 0, base, "none" if base is None else "exact"),
        counters=others.counters,
        devices=header.devices,
        rank=header.rank,
        world_size=header.world_size,
        host=header.host,
        groups=header.groups,
        events_read=trace.entries,
        events_skipped=trace.skipped + trace.out_of_range,
        metadata=header.metadata,
    ).noting(*trace.notices, *header.notices, *others.notices, *_skipped_notice(trace))


def _skipped_notice(trace: ChromeTrace) -> list[Notice]:
    severity: Severity = "info" if trace.bare_objects == 1 else "warning"
    bare = "Entries without a phase or a time are no events."
    beyond = "Events with times that no clock can show are left out."
    return [
        Notice("event.skipped", severity, trace.bare_objects, bare),
        Notice("duration.impossible", "warning", trace.out_of_range, beyond),
    ]
