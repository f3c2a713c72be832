"""Figures for people, each with the query that returns it."""

from collections.abc import Sequence

from perfdiag.classifiers.triage.figures import Figure
from perfdiag.cli.reporters.markdown_text import code, prose, table
from perfdiag.cli.reporters.units import count, duration, size

__all__ = ["figure_table", "stated", "value_text"]

_COLUMNS = ("events", "ns", "bytes")
_ORIGIN = {"analysis": "analysis", "window": "counted here"}


def value_text(figure: Figure) -> str:
    """The value of a figure in its unit; texts as they are."""
    value = figure.value
    if isinstance(value, str):
        return value
    if figure.unit == "ns":
        return duration(value)
    if figure.unit == "number":
        return f"{value:.0f}"
    if figure.unit == "bytes":
        return size(value)
    if figure.unit == "share":
        return f"{value:.0%}"
    return f"{count(value) if value == round(value) else format(value, '.4g')} {figure.unit}"


def stated(figure: Figure | None) -> str:
    """A figure in a sentence, with its query; empty where there is none."""
    return "" if figure is None else f"{prose(value_text(figure))} [{figure.id}]"


def figure_table(figures: Sequence[Figure]) -> str:
    """Figures that stand alone as one table, those of which several are about a thing as another.

    The first says for each where it comes from; the others are all counted in the slice.
    """
    alone = [one for one in figures if not one.about]
    several: dict[tuple[str, str], dict[str, Figure]] = {}
    for one in figures:
        if one.about:
            several.setdefault((one.rank, one.about), {})[one.unit] = one
    rows = [(_meaning(one), stated(one), _ORIGIN[one.origin]) for one in alone]
    parts = [table(("figure", "value", "from"), rows)] if rows else []
    if several:
        head = ("counted here", "of", "events", "time, added up", "bytes")
        lines = [
            (code(about), code(rank), *(stated(found.get(unit)) for unit in _COLUMNS))
            for (rank, about), found in several.items()
        ]
        parts.append(table(head, lines))
    return "\n\n".join(parts)


def _meaning(figure: Figure) -> str:
    """In words; what a query or a rank is called is code."""
    text, _, name = figure.meaning.partition(": ")
    return f"{prose(text)}: {code(name)}" if name and not figure.rank else prose(figure.meaning)
