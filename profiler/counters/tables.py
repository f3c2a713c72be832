"""Tables of comma-separated values: header, rows, units in column names, damaged rows."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from perfdiag.trace_schemas.errors import InputError

__all__ = ["Table", "device_number", "read_table", "split_header"]

_UNIT = re.compile(r"(.*\S)\s*[\[(]([^\[\]()]{1,20})[\])]")
_UNITS_IN_NAMES = frozenset(("%", "VRAM%", "W", "C", "B", "MiB", "MHz", "MB", "mV", "V", "s", "us"))
_DEVICE = re.compile(r"(?:GPU|gpu|card|nvidia|device)?\s*(\d{1,4})")


@dataclass(slots=True)
class Table:
    """A table in text.

    Attributes:
        header: names of the columns.
        rows: cells, as many a row as there are columns, stripped.
        ragged: rows with another number of cells, which are left out.
    """

    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    ragged: int = 0


def read_table(text: str, path: str, is_header: Callable[[Sequence[str]], bool]) -> Table:
    """Read a table; what stands above its header is skipped, and the header may come again.

    Args:
        text: the file.
        path: for messages.
        is_header: whether these cells are the header.

    Raises:
        InputError: there is no header, or the text breaks the rules of CSV.
    """
    lines = _cells(text, path)
    header = next((cells for cells in lines if is_header(cells)), None)
    if header is None:
        raise InputError(path, "has no header row; record it again without `noheader`")
    table = Table(_trimmed(header))
    for cells in lines:
        if not any(cells) or cells[: len(table.header)] == table.header:
            continue
        row = cells[: len(table.header)] if not any(cells[len(table.header) :]) else cells
        if len(row) == len(table.header):
            table.rows.append(row)
        else:
            table.ragged += 1
    return table


def _cells(text: str, path: str) -> Iterator[list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    try:
        for row in rows:
            yield [cell.strip() for cell in row]
    except csv.Error as error:
        problem = f"is no table in CSV from line {rows.line_num} on ({error}); record it again"
        raise InputError(path, problem) from error


def _trimmed(header: list[str]) -> list[str]:
    return header[:-1] if header and not header[-1] else header


def split_header(column: str) -> tuple[str, str]:
    """Name and unit of a column like `power.draw [W]` or `GPU use (%)`; the unit may be empty."""
    match = _UNIT.fullmatch(column.strip())
    if match and (match[2] in _UNITS_IN_NAMES or column.rstrip().endswith("]")):
        return match[1], "%" if match[2] == "VRAM%" else match[2]
    return column.strip(), ""


def device_number(text: str) -> int | None:
    """Ordinal in `0`, `GPU 0`, `card0` or `nvidia0`; None where it names no whole device."""
    match = _DEVICE.fullmatch(text.strip())
    return int(match[1]) if match else None
