"""Reads anybody's Perfetto traces, as the SQL module `perfdiag.adapter` maps them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.engine import Session, Table
from perfdiag.profiler.sources.kineto_header import rank_notice, rank_of_name
from perfdiag.profiler.sources.perfetto_shape import mend_empty, scoped_ids
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import (
    ABSENT,
    ARG_TYPES,
    ArgColumn,
    Clock,
    Counter,
    Device,
    Int64s,
    Kind,
    Lane,
    Recording,
    Slices,
)

__all__ = ["read_foreign"]

_SLICES = """
SELECT id, lane_id, ts, dur, name, category, kind, correlation, launch_id, parent_id
FROM _adapter_slice
ORDER BY id
"""
_ARGS = """
SELECT slice.id, args.flat_key AS key, args.int_value, args.real_value, args.string_value
FROM _adapter_slice AS slice
JOIN args USING (arg_set_id)
"""
_SAMPLES = "SELECT * FROM _adapter_sample ORDER BY track_id, ts, id"
_ORIGIN = "SELECT trace_start() AS ts, to_realtime(trace_start()) AS unix_ns"

_ARGUMENTS: Mapping[str, str] = {
    "bytes": "bytes",
    "size": "bytes",
    "bytes_transferred": "bytes",
    "Sequence number": "sequence_number",
    "Collective name": "collective_name",
    "Process Group Name": "group_name",
    "Group size": "group_size",
    "Seq": "collective_seq",
    "In msg nelems": "in_elements",
    "Out msg nelems": "out_elements",
    "dtype": "dtype",
    "Src Rank": "src_rank",
    "Dst Rank": "dst_rank",
}
"""Arguments that writers take over from Kineto (pytorch/kineto 114171d), and common spellings."""


@dataclass(frozen=True, slots=True)
class _Raw:
    """What the adapter says: slices in the order of their ids, and lanes by number."""

    ids: Int64s
    slices: Slices
    strings: list[str]
    lanes: list[Lane]
    role: list[str]
    parent: Int64s


def read_foreign(
    session: Session, path: str, *, step_marker: str | None = None, keep_args: bool = False
) -> Recording:
    """The recording that the adapter makes of a foreign trace; times are not yet rebased.

    Args:
        session: holds the trace; the module `perfdiag.adapter` is included.
        path: what the user named.
        step_marker: regular expression for names of steps; these count on any track.
        keep_args: keep the original arguments of every event as JSON text.
    """
    raw = _read(session, step_marker, keep_args)
    counters = _counters(session.query(_SAMPLES))
    slices, mended = mend_empty(raw.slices, raw.parent, _on_device(raw))
    slices, set_aside = _without_unfinished(slices)
    rank, rank_notices = _rank(session, path)
    return Recording(
        source=path,
        format="perfetto",
        foreign=True,
        strings=raw.strings,
        lanes=raw.lanes,
        slices=slices,
        set_aside=set_aside,
        clock=_clock(session),
        counters=counters,
        devices=[
            Device(ordinal, "", "", 0, 0)
            for ordinal in sorted({lane.device for lane in raw.lanes} - {ABSENT})
        ],
        rank=rank,
        events_read=len(raw.slices) + sum(len(counter.ts_ns) for counter in counters),
    ).noting(*rank_notices, *_mapping_notices(session), *_losses(session), mended)


def _read(session: Session, step_marker: str | None, keep_args: bool) -> _Raw:
    tracks, table = session.query("SELECT * FROM _adapter_track"), session.query(_SLICES)
    lanes, role = _lanes(tracks)
    ids, launch_id = table.ints("id"), table.ints("launch_id")
    codes, names = table.codes("name")
    category, categories = table.codes("category")
    strings = [*names, "", *categories]
    raw = _Raw(
        ids=ids,
        slices=Slices(
            ts_ns=table.ints("ts"),
            dur_ns=table.ints("dur"),
            lane=table.ints("lane_id").astype(np.int32),
            name=np.where(codes < 0, len(names), codes).astype(np.int32),
            category=np.where(category < 0, len(names), category + len(names) + 1).astype(np.int32),
            kind=_kinds(table, step_marker),
            correlation=table.ints("correlation"),
            external_id=np.full(len(ids), ABSENT, np.int64),
        ),
        strings=strings,
        lanes=lanes,
        role=role,
        parent=_rows(ids, table.ints("parent_id")),
    )
    arguments = session.query(_ARGS)
    slices = replace(
        raw.slices,
        correlation=scoped_ids(raw.slices, lanes, _rows(ids, launch_id)),
        args=_typed(arguments, ids),
        raw_args=_json(arguments, ids) if keep_args else None,
    )
    return _name_steps(replace(raw, slices=slices))


def _rows(ids: Int64s, wanted: Int64s) -> Int64s:
    """(n,) row of each wanted id, `ABSENT` where there is none."""
    if not len(ids):
        return wanted
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, ABSENT)


def _lanes(tracks: Table) -> tuple[list[Lane], list[str]]:
    """Lanes and their roles by number; XLA's steps lie on a line of their own on the host."""
    found: dict[int, tuple[Lane, str]] = {}
    rows = zip(
        tracks.ints("lane_id").tolist(),
        tracks.texts("role"),
        tracks.texts("name"),
        tracks.texts("process"),
        tracks.texts("thread"),
        tracks.ints("device_id").tolist(),
        tracks.ints("stream").tolist(),
        strict=True,
    )
    for number, role, name, process, thread, device, stream in rows:
        on_device = role in ("work", "mark")
        found[number] = (
            Lane(process, thread, name or thread, "stream", device, stream)
            if on_device
            else Lane(process, thread, name or thread, "thread"),
            role,
        )
    return [found[n][0] for n in range(len(found))], [found[n][1] for n in range(len(found))]


