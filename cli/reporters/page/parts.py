"""What the sections of the page are made of: sections, tables, bars, charts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfdiag.cli.reporters.bars import LEAF_STYLE, LEAF_TEXT, leaves_of
from perfdiag.cli.reporters.page.markup import Child, Html, tag
from perfdiag.cli.reporters.units import percent
from perfdiag.trace_schemas.report import Label

__all__ = [
    "Cell",
    "bar",
    "cap",
    "cell",
    "chart",
    "facts",
    "folded",
    "label_mark",
    "section",
    "swatch",
    "table",
]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        shown: what it shows.
        value: by what it is sorted; None: by its text.
    """

    shown: Child
    value: float | None = None


def cell(shown: Child, value: float | None = None) -> Cell:
    """A cell that is sorted by a number."""
    return Cell(shown, value)


def section(name: str, title: str, note: str, *body: Child) -> Html:
    """A part of the page under a heading that `name` leads to."""
    head = tag("h2", title, id=f"{name}-title")
    remark = tag("p", note, class_="note") if note else None
    return tag("section", head, remark, *body, id=name, aria_labelledby=f"{name}-title")


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell | Child]],
    *,
    name: str = "",
) -> Html:
    """A table with a caption; the first cell of a row is its heading.

    Args:
        caption: what it shows.
        columns: their titles; one that begins with `>` is of numbers and stands right.
        rows: as many cells as there are columns.
        name: where given, the reader can sort the table and filter its rows.
    """
    numeric = [column.startswith(">") for column in columns]
    heads = [
        tag("th", _head(title.lstrip(">"), sorts=bool(name)), scope="col", class_=_number(right))
        for title, right in zip(columns, numeric, strict=True)
    ]
    body = [tag("tr", _cells(row, numeric)) for row in rows]
    grid = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", heads)),
        tag("tbody", body),
        id=name or None,
        class_="sorts" if name else None,
    )
    shape = "scroll tall" if name else "scroll"
    return tag(
        "div", grid, class_=shape, role="region", aria_label=f"{caption}: table", tabindex="0"
    )


def _head(title: str, *, sorts: bool) -> Child:
    if not sorts:
        return title
    return tag("button", title, tag("span", class_="arrow", aria_hidden="true"), type="button")


def _number(right: bool) -> str | None:
    return "n" if right else None


def _cells(row: Sequence[Cell | Child], numeric: Sequence[bool]) -> list[Html]:
    return [
        _cell(one if isinstance(one, Cell) else Cell(one), right=right, first=not i)
        for i, (one, right) in enumerate(zip(row, numeric, strict=True))
    ]


def _cell(one: Cell, *, right: bool, first: bool) -> Html:
    value = None if one.value is None else f"{one.value:.6g}"
    if first:
        return tag("th", one.shown, scope="row", data_v=value, class_=_number(right))
    return tag("td", one.shown, data_v=value, class_=_number(right))


def facts(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Headings and what they are."""
    return tag("dl", [(tag("dt", key), tag("dd", value)) for key, value in pairs])


def folded(summary: Child, *body: Child, opened: bool = False) -> Html:
    """What is shown when asked for."""
    return tag("details", tag("summary", summary), *body, open=opened)


def cap(shown: int, total: int, what: str) -> str:
    """That not all is shown; empty where it is."""
    if shown >= total:
        return ""
    return f"{shown:,} of {total:,} {what} shown; the JSON report has all."


def label_mark(label: Label) -> Html:
    """A label with its colour, which text alone could not have without losing contrast."""
    return tag("span", tag("i", class_=f"dot {label}", aria_hidden="true"), label, class_="label")


def swatch(leaf: str) -> Html:
    """The colour of a leaf."""
    return tag("i", class_="dot", style=f"background:{LEAF_STYLE[leaf]}", aria_hidden="true")


def bar(budget_ns: Mapping[str, int], scale: float = 1.0) -> Html:
    """A time budget as a stacked bar: of a whole line, the share `scale`."""
    leaves = leaves_of(budget_ns)
    whole = sum(budget_ns[leaf] for leaf in leaves)
    pieces = [
        tag(
            "i",
            style=f"flex-grow:{budget_ns[leaf] / whole:.5f};background:{LEAF_STYLE[leaf]}",
            title=f"{LEAF_TEXT[leaf][0]} {percent(budget_ns[leaf], whole)}",
        )
        for leaf in leaves
    ]
    width = f"width:{100 * min(1.0, max(0.0, scale)):.2f}%"
    return tag("span", pieces, class_="bar", style=width, aria_hidden="true")


def chart(name: str, title: str, said: str, *, height: int) -> Html:
    """Where a figure of that name is drawn, and what it shows in words.

    Args:
        name: of the figure.
        title: its heading.
        said: what it shows, for those who do not see it.
        height: in pixels.
    """
    spot = tag(
        "div",
        class_="chart",
        data_figure=name,
        role="img",
        aria_label=f"{title}. {said}",
        style=f"height:{height}px",
    )
    return tag("figure", tag("figcaption", tag("strong", title), " ", said), spot)
