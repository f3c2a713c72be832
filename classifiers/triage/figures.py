"""Numbers that a bundle states, each with the query that returns it from the slice."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["Figure", "Origin", "literal", "number_figures", "one_line"]

Origin = Literal["analysis", "window"]
"""`analysis`: of the whole trace or job, as perfdiag wrote it into the slice; `window`: counted in
what was recorded, within the time that the slice shows."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or one text that was written into the slice.

    Attributes:
        key: what asks for it, unique in its bundle.
        meaning: in words.
        sql: one statement that returns it as `value`, in plain SQL of the trace processor.
        value: what it returns.
        unit: `ns`, `bytes`, `share`, `events`, `number`, `text`, or that of a piece of evidence.
        origin: where it comes from.
        about: what it is one of several figures of: a name, a kind of work; '' for itself alone.
        rank: whose that is.
        id: `Q1` and so on, '' until the figures are numbered.
    """

    key: str
    meaning: str
    sql: str
    value: float | str
    unit: str
    origin: Origin
    about: str = ""
    rank: str = ""
    id: str = ""


def number_figures(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """The figures with their ids, in order."""
    return tuple(replace(one, id=f"Q{i}") for i, one in enumerate(figures, 1))


def literal(text: str) -> str:
    """A text as SQL has it; as bytes where it holds what would break a line or hide in it."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return f"CAST(X'{text.encode('utf-8', 'replace').hex().upper()}' AS TEXT)"


def one_line(text: str) -> str:
    """A text for a comment: what it holds cannot end the line."""
    return " ".join(re.sub(r"[^\x20-\x7e\u00a0-\u024f\u2018-\u2026]", " ", text).split())
