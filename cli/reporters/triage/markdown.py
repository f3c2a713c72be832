"""Text in Markdown of GitHub's kind that stays text, wherever it comes from."""

import re
from collections.abc import Iterable, Sequence

from perfdiag.cli.reporters.units import shorten

__all__ = ["code", "prose", "table"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:])")
_GAP = "\u200b"
"""Of no width: parts what would be taken for a mention, an issue or a link."""


def code(text: str, width: int = 160) -> str:
    """A name as a code span, cleaned and shortened: nothing in it is markup or a link."""
    text = shorten(text, width) or " "
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str, width: int = 1200) -> str:
    """A sentence that may quote names."""
    text = shorten(text, width)
    text = re.sub(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=[Ww]{3})(?=\.)", _GAP, text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    """Punctuation of plain sentences is left alone where it means nothing."""
    mark = match[1]
    return mark if mark in ".:-+()" else f"\\{mark}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
