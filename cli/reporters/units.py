"""Numbers and names for people: adaptive units, shares, and text that is safe on a terminal."""

import re
import unicodedata

from rich.cells import cell_len

__all__ = [
    "clean",
    "count",
    "duration",
    "kernel_name",
    "percent",
    "plural",
    "sentence",
    "shorten",
    "size",
    "valid",
]

_LONGEST = 4000
"""Characters of a name that are looked at: names of templated kernels reach 10 kB."""

_ESCAPE = re.compile(
    r"(?:\x1b\]|\x9d).*?(?:\x07|\x1b\\|\x9c|$)"  # OSC: titles, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]).*?(?:\x1b\\|\x9c|$)"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
"""Escape sequences of ECMA-48 and xterm, in the 7-bit and the 8-bit form."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that a terminal may act upon or cannot show (bidi overrides are Cf)."""


def duration(ns: float) -> str:
    """A time in nanoseconds in the unit that reads best, with three significant digits."""
    for unit, length in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= 0.9995 * length:
            return f"{_three(ns / length)} {unit}"
    return f"{ns:.0f} ns"


def size(bytes_: float) -> str:
    """A size in bytes in decimal units, with three significant digits."""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= 0.9995 * length:
            return f"{_three(bytes_ / length)} {unit}"
    return f"{bytes_:.0f} B"


def _three(value: float) -> str:
    magnitude = abs(value)
    digits = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2
    return f"{value:.{digits}f}"


def percent(part: float, whole: float) -> str:
    """The share of `part` in `whole`; empty when there is no whole."""
    if not whole:
        return ""
    share = part / whole
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def count(value: float) -> str:
    """A number of things: with separators, and one decimal only where it says something."""
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"


def plural(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def sentence(text: str) -> str:
    """A sentence that may quote names: cleaned, and not longer than a screen can bear."""
    return shorten(text, 800)


def valid(text: str) -> str:
    """`text` with the replacement character for lone surrogates, which UTF-8 cannot hold."""
    return _SURROGATE.sub("\ufffd", text)


def clean(text: str) -> str:
    """`text` without anything that a terminal would act upon, on one line.

    Names come out of traces, and traces come from anywhere.
    """
    if text.isascii() and text.isprintable() and len(text) <= _LONGEST:
        return text
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]}…{text[-half:]}"
    text = _ESCAPE.sub("", text)
    safe = (" " if c.isspace() else c for c in text if c.isspace() or _is_safe(c))
    return " ".join("".join(safe).split())


def _is_safe(character: str) -> bool:
    return unicodedata.category(character) not in _UNSAFE


def shorten(text: str, width: int) -> str:
    """`text`, cleaned, cut in the middle so that it takes at most `width` (>= 1) cells."""
    text = clean(text)
    if cell_len(text) <= width and len(text) <= 2 * width:  # piled-up marks take no cell
        return text
    head, tail = (width - 1) - (width - 1) // 2, (width - 1) // 2
    return f"{_fit(text, head)}…{_fit(text[::-1], tail)[::-1]}"


_SAYS_LITTLE = re.compile(
    r"^void |at::native::|\(anonymous namespace\)::|<unnamed>::|^std::enable_if.*?>::type "
)


def kernel_name(name: str, width: int) -> str:
    """The name of a kernel in at most `width` cells: its end goes, not what tells it apart."""
    name = clean(_SAYS_LITTLE.sub("", name[:_LONGEST]))
    return name if cell_len(name) <= width else f"{_fit(name, width - 1)}…"


def _fit(text: str, width: int) -> str:
    text = text[:width]  # no character takes less than one cell, combining marks aside
    while cell_len(text) > width:
        text = text[:-1]
    return text
