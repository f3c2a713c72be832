"""The stacked bar and its colours."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from perfdiag.cli.reporters.bars import (
    LABEL_STYLE,
    LEAF_TEXT,
    Bar,
    label_bar,
    label_text,
    leaves_of,
    split_cells,
    swatch,
)
from perfdiag.trace_schemas.report import LABELS, LEAF_LABEL, LEAVES

BUDGET = {"input": 25, "compute_kernel": 50, "copy": 0, "collective_wait": 25}


def console(*, colour: bool = False, encoding: str = "utf-8") -> Console:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(
        file=stream, width=40, force_terminal=colour, color_system="truecolor" if colour else None
    )


def drawn(bar: Bar, on: Console) -> str:
    with on.capture() as captured:
        on.print(bar)
    return captured.get()


@given(
    st.dictionaries(st.sampled_from(LEAVES), st.integers(1, 10**15), min_size=1),
    st.integers(1, 200),
)
def test_cells_sum_to_the_bar(budget: dict[str, int], cells: int) -> None:
    """No budget makes a bar longer or shorter, and no leaf is off by a cell."""
    parts = split_cells(budget, cells)
    whole = sum(budget.values())
    assert sum(width for _, width in parts) == cells
    assert all(abs(width - budget[leaf] * cells / whole) < 1 for leaf, width in parts)


def test_leaves_keep_the_order_of_the_contract() -> None:
    """Leaves that are zero are left out, the others come in one order everywhere."""
    assert leaves_of(BUDGET) == ["compute_kernel", "collective_wait", "input"]


def test_glyphs_tell_classes_apart_without_colour() -> None:
    """Without colour each class has its own glyph."""
    assert drawn(Bar(BUDGET), console()) == "█" * 20 + "▒" * 10 + "░" * 10 + "\n"


def test_ascii_where_the_terminal_has_no_more() -> None:
    """An ASCII terminal gets ASCII."""
    assert drawn(Bar(BUDGET), console(encoding="ascii")) == "#" * 20 + "+" * 10 + "-" * 10 + "\n"


def test_scale_and_widest_limit_the_bar() -> None:
    """A bar that stands for half the longest one is half as long."""
    assert drawn(Bar({"sync": 1}, scale=0.5, widest=30), console()) == "░" * 15 + "\n"


def test_the_bar_of_a_label_has_its_glyph_and_colour() -> None:
    """It is as many cells long as it is told."""
    bar = label_bar("memory-bound", 3, console())
    assert (bar.plain, bar.style) == ("▓▓▓", LABEL_STYLE["memory-bound"])
    assert label_bar("memory-bound", 3, console(colour=True)).plain == "███"
    assert label_bar("memory-bound", 3, console(encoding="ascii")).plain == "==="


def test_an_empty_budget_draws_nothing() -> None:
    """No time, no bar."""
    assert drawn(Bar({}), console()) == "\n"


def test_every_leaf_has_a_colour_of_its_own_and_a_meaning() -> None:
    """Leaves can be told apart in the legend, and are explained there."""
    styles = {swatch(leaf, console(colour=True))[1] for leaf in LEAVES}
    assert len(styles) == len(LEAVES)
    assert tuple(LEAF_TEXT) == LEAVES


def test_a_class_starts_with_the_colour_of_its_label() -> None:
    """The first leaf of a class and the class's label share a colour."""
    for label in LABELS[:4]:
        first = next(leaf for leaf in LEAVES if LEAF_LABEL[leaf] == label)
        if label != "host-bound":
            assert swatch(first, console())[1] == LABEL_STYLE[label]
        assert label_text(label).plain == label
