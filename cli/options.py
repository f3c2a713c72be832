"""What the options of several commands have in common, and how their texts are read."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer

__all__ = [
    "PROCESSORS",
    "Ceilings",
    "Config",
    "Counters",
    "CountersOffset",
    "CountersUtcOffset",
    "Deadline",
    "Device",
    "DeviceTrack",
    "Engine",
    "EngineName",
    "Jobs",
    "MaxMemory",
    "Output",
    "Quiet",
    "RowFormat",
    "Section",
    "StepMarker",
    "TimeRange",
    "TimeUnit",
    "Traces",
    "Verbose",
    "nanoseconds",
    "regex",
    "seconds",
    "size",
    "time_range",
    "utc_offset",
]

EngineName = Literal["wasm", "native"]

Engine = Annotated[
    EngineName,
    typer.Option(
        help="Trace processor: the embedded one, or a trace_processor_shell from "
        "PERFDIAG_TRACE_PROCESSOR or the PATH."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result to this file.",
        show_default="standard output",
    ),
]
RowFormat = Annotated[
    Literal["table", "json", "csv"],
    typer.Option("--format", help="A table for people, a JSON array of rows, or CSV."),
]
PROCESSORS = os.cpu_count() or 1

Jobs = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Processes in which traces of several ranks are read.",
        show_default="the processors of the machine",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Thresholds of diagnoses: a perfdiag.toml, or a pyproject.toml with [tool.perfdiag].",
        show_default="the nearest one here or above",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress and no notices.", show_default="off"),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also show each input, and infos.", show_default="off"),
]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_NS_PER_S = 1_000_000_000


class TimeRange(NamedTuple):
    """Part of a trace, in nanoseconds from its start."""

    start_ns: int
    end_ns: int


def regex(text: str) -> str:
    """A regular expression, checked."""
    try:
        re.compile(text)
    except re.error as error:
        msg = f"{text!r} is not a regular expression: {error}."
        raise typer.BadParameter(msg) from error
    return text


def seconds(text: str) -> float:
    """A time in seconds, more than nothing and less than for ever."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        msg = f"{text!r} is not a time in seconds: give a number above 0."
        raise typer.BadParameter(msg)
    return value


def size(text: str) -> int:
    """A size in bytes: `8GB` (decimal), `512MiB` (binary) or a bare number."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is not a size: write it like 8GB, 512MiB or 1000000."
        raise typer.BadParameter(msg)
    number, prefix, binary = match.groups()
    bytes_ = int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " "))
    if bytes_ < 1:
        msg = f"{text!r} is no memory at all: give at least one byte."
        raise typer.BadParameter(msg)
    return bytes_


def nanoseconds(text: str) -> int:
    """A whole number of nanoseconds, of either sign."""
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = 1 << 63
    if not -(1 << 62) < value < 1 << 62:
        msg = f"{text!r} is not a number of nanoseconds: give a whole number like -7200000000000."
        raise typer.BadParameter(msg)
    return value


def utc_offset(text: str) -> int:
    """How many seconds local time is ahead of UTC: `+02:00`, `-0530`, `Z`, or seconds."""
    match = _OFFSET.fullmatch(text.strip())
    if text.strip().upper() in ("Z", "UTC"):
        return 0
    try:
        value = int(text) if match is None else int(match[2]) * 3600 + int(match[3]) * 60
    except ValueError:
        value = 1 << 31
    if abs(value) > 86_400:
        msg = f"{text!r} is not an offset from UTC: write it like +02:00, or as seconds."
        raise typer.BadParameter(msg)
    return -value if match is not None and match[1] == "-" else value


def time_range(text: str) -> TimeRange:
    """The range that `START:END` names, in seconds from the start of the trace."""
    first, _, last = text.partition(":")
    try:
        start_ns, end_ns = round(float(first) * _NS_PER_S), round(float(last) * _NS_PER_S)
    except (ValueError, OverflowError) as error:
        msg = f"{text!r} is not START:END in seconds from the start of the trace, like 1.5:3."
        raise typer.BadParameter(msg) from error
    if start_ns < 0 or not start_ns < end_ns:
        msg = f"{text!r} is an empty range: START must be at least 0 and less than END."
        raise typer.BadParameter(msg)
    return TimeRange(start_ns, end_ns)


Counters = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Hardware counters sampled beside the trace, of any tool that docs/counters.md "
        "names; may be given several times.",
        show_default="none",
    ),
]
CountersOffset = Annotated[
    int | None,
    typer.Option(
        parser=nanoseconds,
        metavar="NS",
        help="Add this to times of counters; without absolute times, how long after the start "
        "of the trace they begin.",
        show_default="by the clocks",
    ),
]
CountersUtcOffset = Annotated[
    int | None,
    typer.Option(
        parser=utc_offset,
        metavar="OFFSET",
        help="How far local times of counters are ahead of UTC: +02:00, or seconds.",
        show_default="as the file says",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Peaks of this device, by a name of docs/devices.md.",
        show_default="that of the trace",
    ),
]
Ceilings = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Peaks that were measured on the device, as JSON.",
        show_default="the table of devices",
    ),
]
Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Traces of one job: files, folders of rank files, archives, globs; - is stdin.",
    ),
]
StepMarker = Annotated[
    str | None,
    typer.Option(
        parser=regex,
        metavar="REGEX",
        help="Annotations whose name matches are the steps.",
        show_default="the markers of known frameworks",
    ),
]
DeviceTrack = Annotated[
    str | None,
    typer.Option(
        parser=regex,
        metavar="REGEX",
        help="Tracks of a foreign trace whose name matches are device lanes.",
        show_default="recognised by what they hold",
    ),
]
TimeUnit = Annotated[
    Literal["us", "ns", "ms"] | None,
    typer.Option(help="Unit of the times in the trace.", show_default="as the format says"),
]
Section = Annotated[
    TimeRange | None,
    typer.Option(
        parser=time_range,
        metavar="START:END",
        help="Only this part, in seconds from the start of the trace, like 1.5:3.",
        show_default="the whole trace",
    ),
]
MaxMemory = Annotated[
    int | None,
    typer.Option(
        parser=size,
        metavar="SIZE",
        help="Refuse an input that needs more memory, like 8GB.",
        show_default="what the machine has",
    ),
]
Deadline = Annotated[
    float,
    typer.Option(
        parser=seconds,
        metavar="SECONDS",
        help="Give up a call to the trace processor after this.",
        show_default="600",
    ),
]
