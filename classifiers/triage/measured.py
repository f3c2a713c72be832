"""What is counted in the raw events of a slice: work, calls and operators within its time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.intervals import merge
from perfdiag.classifiers.triage.cutting import overlap_ns
from perfdiag.classifiers.triage.figures import Figure, literal
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.recording import DEVICE_WORK, Int64s, Kind, Recording

__all__ = ["Scope", "measured_figures", "named_figures", "rank_figure"]

Bools = NDArray[np.bool_]

TOP = 4
"""Names that are listed of the work, and of the host; a choice: an issue is read by people."""

_WORK = {"kernel": Kind.KERNEL, "collective": Kind.COLLECTIVE, "copy": Kind.COPY, "fill": Kind.FILL}
_NOUNS = {"kernel": "kernels", "collective": "collectives", "copy": "copies", "fill": "fills"}
_WORK_SQL = "('kernel', 'collective', 'copy', 'fill')"


@dataclass(frozen=True, slots=True)
class Scope:
    """The raw events of one rank in a slice.

    Attributes:
        name: of its process in the slice.
        recording: cut to the slice, on its clock.
        alone: whether the slice holds no other rank.
    """

    name: str
    recording: Recording
    alone: bool

    @property
    def where(self) -> str:
        """What a query adds to its condition."""
        if self.alone:
            return ""
        return (
            " AND track_id IN (SELECT track.id FROM track JOIN process ON process.upid ="
            " extract_arg(track.dimension_arg_set_id, 'upid')"
            f" WHERE process.name = {literal(self.name)})"
        )


def rank_figure(scopes: Sequence[Scope]) -> Figure:
    """Whose traces the slice holds."""
    names = sorted(scope.name for scope in scopes)
    sql = (
        "SELECT group_concat(name, ', ') AS value FROM (SELECT DISTINCT name FROM process WHERE "
        "name GLOB 'rank *' ORDER BY name)"
    )
    return Figure("slice.ranks", "ranks in the slice", sql, ", ".join(names), "text", "window")


def stream_figure(scope: Scope) -> Figure:
    """The streams with work."""
    slices, lanes = scope.recording.slices, scope.recording.lanes
    used = np.unique(slices.lane[np.isin(slices.kind, DEVICE_WORK)]).tolist()
    names = sorted({lanes[lane].name for lane in used})
    sql = (
        "SELECT coalesce(group_concat(name, ', '), '') AS value FROM (SELECT DISTINCT track.name "
        f"AS name FROM slice JOIN track ON track.id = track_id WHERE category IN {_WORK_SQL}"
        f"{scope.where} ORDER BY track.name)"
    )
    return _figure(scope, "streams with work", sql, ", ".join(names), "text")


def measured_figures(scope: Scope) -> Iterator[Figure]:
    """How much work of each kind there is, how long the device is busy, and who blocks the host."""
    slices = scope.recording.slices
    yield stream_figure(scope)
    for category, kind in _WORK.items():
        mine = slices.kind == kind
        if mine.any():
            noun, where = _NOUNS[category], f"category = '{category}'{scope.where}"
            yield from _count_and_time(scope, noun, where, mine)
            if category in ("copy", "fill"):
                yield from _bytes(scope, noun, where, mine)
    yield from _busy(scope)
    blocking = _blocking(scope.recording)
    if blocking.any():
        where = f"category = 'runtime.sync'{scope.where}"
        yield from _count_and_time(scope, "calls that block the host", where, blocking)


def _count_and_time(scope: Scope, about: str, where: str, mine: Bools) -> Iterator[Figure]:
    count, time = int(mine.sum()), int(scope.recording.slices.dur_ns[mine].sum())
    sql = f"SELECT count(*) AS value FROM slice WHERE {where}"
    yield _figure(scope, f"{about}, how many", sql, count, "events", about)
    sql = f"SELECT sum(dur) AS value FROM slice WHERE {where}"
    yield _figure(scope, f"{about}, time added up", sql, time, "ns", about)


def _figure(
    scope: Scope, meaning: str, sql: str, value: float | str, unit: str, about: str = ""
) -> Figure:
    key = f"{scope.name}: {meaning}"
    return Figure(key, key, sql, value, unit, "window", about, scope.name)


def _bytes(scope: Scope, noun: str, where: str, mine: Bools) -> Iterator[Figure]:
    column = scope.recording.slices.args.get("bytes")
    if column is None:
        return
    known = mine[column.rows]
    if known.any():
        total = int(column.values[known].sum())
        sql = (
            f"SELECT sum(extract_arg(arg_set_id, 'debug.bytes')) AS value FROM slice WHERE {where}"
        )
        yield _figure(scope, f"{noun}, bytes", sql, total, "bytes", noun)


def _busy(scope: Scope) -> Iterator[Figure]:
    """The union of all work: overlapping work counts once."""
    slices = scope.recording.slices
    work = np.isin(slices.kind, DEVICE_WORK)
    if not work.any():
        return
    start, end = merge(slices.ts_ns[work], slices.end_ns[work])
    sql = (
        "SELECT sum(max(0, until - max(ts, coalesce(reached, ts)))) AS value FROM (SELECT ts, ts + "
        "dur AS until, max(ts + dur) OVER (ORDER BY ts, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 "
        f"PRECEDING) AS reached FROM slice WHERE category IN {_WORK_SQL}{scope.where})"
    )
    meaning = "time in which a device works, overlaps counted once"
    yield _figure(scope, meaning, sql, int((end - start).sum()), "ns")


def _blocking(recording: Recording) -> Bools:
    """(slices,) calls that wait for the device."""
    slices = recording.slices
    names = np.unique(slices.name[slices.kind == Kind.RUNTIME]).tolist()
    sync = [name for name in names if classify_api(recording.strings[name]) == "sync"]
    return np.asarray((slices.kind == Kind.RUNTIME) & np.isin(slices.name, sync), np.bool_)


def named_figures(scope: Scope, taken: tuple[Int64s, Int64s], *, of_host: bool) -> Iterator[Figure]:
    """The names of device work, and of calls and operators, that overlap a finding longest.

    Args:
        scope: the rank.
        taken: the time that the finding is about.
        of_host: whether it is about what the host does.
    """
    slices = scope.recording.slices
    work = np.isin(slices.kind, DEVICE_WORK)
    host = np.isin(slices.kind, (Kind.HOST_OP, Kind.RUNTIME))
    condition = "(category = 'host_op' OR category GLOB 'runtime.*')"
    yield from _top(scope, work, f"category IN {_WORK_SQL}", taken)
    if of_host:
        yield from _top(scope, host, condition, taken)


def _top(
    scope: Scope, rows: Bools, condition: str, taken: tuple[Int64s, Int64s]
) -> Iterator[Figure]:
    recording, slices = scope.recording, scope.recording.slices
    shared = overlap_ns(slices.ts_ns, slices.end_ns, taken) * rows
    weight = np.asarray(np.bincount(slices.name, shared, len(recording.strings)), np.float64)
    for code in _heaviest(weight, recording.strings):
        name = recording.strings[code]
        mine = rows & np.isin(slices.name, _same(recording.strings, name))
        where = f"{condition} AND name = {literal(name)}{scope.where}"
        yield from _count_and_time(scope, name, where, mine)


def _heaviest(weight: NDArray[np.float64], strings: Sequence[str]) -> list[int]:
    """Codes of the names with most weight, of equal ones the first in the alphabet."""
    some = np.flatnonzero(weight > 0).tolist()
    chosen: dict[str, int] = {}
    for code in sorted(some, key=lambda code: (-weight[code], strings[code])):
        chosen.setdefault(strings[code], code)
    return [code for name, code in list(chosen.items())[:TOP] if name]


def _same(strings: Sequence[str], name: str) -> list[int]:
    """All codes of one text: names that were cut short may have become the same."""
    return [code for code, text in enumerate(strings) if text == name]
