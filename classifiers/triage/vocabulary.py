"""Which names are public, and so need not be hidden: see `public_names.toml`."""

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["is_public_annotation", "is_public_name", "public_words", "words_of"]


class _Vocabulary(NamedTuple):
    annotations: re.Pattern[str]
    patterns: re.Pattern[str]
    words: frozenset[str]


@cache
def _vocabulary() -> _Vocabulary:
    text = Path(__file__).with_name("public_names.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return _Vocabulary(
        _any_of(table["annotations"]), _any_of(table["patterns"]), frozenset(table["words"].split())
    )


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def public_words() -> frozenset[str]:
    """Words of public names, in lower case."""
    return _vocabulary().words


def words_of(name: str) -> list[str]:
    """Words of three letters and more in a name, in lower case."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return [word.lower() for word in re.findall(r"[^\W\d_]+", spaced) if len(word) > 2]


@lru_cache(100_000)
def is_public_name(name: str) -> bool:
    """Whether the name of a kernel, an operator, a call or a type gives nothing away."""
    found = _vocabulary()
    return bool(found.patterns.fullmatch(name)) or all(
        word in found.words for word in words_of(name)
    )


@lru_cache(100_000)
def is_public_annotation(name: str) -> bool:
    """Whether the name of a range gives nothing away: users name ranges with plain words too."""
    return bool(_vocabulary().annotations.fullmatch(name))
