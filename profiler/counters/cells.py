"""Numbers as monitoring tools print them: units, separators, sentinels, and marks for missing.

Missing is not zero: a mark or a sentinel becomes `Missing.MARK`, damage becomes `Missing.DAMAGE`.
Numbers stay fractions of integers until they are in base units, so that a conversion rounds once.
"""

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from perfdiag.trace_schemas.counters import Unit, find_unit, is_known_unit

__all__ = ["Missing", "Number", "in_base", "parse_cell", "split_list", "unit_of"]


class Missing(Enum):
    """Why a cell holds no value."""

    MARK = "missing"
    """The tool says that it has none."""
    DAMAGE = "invalid"
    """What is there is no number."""


class Number(NamedTuple):
    """A number as printed: `digits` times ten to `exponent`, in `unit` (empty where none)."""

    digits: int
    exponent: int
    unit: str


_NUMBER = re.compile(
    r"([+-]?)(\d{1,3}(?:,\d{3})+|\d{1,400})?(?:\.(\d{0,400}))?(?:[eE]([+-]?\d{1,3}))?"
    r"(\s*[^\d\s.,+\-][^\d]{0,24})?"
)
_SIMPLE = re.compile(r"(-?\d{1,9})(?:\.(\d{1,9}))?(?: ([A-Za-z%]{1,4}))?", re.ASCII)  # most cells
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_MARKS = frozenset(
    ("", "-", "n/a", "na", "nan", "null", "none", "not supported", "not available", "no data")
)
_SUFFIXED = re.compile(r"n/a[ (].*")  # rocm-smi: `N/A (Secondary die)`
_WORDS = {
    "active": 1,
    "not active": 0,
    "throttled": 1,
    "unthrottled": 0,
    "true": 1,
    "false": 0,
}

# dcgm_fields.h and dcgm_structs.h (72fa3fe): blank, not found, not supported, not permitted, as
# 32 and 64 bits and as doubles; the last two are what six digits leave of the 64 bits.
_BLANKS = frozenset(
    (
        *(float(0x7FFFFFF0 + kind) for kind in range(4)),
        *(140737488355328.0 + kind for kind in range(4)),
        float(0x7FFFFFFFFFFFFFF0),
        9.22337203685478e18,
        9.22337203685477e18,
    )
)
_SHORTEST_BLANK = 10**9
_PLAIN = Unit("", 1, 1)


@lru_cache(1 << 16)  # the same few texts stand in the columns of every device
def parse_cell(text: str) -> Number | Missing:
    """Read one cell.

    A bracketed text (`[N/A]`, `[Unknown Error]`), an angle-bracketed one (`<not counted>`), a dash
    and an empty cell are missing, as are the blanks of DCGM. Words for on and off are 1 and 0.
    """
    simple = _SIMPLE.fullmatch(text)
    if simple is not None:
        whole, fraction, unit = simple.groups("")
        return Number(int(whole + fraction), -len(fraction), unit)
    cell = text.strip()
    lowered = cell.casefold()
    if _is_mark(lowered):
        return Missing.MARK
    if lowered in _WORDS:
        return Number(_WORDS[lowered], 0, "")
    if _HEX.fullmatch(cell):
        return Number(int(cell, 16), 0, "")
    match = _NUMBER.fullmatch(cell.removeprefix("(").removesuffix(")"))
    if match is None or (match[2] is None and not match[3]) or not _is_unit(match[5] or ""):
        return Missing.DAMAGE
    number = _number(match)
    return Missing.MARK if _is_blank(number) else number


def _number(match: re.Match[str]) -> Number:
    sign, whole, fraction, exponent, unit = match.groups()
    digits = int(f"{sign}{(whole or '').replace(',', '')}{fraction or ''}")
    return Number(digits, int(exponent or 0) - len(fraction or ""), (unit or "").strip())


def _is_unit(text: str) -> bool:
    """What stands behind a blank may be any unit; what touches the number must be known."""
    return not text or text[:1].isspace() or is_known_unit(text)


def _is_mark(cell: str) -> bool:
    if cell in _MARKS or _SUFFIXED.fullmatch(cell):
        return True
    bracketed = cell[:1] == "[" and cell[-1:] == "]" and not any(c.isdigit() for c in cell)
    return bracketed or (cell[:1] == "<" and cell[-1:] == ">")


def _is_blank(number: Number) -> bool:
    return number.digits >= _SHORTEST_BLANK and in_base(number, _PLAIN) in _BLANKS


def in_base(number: Number, unit: Unit) -> float | Missing:
    """The value in the base unit, rounded once.

    Args:
        number: as printed.
        unit: of the number; whoever knows a better one than it bears gives that.
    """
    top, bottom = number.digits * unit.numerator, unit.denominator
    if number.exponent >= 0:
        top *= 10**number.exponent
    else:
        bottom *= 10**-number.exponent
    try:
        return top / bottom  # of integers: correctly rounded
    except OverflowError:
        return Missing.DAMAGE


def split_list(text: str) -> list[str] | None:
    """Elements of a cell that holds a list, as `amd-smi` prints one a stream; None for others."""
    cell = text.strip()
    if cell[:1] != "[" or cell[-1:] != "]" or "," not in cell:
        return None
    return [part.strip().strip("'\"") for part in cell[1:-1].split(",")]


def unit_of(number: Number, header: str, fallback: Unit) -> Unit:
    """Unit of a number: its own, else that of its column, else that of the vocabulary."""
    symbol = number.unit or header
    return find_unit(symbol) if symbol else fallback
