"""Cells as tools print them: numbers, units, marks and sentinels."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiag.profiler.counters.cells import (
    Missing,
    Number,
    in_base,
    parse_cell,
    split_list,
    unit_of,
)
from perfdiag.trace_schemas.counters import Unit, find_unit

PLAIN = Unit("", 1, 1)


def value(text: str, unit: Unit = PLAIN) -> float | Missing:
    number = parse_cell(text)
    return number if isinstance(number, Missing) else in_base(number, unit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "N/A",
        "n/a",
        "[N/A]",
        "[Not Supported]",
        "[Unknown Error]",
        "[GPU requires reset]",
        "<not counted>",
        "<not supported>",
        "<<<NULL>>>",
        "NaN",
        "null",
        "N/A (Secondary die)",
        "[N/A, N/A]",
    ],
)
def test_marks_are_missing(text: str) -> None:
    """What a tool writes where it has no value is no value, and no damage."""
    assert parse_cell(text) is Missing.MARK


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775792",
        "9223372036854775793",
        "9223372036854775794",
        "9.223372036854776e+18",
        "9.223372036854775794e+18",
        "9.22337203685478e+18",
        "140737488355328.0",
        "140737488355330",
        "1.40737488355328e+14",
        "2147483632",
        "2147483634",
    ],
)
def test_blanks_of_dcgm_are_missing(text: str) -> None:
    """DCGM's sentinels, as integers, doubles, and what exporters make of them."""
    assert parse_cell(text) is Missing.MARK


@pytest.mark.parametrize("text", ["2147483631", "2147483636", "140737488355327", "9e18"])
def test_neighbours_of_blanks_are_numbers(text: str) -> None:
    """A number beside a sentinel is a number."""
    assert value(text) == float(text)


@pytest.mark.parametrize(
    "text",
    ["N/A161262243332996445", "+Inf", "1.2.3", "1,23", "12,34,56", "abc", "--5", "0x", "5 6", "."],
)
def test_damage_is_no_number(text: str) -> None:
    """Two values run together, and the like, are neither a number nor missing."""
    assert parse_cell(text) is Missing.DAMAGE


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("690.00 W", Number(69000, -2, "W")),
        ("99 %", Number(99, 0, "%")),
        ("1,234,567", Number(1234567, 0, "")),
        ("1,048.58", Number(104858, -2, "")),
        ("(2100Mhz)", Number(2100, 0, "Mhz")),
        ("0x0000000000000004", Number(4, 0, "")),
        ("-12.5e-3", Number(-125, -4, "")),
        (" 7 ", Number(7, 0, "")),
        ("UNTHROTTLED", Number(0, 0, "")),
        ("Not Active", Number(0, 0, "")),
        ("Active", Number(1, 0, "")),
    ],
)
def test_numbers_keep_their_unit(text: str, number: Number) -> None:
    """Separators, signs, exponents, hexadecimal masks, words for on and off."""
    assert parse_cell(text) == number


decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4).filter(
    lambda d: abs(d) < 10**9  # below every sentinel
)


@given(decimals, st.sampled_from(["%", "MiB", "MHz", "mJ", "us", "Gbyte", "GB/s", "W"]))
def test_conversions_round_once(number: object, symbol: str) -> None:
    """The value in base units is the double that lies nearest to the exact one."""
    unit = find_unit(symbol)
    exact = Fraction(str(number)) * unit.numerator / unit.denominator
    assert value(f"{number:f}", unit) == float(exact)


@given(st.floats(allow_nan=False, allow_infinity=False, max_value=1e9))
def test_doubles_come_back(number: float) -> None:
    """A number that a program printed with all its digits is that number."""
    assert value(repr(number)) == number


@given(st.text(max_size=40))
def test_any_text_is_read(text: str) -> None:
    """No cell makes the reader fail, however odd; what it gives is finite."""
    found = value(text, find_unit("MiB"))
    assert isinstance(found, Missing) or abs(found) < float("inf")


def test_numbers_beyond_doubles_are_damage() -> None:
    """A value that no double holds is not infinity."""
    assert value("1e999", find_unit("GiB")) is Missing.DAMAGE
    assert value("1e-999") == 0.0


def test_units_go_by_trust() -> None:
    """The cell's own unit, else its column's, else the vocabulary's."""
    watts = find_unit("W")
    assert unit_of(Number(1, 0, "mW"), "kB", watts) == find_unit("mW")
    assert unit_of(Number(1, 0, ""), "kB", watts) == find_unit("kB")
    assert unit_of(Number(1, 0, ""), "", watts) == watts


def test_lists_are_split() -> None:
    """`amd-smi` prints one cell for all instances of a thing."""
    assert split_list("[0, 'N/A', 12]") == ["0", "N/A", "12"]
    assert split_list("[N/A]") is None
    assert split_list("12") is None
