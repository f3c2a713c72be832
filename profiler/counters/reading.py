"""Read a file of hardware counters, whatever tool wrote it."""

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from perfdiag.profiler.counters import ncu, prometheus, rocprof_compute
from perfdiag.profiler.counters.clocks import ClockHints, ClockQuality, parse_time, quality_of
from perfdiag.profiler.counters.kernels import KernelMetrics, Launch, kernels_of
from perfdiag.profiler.counters.sniffing import HEAD_CHARS, first_row, recognise
from perfdiag.profiler.counters.timelines import SetAside, Sheet, Timeline, timelines_of
from perfdiag.profiler.limits import available_bytes
from perfdiag.profiler.sources.files import Blob
from perfdiag.trace_schemas.errors import InputError, InputTooLargeError
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Counter

__all__ = ["CounterFile", "read_counters", "read_scrapes"]

_BYTES_PER_BYTE = 25
"""Cells as Python strings and their times beside the text, for cells of five characters."""


@dataclass(frozen=True, slots=True)
class CounterFile:
    """What a file of counters holds.

    Attributes:
        path: as the user named it.
        format: `nvidia-smi`, `nvidia-smi dmon`, `dcgmi dmon`, `dcgm table`, `prometheus`,
            `prometheus query`, `amd-smi`, `perf stat`, `neuron-monitor`, `nsight compute` or
            `rocprof-compute`.
        timelines: counters over time, in canonical metrics and base units.
        clock: what `ts_ns` in them is: Unix time that the file says (`exact`) or the user completed
            (`given`), local time as if it were UTC (`local`), or time since the start (`none`).
        kernels: figures by kernel launch, from profilers without a timeline.
        kernel_units: base unit of every metric in `kernels`.
        facts: what the file says of the machine.
        text_columns: columns that hold text, which are not read.
        notices: what is missing, invalid or out of range, and what the clock lacks.
    """

    path: str
    format: str
    timelines: Sequence[Timeline] = ()
    clock: ClockQuality = "none"
    kernels: Sequence[KernelMetrics] = ()
    kernel_units: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    text_columns: Sequence[str] = ()
    notices: Sequence[Notice] = ()

    @property
    def counters(self) -> list[Counter]:
        """The timelines as counters of a recording."""
        return [timeline.counter for timeline in self.timelines]

    @property
    def unknown(self) -> dict[str, int]:
        """Samples by counter that is not in the vocabulary; it keeps its own name and unit."""
        counts: Tally[str] = Tally()
        for timeline in self.timelines:
            if not timeline.known:
                counts[timeline.counter.name] += len(timeline.counter.ts_ns)
        return dict(counts)


def read_counters(blob: Blob, hints: ClockHints | None = None) -> CounterFile:
    """Read one file, recognised by what is in it.

    Args:
        blob: its bytes; `content` and `skipped` are not asked.
        hints: what the user says of its clock.

    Raises:
        InputError: it is no file of counters, or nothing in it can be read.
        InputTooLargeError: it needs more memory than there is.
    """
    text, notices = _text(blob)
    how = hints or ClockHints()
    name, reader = recognise(text, blob.path)
    if reader is not None:
        found = _timed(blob.path, name, reader(text, blob.path), how)
    elif name == "nsight compute":
        found = _launched(blob.path, name, "ncu", ncu.read_ncu(text, blob.path))
    elif rocprof_compute.is_facts_header(first_row(text, rocprof_compute.is_facts_header)):
        facts = rocprof_compute.read_facts(text, blob.path)
        found = CounterFile(blob.path, name, facts=facts)
    else:
        dispatches = rocprof_compute.read_dispatches(text, blob.path)
        found = _launched(blob.path, name, "rocprof", dispatches)
    return replace(found, notices=(*blob.notices, *notices, *found.notices))


def read_scrapes(blobs: Sequence[Blob]) -> CounterFile:
    """Read scrapes of an exporter, one a file, each named after its Unix time: `<time>.prom`.

    Raises:
        InputError: there is none, a name is no time, or a file is no text of Prometheus.
    """
    if not blobs:
        path = "scrapes"
        raise InputError(path, "there is none; give files named <Unix time>.prom")
    notices: list[Notice] = []
    scrapes = []
    for blob in blobs:
        text, found = _text(blob)
        notices += found
        scrapes.append((_named_time(blob.path), text))
        if not prometheus.is_exposition(text[:HEAD_CHARS].splitlines()):
            raise InputError(blob.path, "is no text of a Prometheus exporter")
    sheet = prometheus.read_scrapes(scrapes)
    read = _timed(blobs[0].path, "prometheus", sheet, ClockHints())
    return replace(read, notices=(*notices, *read.notices))


