"""When samples were taken: what a file says, and what the user must add."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from perfdiag.profiler.counters.cells import Number, in_base, parse_cell
from perfdiag.trace_schemas.counters import Unit
from perfdiag.trace_schemas.recording import Int64s

__all__ = [
    "ClockHints",
    "ClockQuality",
    "TimeKind",
    "anchor",
    "parse_time",
    "quality_of",
    "unwrap_midnights",
]

ClockQuality = Literal["exact", "given", "local", "none"]
TimeKind = Literal["unix", "local", "relative", "index"]

_NS = 10**9
_DAY_NS = 86_400 * _NS
_LATEST_NS = 2**62
_SUFFIXES = {"_ns": 1, "_us": 10**3, "_ms": 10**6, "_s": _NS}
# A number without a unit is an epoch in the largest unit in which it lies after 1973.
_EPOCHS = ((10**17, 1), (10**14, 10**3), (10**11, 10**6), (10**8, _NS))
_DATE = re.compile(
    r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)(?:[T ,]+(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|UTC|[+-]\d\d:?\d\d)?"
)
_TIME = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class ClockHints:
    """What the user says of the clock of a file that does not say it itself.

    Attributes:
        utc_offset_s: zone of local times: seconds that they are ahead of UTC.
        start_unix_ns: Unix time of the first sample, where samples bear no absolute time.
        period_ns: time between samples, where they bear none at all.
    """

    utc_offset_s: int | None = None
    start_unix_ns: int | None = None
    period_ns: int | None = None


def parse_time(text: str, column: str = "") -> tuple[int, TimeKind] | None:
    """Read a timestamp.

    Args:
        text: a Unix time, or a date and time with or without zone.
        column: name of its column; a suffix like `_ms` gives the unit.

    Returns:
        Nanoseconds since the epoch (`unix`), the same if the zone were UTC (`local`), or since an
        unknown moment (`relative`); None for what is no time.
    """
    cell = text.strip()
    match = _DATE.fullmatch(cell)
    if match and (match[4] or not cell.isdigit()):
        return _date(match)
    clock = _TIME.fullmatch(cell)
    if clock:
        hour, minute, second, fraction = clock.groups()
        return _clock_ns(hour, minute, second, fraction), "relative"
    number = parse_cell(cell)
    return _number(number, column) if isinstance(number, Number) else None


def _date(match: re.Match[str]) -> tuple[int, TimeKind] | None:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        date = datetime(int(year), int(month), int(day), tzinfo=UTC)
    except ValueError:
        return None
    local = int(date.timestamp()) * _NS + _clock_ns(hour or "0", minute or "0", second or "0", "")
    local += int((fraction or "").ljust(9, "0"))
    if not zone:
        return local, "local"
    return local - _zone_s(zone) * _NS, "unix"


def _clock_ns(hour: str, minute: str, second: str, fraction: str | None) -> int:
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    return seconds * _NS + int((fraction or "").ljust(9, "0"))


def _zone_s(zone: str) -> int:
    if zone in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds


def _number(number: Number, column: str) -> tuple[int, TimeKind] | None:
    value = in_base(number, Unit("", 1, 1))
    if not isinstance(value, float) or value < 0:
        return None
    named = next((ns for suffix, ns in _SUFFIXES.items() if column.endswith(suffix)), None)
    guess = next((ns for floor, ns in _EPOCHS if value >= floor), None)
    scale = named or guess or _NS
    exact = in_base(number, Unit("", scale, 1))
    if not isinstance(exact, float) or exact > _LATEST_NS:
        return None
    whole = number.digits * scale * 10 ** max(number.exponent, 0)
    time_ns = whole // 10 ** max(-number.exponent, 0)
    return time_ns, "unix" if time_ns >= 10**17 else "relative"


def anchor(
    times: Sequence[int], kind: TimeKind, hints: ClockHints, default_period_ns: int
) -> Int64s:
    """Times of samples in nanoseconds, as absolute as file and hints together allow.

    Args:
        times: what the file says; ordinals of samples where `kind` is `index`.
        kind: what these numbers are.
        hints: what the user adds.
        default_period_ns: between samples that bear no time, if the user does not say.
    """
    stamps = np.array(times, np.int64)
    if kind == "local":
        return stamps - (hints.utc_offset_s or 0) * _NS
    if kind == "index":
        stamps *= hints.period_ns or default_period_ns
    if kind in ("index", "relative"):
        return stamps + (hints.start_unix_ns or 0)
    return stamps


def quality_of(kind: TimeKind, hints: ClockHints) -> ClockQuality:
    """How far the anchored times can be trusted."""
    if kind == "unix":
        return "exact"
    if kind == "local":
        return "local" if hints.utc_offset_s is None else "given"
    return "none" if hints.start_unix_ns is None else "given"


def unwrap_midnights(times: Sequence[int]) -> list[int]:
    """Times of day that go on where they fell back to the start of a day."""
    days, last, unwrapped = 0, None, []
    for time in times:
        if last is not None and time < last - _DAY_NS // 2:
            days += 1
        last = time
        unwrapped.append(time + days * _DAY_NS)
    return unwrapped
