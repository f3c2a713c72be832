"""The figures say what the report says."""

import pytest
from hand_report import kernel, rank, roofline

from perfdiag.cli.reporters.page import figures

BUDGETS = [{"launch": 2_000_000, "copy": 1_000_000}, {"launch": 4_000_000}]


def test_bars_add_up_to_the_budget() -> None:
    """Each bar is as high as the budget is long, in ms."""
    found = figures.stacked(["a", "b"], BUDGETS, "step")
    assert [sum(trace["y"][i] for trace in found["data"]) for i in range(2)] == [3, 4]


def test_leaves_without_time_are_not_drawn() -> None:
    """A leaf that no bar has is no trace, and the order is that of the contract."""
    found = figures.stacked(["a", "b"], BUDGETS, "step")
    assert [trace["name"] for trace in found["data"]] == ["copies", "launch"]


def test_bars_of_one_name_stay_apart() -> None:
    """Steps may be called alike: they stand at numbers, not at names."""
    found = figures.stacked(["train", "train"], BUDGETS, "step")
    assert found["data"][0]["x"] == [0, 1]


def test_few_ticks_for_many_bars() -> None:
    """Names under the bars are as many as can be read."""
    found = figures.stacked([str(i) for i in range(200)], [BUDGETS[0]] * 200, "step")
    assert len(found["layout"]["xaxis"]["ticktext"]) <= 16


def test_a_column_of_the_heat_map_is_a_whole() -> None:
    """The shares of a rank sum to 100 %."""
    ranks = [rank(number) for number in range(4)]
    cells = figures.heat_map([str(r.rank) for r in ranks], [r.budget_ns for r in ranks])["data"][0]
    for column in zip(*cells["z"], strict=True):
        assert sum(column) == pytest.approx(100, abs=0.01)


def test_kernels_that_are_not_believed_are_not_drawn() -> None:
    """Above a peak or without arithmetic there is no place in a roofline."""
    kernels = [
        kernel("a", "a", 1, ("fp32", 1.0, 1.0), "above peak"),
        kernel("b", "b", 1, ("fp32", 0.0, 1.0), "memory"),
        kernel("c", "c", 1, ("fp32", 0.001, 1.0), "memory"),
    ]
    assert [one.name for one in figures.drawable(kernels)] == ["c"]


def test_no_kernel_is_above_its_roof() -> None:
    """At each point's intensity the roof of its type is higher than the point."""
    found = roofline()
    for one in figures.drawable(found.kernels):
        roof = min(
            found.peak_flops_per_s[one.dtype],
            (one.intensity or 0) * (found.peak_bytes_per_s or 0),
        )
        assert one.flops_per_s <= roof * 1.001


def test_the_roof_bends_at_the_ridge() -> None:
    """It rises with the bandwidth of the memory up to the peak, and stays there."""
    line = next(
        trace for trace in figures.roofline(roofline())["data"] if trace["name"] == "bf16 roof"
    )
    (x0, x1, x2), (y0, y1, y2) = line["x"], line["y"]
    assert x1 == pytest.approx(271e12 / 1.6e12)
    assert (y1, y2) == (271, 271)
    assert y0 / x0 == pytest.approx(1.6)
    assert x0 < x1 < x2


def test_names_are_no_markup_for_plotly() -> None:
    """Plotly reads tags, entities and mathematics in any text."""
    found = figures.stacked(["<a href='x'>$x$ & y"] * 2, BUDGETS, "step")
    told = found["layout"]["xaxis"]["ticktext"][0] + found["data"][0]["text"][0]
    assert "<a" not in told
    assert "$" not in told
    assert "&amp;" in told
