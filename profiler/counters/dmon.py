"""`nvidia-smi dmon` and `dcgmi dmon`: tables in columns of text, headers that come again."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfdiag.profiler.counters.tables import Table
from perfdiag.profiler.counters.timelines import Sheet
from perfdiag.profiler.counters.wide import Roles, read_wide
from perfdiag.trace_schemas.errors import InputError

__all__ = ["is_dcgmi_header", "is_dmon_header", "read_dcgmi", "read_dmon"]

_DMON = re.compile(r"#\s*(?:date\b.*\b|time\b.*\b)?gpu\b", re.IGNORECASE)
_DCGMI = re.compile(r"#\s*entity\b", re.IGNORECASE)
_ENTITY = re.compile(r"\s*((?:GPU|GPU-I|GPU-CI|CPU|SW|LINK|CORE)\s+\S+)\s+", re.IGNORECASE)
_UNITS_ROW = re.compile(r"#\s*(?:YYYYMMDD|HH:MM:SS|Idx)\b", re.IGNORECASE)
_ROLES = Roles(time=("date", "time"), device=("gpu", "entity"), labels=())


@dataclass(slots=True)
class _Part:
    """A header, and the rows below it."""

    header: list[str]
    units: dict[str, str] = field(default_factory=dict)
    rows: list[list[str]] = field(default_factory=list)
    ragged: int = 0


def is_dmon_header(line: str) -> bool:
    """Whether a line is the header of `nvidia-smi dmon`."""
    return bool(_DMON.match(line.strip()))


def is_dcgmi_header(line: str) -> bool:
    """Whether a line is the header of `dcgmi dmon`."""
    return bool(_DCGMI.match(line.strip()))


def read_dmon(text: str, path: str) -> Sheet:
    """Read `nvidia-smi dmon`, in columns or as `--format csv`.

    Raises:
        InputError: the header changes on the way, or there is none.
    """
    part = _only(_parts(text, is_dmon_header), path)
    sheet = read_wide(Table(part.header, part.rows, part.ragged), "nvidia_smi", _ROLES, part.units)
    return replace(sheet, default_period_ns=10**9)  # -d is 1 s where not given


def read_dcgmi(text: str, path: str) -> Sheet:
    """Read `dcgmi dmon`. It has no times: the n-th row of an entity is its n-th sample.

    Raises:
        InputError: the header changes on the way, or there is none.
    """
    part = _only(_parts(text, is_dcgmi_header), path)
    sheet = read_wide(Table(part.header, part.rows, part.ragged), "dcgm", _ROLES)
    return replace(sheet, default_period_ns=10**9)  # -d is 1000 ms where not given


def _parts(text: str, is_header: Callable[[str], bool]) -> Iterator[_Part]:
    part: _Part | None = None
    for line in text.splitlines():
        if is_header(line) and not _UNITS_ROW.match(line.strip()):
            part = _Part(_header(line))
            yield part
        elif part is not None:
            _read_line(part, line)


def _read_line(part: _Part, line: str) -> None:
    stripped = line.strip()
    if _UNITS_ROW.match(stripped):
        part.units = dict(zip(part.header, _tokens(stripped.lstrip("# ")), strict=False))
    elif stripped and stripped[0] != "#" and stripped.upper() != "ID":
        cells = _row(line)
        if len(cells) == len(part.header):
            part.rows.append(cells)
        else:
            part.ragged += 1


def _header(line: str) -> list[str]:
    return _tokens(line.strip().lstrip("# "))


def _tokens(text: str) -> list[str]:
    if "," in text:
        return [cell.strip() for cell in text.split(",")]
    return text.split()


def _row(line: str) -> list[str]:
    """Cells of a line; the name of an entity has a blank in it."""
    match = _ENTITY.match(line)
    if match is None:
        return _tokens(line)
    return [" ".join(match[1].split()), *_tokens(line[match.end() :])]


def _only(parts: Iterator[_Part], path: str) -> _Part:
    """All rows under the one header that the file repeats."""
    every: Sequence[_Part] = list(parts)
    if not every:
        raise InputError(path, "has no header row; record it again without `noheader`")
    first = every[0]
    if any(part.header != first.header for part in every):
        problem = "has two different headers: two recordings in one file; give them one by one"
        raise InputError(path, problem)
    units = next((part.units for part in every if part.units), {})
    rows = [row for part in every for row in part.rows]
    return _Part(first.header, units, rows, sum(part.ragged for part in every))
