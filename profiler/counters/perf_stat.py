"""`perf stat -I`, as CSV (`-x`) and as JSON lines (`-j`): counts of intervals become rates."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from perfdiag.profiler.counters.cells import Number, in_base, parse_cell
from perfdiag.profiler.counters.clocks import TimeKind
from perfdiag.profiler.counters.timelines import Series, Sheet
from perfdiag.trace_schemas.counters import Unit
from perfdiag.trace_schemas.errors import InputError

__all__ = ["is_perf_line", "read_perf"]

_SEPARATED = re.compile(r"\s*\d+\.\d{9}([;,|\t:]).*")
_SHORT = re.compile(r"\s*\d+\.\d{3,9}(;)(?:<not |\d|[SNC]\d|CPU).*")
_STARTED = re.compile(r"# started on \w{3} (\w{3}) +(\d+) (\d\d):(\d\d):(\d\d) (\d{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SHARE = re.compile(r"\d+\.\d\d")
_NS = Unit("", 10**9, 1)


@dataclass(frozen=True, slots=True)
class _Count:
    """One line: when its interval ended, whom it is of, what was counted, and perf's own ratio."""

    end_ns: int
    who: str
    text: str
    unit: str
    event: str
    ratio: tuple[str, str] | None = None


def is_perf_line(line: str) -> bool:
    """Whether a line is of `perf stat -I` with a separator, or of `-j`."""
    if line.lstrip()[:1] == "{":
        return '"counter-value"' in line or '"metric-value"' in line
    return bool(_SEPARATED.fullmatch(line) or _SHORT.fullmatch(line))


def read_perf(text: str, path: str) -> Sheet:
    """Read intervals; their times count from the start, which `-o FILE` writes down.

    Raises:
        InputError: no line has a time: perf was run without `-I`.
    """
    started = _start(text)
    counts, damaged = _counts(text)
    if not counts:
        problem = "has no interval of perf stat; record it with `-I 100` and `-x ';'` or `-j`"
        raise InputError(path, problem)
    starts = _interval_starts(counts)
    series: dict[tuple[str, str], Series] = {}
    for count in counts:
        length_ns = count.end_ns - starts[count.end_ns]
        end_ns = count.end_ns + (started or 0)
        if count.event:
            _series(series, count, count.event, count.unit).add(end_ns, count.text, length_ns)
        if count.ratio:
            _ratio(series, count, end_ns)
    kind: TimeKind = "relative" if started is None else "local"
    lines = {"lines that are no interval": damaged}
    return Sheet("perf", list(series.values()), kind, damaged=lines)


def _series(series: dict[tuple[str, str], Series], count: _Count, name: str, unit: str) -> Series:
    labels = {"part": count.who} if count.who else {}
    made = Series(
        name,
        unit,
        entity=count.who or "host",
        labels=labels,
        convert="counts of intervals" if name == count.event else "as is",
    )
    return series.setdefault((name, count.who), made)


def _ratio(series: dict[tuple[str, str], Series], count: _Count, end_ns: int) -> None:
    """What perf works out itself; rates of events are not kept twice."""
    value, unit = count.ratio or ("", "")
    if not unit.endswith("/sec") and unit != "CPUs utilized":
        share = unit.startswith("%") and len(unit) > 1  # `%  tma_backend_bound`
        name = unit[1:].strip() if share else unit
        _series(series, count, name, "%" if share else "").add(end_ns, value)


def _interval_starts(counts: list[_Count]) -> Mapping[int, int]:
    ends = sorted({count.end_ns for count in counts})
    return dict(zip(ends, [0, *ends[:-1]], strict=True))


def _start(text: str) -> int | None:
    """Local time at which perf started, as if it were UTC, to the second."""
    match = _STARTED.search(text[:4096])
    if match is None or match[1] not in _MONTHS:
        return None
    month = _MONTHS.index(match[1]) + 1
    day, hour, minute, second, year = (int(part) for part in match.groups()[1:])
    try:
        started = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int(started.timestamp()) * 10**9


def _counts(text: str) -> tuple[list[_Count], int]:
    counts, damaged = [], 0
    for line in text.splitlines():
        if not line.strip() or line.lstrip()[:1] == "#":
            continue
        count = _json_count(line) if line.lstrip()[:1] == "{" else _csv_count(line)
        damaged += count is None
        counts += [count] if count else []
    return counts, damaged


def _csv_count(line: str) -> _Count | None:
    match = _SEPARATED.fullmatch(line) or _SHORT.fullmatch(line)
    if match is None:
        return None
    fields = [cell.strip() for cell in line.split(match[1])]
    end_ns = _ns(fields[0])
    value = _value_at(fields)
    share = _share_at(fields, value + 3)
    if end_ns is None:
        return None
    if share is None:
        return _ratio_only(fields, end_ns)
    event = match[1].join(fields[value + 2 : share - 1])  # `cpu/event=1,umask=2/` under `-x,`
    who = fields[1] if value > 1 else ""
    ratio = tuple(fields[share + 1 : share + 3])
    kept = (ratio[0], ratio[1]) if len(ratio) == 2 and ratio[0] and ratio[1] else None
    return _Count(end_ns, who, fields[value], fields[value + 1], event, kept)


def _value_at(fields: list[str]) -> int:
    """Which field is the value: `--per-*` puts whose it is before it, and of how many CPUs."""
    if len(fields) > 1 and _is_value(fields[1]):
        return 1
    counted = len(fields) > 3 and fields[2].isdecimal() and _is_value(fields[3])
    return 3 if counted else 2


def _is_value(field: str) -> bool:
    return field[:1] == "<" or isinstance(parse_cell(field), Number)


def _share_at(fields: list[str], first: int) -> int | None:
    """Where the share of time in which the event was counted stands: behind its run time."""
    for i in range(first + 1, len(fields)):
        if _SHARE.fullmatch(fields[i]) and fields[i - 1].isdecimal():
            return i
    return None


def _ratio_only(fields: list[str], end_ns: int) -> _Count | None:
    """A line of `-M`, with a metric and no event."""
    held = [field for field in fields[1:] if field]
    if len(held) < 2 or not _is_value(held[-2]):
        return None
    return _Count(end_ns, held[0] if len(held) > 2 else "", "", "", "", (held[-2], held[-1]))


def _json_count(line: str) -> _Count | None:
    try:
        row = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return None
    end_ns = _ns(str(row.get("interval", "")))
    if end_ns is None:
        return None
    who = next(_named(row, ("socket", "die", "cluster", "core", "node", "cpu", "thread")), "")
    ratio = (str(row.get("metric-value", "")), str(row.get("metric-unit") or ""))
    return _Count(
        end_ns,
        who,
        str(row.get("counter-value", "")),
        str(row.get("unit", "")),
        str(row.get("event", "")),
        ratio if ratio[0] and ratio[1] else None,
    )


def _named(row: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    return (str(row[key]) for key in keys if key in row)


def _ns(text: str) -> int | None:
    number = parse_cell(text)
    value = in_base(number, _NS) if isinstance(number, Number) else None
    return round(value) if isinstance(value, float) and 0 <= value < 2**62 else None