def _named_time(path: str) -> int:
    found = parse_time(PurePath(path).name.removesuffix(".prom").removesuffix(".txt"))
    if found is None or found[1] != "unix":
        raise InputError(path, "has no Unix time for a name; call scrapes <Unix time>.prom")
    return found[0]


def _text(blob: Blob) -> tuple[str, list[Notice]]:
    """The file as text: UTF-8, or UTF-16 as PowerShell redirects it."""
    free = available_bytes()
    if free is not None and len(blob.data) * _BYTES_PER_BYTE > free:
        problem = f"is too large ({len(blob.data) / 1e9:.2f} GB) for the memory that is free"
        raise InputTooLargeError(blob.path, f"{problem}; record less often, or cut it")
    data = bytes(blob.data)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace"), []
    text = data.decode("utf-8-sig", "replace")
    if not text.strip():
        raise InputError(blob.path, "is empty: nothing was recorded")
    if "\0" in text[:HEAD_CHARS]:
        raise InputError(blob.path, "is binary data, no text of a monitoring tool")
    bad = text.count("�")
    message = f"{bad} bad bytes are replaced."
    return text, [Notice("text.invalid_utf8", "info", bad, message)] if bad else []


def _timed(path: str, name: str, sheet: Sheet, hints: ClockHints) -> CounterFile:
    aside = SetAside()
    timelines = timelines_of(sheet, hints, aside)
    aside.invalid.update({what: n for what, n in sheet.damaged.items() if n})
    notices = _notices(aside)
    if not timelines and not notices:
        raise InputError(path, "has a header and not one sample; was the tool stopped at once?")
    clock = quality_of(sheet.kind, hints)
    count = sum(len(timeline.counter.ts_ns) for timeline in timelines)
    if count and clock in ("local", "none"):
        message = f"{path}: {_clock_problem(sheet, hints)}."
        notices.append(Notice("clock.unanchored", "warning", count, message))
    text_columns = tuple(dict.fromkeys(aside.text))
    return CounterFile(path, name, timelines, clock, text_columns=text_columns, notices=notices)


def _clock_problem(sheet: Sheet, hints: ClockHints) -> str:
    if sheet.kind == "local":
        return (
            "local times without their zone; say how far they are ahead of UTC "
            "(--counters-utc-offset)"
        )
    if sheet.kind == "index" and hints.period_ns is None:
        period_s = sheet.default_period_ns / 1e9
        return (
            f"samples without time, taken to be {period_s:g} s apart; say when they were taken "
            "(--counters-offset)"
        )
    return "times since an unknown start; say when that was (--counters-offset)"


def _launched(
    path: str, name: str, tool: str, read: tuple[list[Launch], Mapping[str, int]]
) -> CounterFile:
    launches, damaged = read
    aside = SetAside()
    kernels, units = kernels_of(tool, launches, aside)
    aside.invalid.update({what: n for what, n in damaged.items() if n})
    if not kernels:
        raise InputError(path, "has a header and not one kernel; was the profiler stopped at once?")
    notices = _notices(aside)
    return CounterFile(path, name, kernels=kernels, kernel_units=units, notices=notices)


def _notices(aside: SetAside) -> list[Notice]:
    rows = (
        ("counter.missing", "info", aside.missing, "Samples that the tool does not have"),
        ("counter.invalid", "warning", aside.invalid, "Cells that are no number of their counter"),
        ("counter.out_of_range", "warning", aside.out_of_range, "Values that cannot be"),
    )
    return [
        Notice(kind, "info" if severity == "info" else "warning", n, f"{what}: {_most(counts)}.")
        for kind, severity, counts, what in rows
        if (n := sum(counts.values()))
    ]


def _most(counts: Mapping[str, int], shown: int = 6) -> str:
    """Counters by how many of their cells are concerned."""
    held = sorted(((n, name) for name, n in counts.items() if n), key=lambda row: (-row[0], row[1]))
    rest = len(held) - shown
    text = ", ".join(f"{name} ({n})" for n, name in held[:shown])
    return text + (f" and {rest} more" if rest > 0 else "")
