"""Texts out of traces, cut to what somebody can read: a name may be a megabyte long."""

from typing import Any

__all__ = ["MOST_CHARS", "shortened", "shortened_within"]

MOST_CHARS = 4000
"""Of a text, more of which no panel shows and nobody reads; a choice."""


def shortened(text: str, most: int = MOST_CHARS) -> str:
    """Beginning and end of a text that has more than so many characters.

    Lone surrogates, which UTF-8 cannot hold, become question marks; NUL, which ends a text in SQL,
    goes.
    """
    text = text.replace("\0", "")
    if len(text) > most:
        tail = (most - 1) // 2
        text = f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"
    return text.encode("utf-8", "replace").decode()


def shortened_within(value: Any, most: int = MOST_CHARS) -> Any:
    """Plain data with all its texts shortened, keys aside."""
    if isinstance(value, dict):
        return {key: shortened_within(one, most) for key, one in value.items()}
    if isinstance(value, list):
        return [shortened_within(one, most) for one in value]
    return shortened(value, most) if isinstance(value, str) else value
