"""Tables with a column a counter and a row a sample of one device."""

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfdiag.profiler.counters.cells import split_list
from perfdiag.profiler.counters.clocks import TimeKind, parse_time, unwrap_midnights
from perfdiag.profiler.counters.tables import Table, device_number, split_header
from perfdiag.profiler.counters.timelines import Series, Sheet
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["Roles", "read_wide"]


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns are no counters; names in lower case.

    Attributes:
        time: bear the time, in the order in which their cells are joined.
        device: bears the ordinal or the name of what was sampled.
        labels: tell rows apart beside the device; kept with the timelines.
    """

    time: tuple[str, ...] = (
        "date",
        "time",
        "timestamp",
        "timestamp_s",
        "timestamp_ms",
        "timestamp_us",
        "timestamp_ns",
    )
    device: tuple[str, ...] = ("index", "gpu", "gpu_id", "device", "entity")
    labels: tuple[str, ...] = (
        "uuid",
        "gpu_uuid",
        "pci.bus_id",
        "gpu_bus_id",
        "xcp",
        "hostname",
        "host",
        "node",
        "nodename",
        "instance",
    )


def read_wide(
    table: Table, tool: str, roles: Roles, units: Mapping[str, str] | None = None
) -> Sheet:
    """One series a counter and device.

    Args:
        table: the cells.
        tool: key into the vocabulary.
        roles: which columns are no counters.
        units: unit by column where the file gives them apart from the names.
    """
    columns = _Columns([split_header(column) for column in table.header], roles)
    times, kind, untimed = _times(table.rows, columns)
    groups: dict[tuple[str, ...], _Group] = {}
    for row, time in zip(table.rows, times, strict=True):
        if time is not None:
            group = groups.setdefault(columns.who(row), _Group())
            group.times.append(len(group.times) if kind == "index" else time)
            group.rows.append(row)
    series = [
        one
        for group in groups.values()
        for i in columns.counters
        for one in _split(columns.series(i, group, units or {}))
    ]
    damaged = {"rows of another length": table.ragged, "rows without a readable time": untimed}
    return Sheet(tool, series, kind, damaged=damaged)


@dataclass(slots=True)
class _Group:
    """The rows of one device."""

    times: list[int] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class _Columns:
    def __init__(self, names: Sequence[tuple[str, str]], roles: Roles) -> None:
        lowered = [name.casefold() for name, _ in names]
        self.names = names
        self.time = [lowered.index(name) for name in roles.time if name in lowered]
        self.device = [i for i, name in enumerate(lowered) if name in roles.device][:1]
        self.labels = [i for i, name in enumerate(lowered) if name in roles.labels]
        taken = {*self.time, *self.device, *self.labels}
        self.counters = [i for i in range(len(names)) if i not in taken]

    def who(self, row: Sequence[str]) -> tuple[str, ...]:
        """What tells the device of a row from others."""
        return tuple(row[i] for i in (*self.device, *self.labels))

    def series(self, i: int, group: _Group, units: Mapping[str, str]) -> Series:
        """Cells of column `i`."""
        name, unit = self.names[i]
        row = group.rows[0]
        device = row[self.device[0]] if self.device else ""
        ordinal = device_number(device)
        labels = {self.names[k][0]: row[k] for k in self.labels}
        entity = device if ordinal is None else f"GPU {ordinal}"
        return Series(
            name,
            units.get(name, unit),
            ABSENT if ordinal is None else ordinal,
            entity or next(iter(labels.values()), ""),
            labels,
            times=group.times,
            texts=[row[i] for row in group.rows],
        )


def _split(series: Series) -> list[Series]:
    """One series an element where cells are lists."""
    if not any("," in text for text in dict.fromkeys(series.texts)):
        return [series]
    parts: dict[str, Series] = {}
    for time, text in zip(series.times, series.texts, strict=True):
        elements = split_list(text)
        named = {f"{series.name}[{k}]": part for k, part in enumerate(elements or ())}
        for name, part in (named or {series.name: text}).items():
            one = replace(series, name=name, times=[], texts=[])
            parts.setdefault(name, one).add(time, part)
    return list(parts.values())


def _times(
    rows: Sequence[Sequence[str]], columns: _Columns
) -> tuple[list[int | None], TimeKind, int]:
    """Time of each row, what the times are, and how many rows have none."""
    if not columns.time:
        return [0] * len(rows), "index", 0
    column = columns.names[columns.time[0]][0].casefold()
    texts = [" ".join(row[i] for i in columns.time) for row in rows]
    parsed = {text: parse_time(text, column) for text in dict.fromkeys(texts)}
    kinds = Tally(found[1] for text in texts if (found := parsed[text]))
    kind = kinds.most_common(1)[0][0] if kinds else "index"
    times = [found[0] if (found := parsed[t]) and found[1] == kind else None for t in texts]
    if kind == "relative":
        times = _through_midnight(times)
    return times, kind, sum(time is None for time in times)


def _through_midnight(times: Sequence[int | None]) -> list[int | None]:
    """Times from the first sample on."""
    unwrapped = unwrap_midnights([time for time in times if time is not None])
    held = iter(unwrapped)
    return [None if time is None else next(held) - unwrapped[0] for time in times]