_KINDS = {kind.name.lower(): kind for kind in Kind} | {"collective": Kind.KERNEL}
"""By the adapter's word; names tell collectives from kernels better than its patterns."""


def _kinds(table: Table, step_marker: str | None) -> NDArray[np.int8]:
    """(n,) kinds: calls of known runtimes and the user's step markers are known by name."""
    codes, words = table.codes("kind")
    kind = np.array([*(_KINDS[word] for word in words), Kind.OTHER], np.int8)[codes]
    codes, names = table.codes("name")
    is_call = np.array([*(classify_api(name) != "other" for name in names), False], bool)[codes]
    kind[is_call & (kind == Kind.HOST_OP)] = Kind.RUNTIME
    if step_marker is not None:
        marks = [*(re.search(step_marker, name) is not None for name in names), False]
        kind[np.array(marks, bool)[codes] & (kind == Kind.OTHER)] = Kind.ANNOTATION
    return kind


def _name_steps(raw: _Raw) -> _Raw:
    """XLA calls its steps by their bare numbers: make them annotations that can be known."""
    steps = np.array([role == "step" for role in raw.role], bool)
    rows = np.flatnonzero(steps[raw.slices.lane]) if len(steps) else np.empty(0, np.int64)
    if not len(rows):
        return raw
    used = np.unique(raw.slices.name[rows]).tolist()
    strings = list(raw.strings)
    renamed = np.arange(len(strings))
    for code in used:
        if strings[code].isdecimal():
            renamed[code] = len(strings)
            strings.append(f"step {strings[code]}")
    name, kind = raw.slices.name.copy(), raw.slices.kind.copy()
    name[rows], kind[rows] = renamed[name[rows]], Kind.ANNOTATION
    return replace(raw, strings=strings, slices=replace(raw.slices, name=name, kind=kind))


