"""Which names are public, and so need not be hidden: see `public_names.toml`."""

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "is_public_annotation",
    "is_public_name",
    "is_public_value",
    "public_words",
    "words_of",
]

_PARTS = re.compile(r"[^\W\d_]+|\d+")
_ADDRESS = re.compile(r"\d+(\.\d+){3}")
_BETWEEN_VALUES = re.compile(r"[\[\](),;\s]+")
_VALUE = re.compile(
    r"([+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|true|false|none|[+-]?inf|nan)?", re.IGNORECASE | re.ASCII
)
_SHORTEST = 3
"""Letters of a word: what is shorter may be anything, such as initials."""


class _Vocabulary(NamedTuple):
    annotations: re.Pattern[str]
    patterns: re.Pattern[str]
    numbers: re.Pattern[str]
    short: frozenset[str]
    words: frozenset[str]


@cache
def _vocabulary() -> _Vocabulary:
    text = Path(__file__).with_name("public_names.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return _Vocabulary(
        _any_of(table["annotations"]),
        _any_of(table["patterns"]),
        _any_of(table["numbers"]),
        frozenset(table["short"].split()),
        frozenset(table["words"].split()),
    )


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.ASCII)


def public_words() -> frozenset[str]:
    """Words of public names, in lower case."""
    return _vocabulary().words


def words_of(name: str) -> list[str]:
    """Words of three letters and more in a name, in lower case."""
    return [part for part in _parts(name) if len(part) >= _SHORTEST and not part.isdigit()]


def _parts(name: str) -> list[str]:
    """Runs of letters, split before capitals and in lower case, and numbers."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return [part.lower() for part in _PARTS.findall(spaced)]


@lru_cache(100_000)
def is_public_name(name: str) -> bool:
    """Whether the name of a kernel, an operator, a call or a type gives nothing away."""
    found = _vocabulary()
    if found.patterns.fullmatch(name):
        return True
    if not name.isascii() or _ADDRESS.search(name):
        return False
    parts = _parts(found.numbers.sub(" ", name))
    is_named = any(part in found.words for part in parts)
    return is_named and all(_is_public_part(part, found) for part in parts)


def _is_public_part(part: str, found: _Vocabulary) -> bool:
    if part.isdigit():
        return len(part) < _SHORTEST
    return part in (found.short if len(part) < _SHORTEST else found.words)


@lru_cache(100_000)
def is_public_value(text: str) -> bool:
    """Whether an argument gives nothing away: numbers, flags, lists of them, public names."""
    parts = _BETWEEN_VALUES.split(text)
    return all(_VALUE.fullmatch(part) for part in parts) or is_public_name(text)


@lru_cache(100_000)
def is_public_annotation(name: str) -> bool:
    """Whether the name of a range gives nothing away: users name ranges with plain words too."""
    return bool(_vocabulary().annotations.fullmatch(name))
