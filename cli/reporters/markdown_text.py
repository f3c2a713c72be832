"""Text in markdown of GitHub's kind that stays text, wherever it comes from.

Names come out of traces. Where markdown is shown they must not become links, mentions, references
or markup: https://github.github.com/gfm/ says what would.
"""

import re
from collections.abc import Iterable, Sequence

from perfdiag.cli.reporters.units import shorten

__all__ = ["code", "prose", "table"]

_MARKUP = re.compile(r"[\\`*_{}\[\]#!|~$]|^[-+=](?=[-+=\s]|$)")
_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
"""Begins a list."""

_REFERENCES = re.compile(
    r"(?<=@)(?=\w)"  # somebody's name
    r"|(?<=#)(?=\w)|(?<=GH)(?=-\d)"  # an issue
    r"|(?<=:)(?=//)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)|(?<=www)(?=\.)"  # an address
    r"|(?<=[0-9a-f]{6})(?=[0-9a-f])",  # a commit
    re.IGNORECASE,
)
_ZERO_WIDTH = "\u200b"
"""Takes no room and ends what would be a reference. Neither a backslash nor an entity does: they
are gone by the time that references are looked for."""


def prose(text: str, width: int = 1200) -> str:
    """A sentence that may quote names, on one line; what stands between backticks is code."""
    parts = shorten(text, width).split("`")
    if len(parts) % 2 == 0:  # one has no partner
        return _plain("`".join(parts))
    return "".join(code(part) if i % 2 else _plain(part) for i, part in enumerate(parts))


def _plain(text: str) -> str:
    text = _REFERENCES.sub(_ZERO_WIDTH, text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _NUMBER.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", text))


def code(name: str, width: int = 160) -> str:
    """A name as code, in which nothing is looked for; fit for the cell of a table too."""
    name = shorten(name, width).strip()
    if not name:
        return ""
    if "|" in name:  # a cell ends there even in code, and elsewhere a backslash would show
        return _plain(name)
    longest = max((len(run) for run in re.findall("`+", name)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if name[0] == "`" or name[-1] == "`" else ""
    return f"{fence}{pad}{name}{pad}{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