def _typed(table: Table, ids: Int64s) -> dict[str, ArgColumn]:
    codes, keys = table.codes("key")
    rows, integers = _rows(ids, table.ints("id")), table.ints("int_value")
    texts, text_of = table.codes("string_value")
    columns: dict[str, ArgColumn] = {}
    for code, key in enumerate(keys):
        name = _ARGUMENTS.get(key.removeprefix("debug.").removeprefix("args."))
        if name is None or name in columns:
            continue
        textual = ARG_TYPES[name] is str
        at = np.flatnonzero((codes == code) & ((texts >= 0) == textual))
        at = at[np.argsort(rows[at], kind="stable")]
        values = np.array([*text_of, ""], object)[texts[at]] if textual else integers[at]
        if len(at):
            columns[name] = ArgColumn(rows[at], values)
    return columns


def _json(table: Table, ids: Int64s) -> list[bytes | None]:
    """All arguments of each slice as one JSON object, nested ones by their flat names."""
    found: list[dict[str, Any]] = [{} for _ in range(len(ids))]
    rows = _rows(ids, table.ints("id")).tolist()
    for row, (_, key, *values) in zip(rows, table.rows(), strict=True):
        value = next((v for v in values if v is not None), None)
        found[row][str(key).removeprefix("debug.")] = value
    return [msgspec.json.encode(args) if args else None for args in found]


def _on_device(raw: _Raw) -> NDArray[np.bool_]:
    return np.array([role == "work" for role in raw.role], bool)


def _without_unfinished(slices: Slices) -> tuple[Slices, Slices]:
    """What has an end, and what has none: that is set aside, and lasts no time."""
    unfinished = slices.dur_ns < 0
    aside = slices.take(unfinished)
    count = len(aside)
    reasons = ArgColumn(np.arange(count), np.full(count, "slice.unfinished", object))
    aside = replace(
        aside,
        dur_ns=np.zeros(count, np.int64),
        args={**aside.args, "reason": reasons} if count else {},
    )
    return (slices.take(~unfinished) if count else slices), aside


def _counters(table: Table) -> list[Counter]:
    tracks, ts_ns, values = table.ints("track_id"), table.ints("ts"), table.floats("value")
    names, units, devices = table.texts("name"), table.texts("unit"), table.ints("device_id")
    _, first = np.unique(tracks, return_index=True)
    bounds = [*first.tolist(), len(tracks)]
    return [
        Counter(
            names[start],
            units[start],
            1.0,
            "gauge",
            int(devices[start]),
            ts_ns[start:end],
            values[start:end],
        )
        for start, end in pairwise(bounds)
    ]


def _clock(session: Session) -> Clock:
    """Anchored where the trace has a snapshot of its clocks."""
    table = session.query(_ORIGIN)
    start, unix = table.ints("ts", 0).tolist()[0], table.ints("unix_ns", 0).tolist()[0]
    if not unix:
        return Clock(0, None, "none")
    return Clock(0, unix - start, "exact")


def _rank(session: Session, path: str) -> tuple[int | None, list[Notice]]:
    """The number of the one process called `rank N`, or what the file's name says."""
    names = session.query("SELECT DISTINCT name FROM process WHERE name GLOB 'rank [0-9]*'")
    ranks = [int(name[5:]) for name in names.texts("name") if name[5:].isdecimal()]
    if len(ranks) == 1:
        return ranks[0], []
    rank = rank_of_name(path)
    return rank, [rank_notice(rank)]


def _mapping_notices(session: Session) -> list[Notice]:
    table = session.query("SELECT kind, severity, count, message FROM _adapter_notice")
    return [Notice(*row) for row in table.rows()]  # type: ignore[arg-type]


def _losses(session: Session) -> list[Notice]:
    """What the trace processor itself could not read."""
    table = session.statistics()
    counts = table.ints("value").tolist()
    if not counts:
        return []
    listed = ", ".join(f"{n} {v}x" for n, v in zip(table.texts("name"), counts, strict=True))
    message = f"The trace processor left events out: {listed}."
    return [Notice("event.skipped", "warning", sum(counts), message)]
