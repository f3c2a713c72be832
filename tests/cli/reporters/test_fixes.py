"""What people see of a fix: what it saves, by what, and how much of it is worth doing."""

import io

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters import terminal
from perfdiag.trace_schemas.report import Fix, Report

MS = 1_000_000


def lines(report: Report, width: int = 80, *, verbose: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    text = terminal.render(report, console, verbose=verbose)
    return text.split("\nWhat to do")[1].split("\nReplay")[0].splitlines()


def row(report: Report, key: str, width: int = 200, *, verbose: bool = False) -> str:
    """The first row of the fixes with a key; '' if there is none."""
    found = (line.split(maxsplit=1) for line in lines(report, width, verbose=verbose))
    return next((words[1] for words in found if words and words[0] == key), "")


def only(report: Report, **fields: object) -> Report:
    """The report with one fix, changed."""
    return replace(report, fixes=[replace(report.fixes[0], **fields)])


def bounds(report: Report) -> Report:
    """The report as it is without a replay."""

    def static(fix: Fix) -> Fix:
        return replace(fix, basis="static bound", curve_ns=[])

    return replace(report, fixes=[static(fix) for fix in report.fixes])


def test_the_heading_says_that_savings_are_replayed(report: Report) -> None:
    """And how far the unchanged replay is off."""
    note = "together 19.3 ms a step (23.9%); replayed, 0.2% off when unchanged"
    assert lines(report)[0].strip() == note


def test_the_heading_says_that_savings_are_static_bounds(report: Report) -> None:
    """Nothing was replayed then, so that nothing is off."""
    note = "together 19.3 ms a step (23.9%); static bounds, not replayed"
    assert lines(bounds(report))[0].strip() == note


def test_a_replayed_saving_is_an_interval(report: Report) -> None:
    """From low to high."""
    assert row(report, "saves") == "11.4 ms to 15.6 ms a step, 85% sure, on rank 2"


def test_a_static_bound_is_at_most_what_it_says(report: Report) -> None:
    """The estimate below it is named, but is no bound."""
    saves = row(only(bounds(report), basis="static bound"), "saves")
    assert saves.startswith("at most 15.6 ms a step (low estimate 11.4 ms), 85% sure, on rank 2")


def test_a_static_bound_without_a_spread_needs_no_estimate(report: Report) -> None:
    """It would be the same figure again."""
    one = only(report, basis="static bound", saving_low_ns=9 * MS, saving_high_ns=9 * MS)
    assert row(one, "saves").startswith("at most 9.00 ms a step, 85% sure")


def test_ranks_that_are_replayed_become_faster_together(report: Report) -> None:
    """A fix on one rank saves its time of every step; a static bound only of that rank's."""
    assert "14.2 ms a step  17.5%" in lines(only(report))[2]
    assert "3.55 ms a step  4.4%" in lines(only(report, basis="static bound"))[2]


def test_less_is_left_of_what_is_shared(report: Report) -> None:
    """A fix that better ones overlap with says what it adds."""
    shared = only(report, saving_after_previous_ns=2 * MS)
    assert row(shared, "saves").endswith("; 2.00 ms beyond the better fixes")


def test_more_is_saved_where_another_fix_must_come_first(report: Report) -> None:
    """So it is where something else holds up the steps as well."""
    second = only(report, saving_after_previous_ns=20 * MS)
    assert row(second, "saves").endswith("; 20.0 ms after the better fixes")


def test_a_fix_that_saves_nothing_alone_may_save_something_after_another(report: Report) -> None:
    """Its saving is known."""
    second = only(
        report,
        saving_ns_per_step=0,
        saving_low_ns=0,
        saving_high_ns=MS,
        saving_after_previous_ns=20 * MS,
    )
    assert "saving not known" not in "\n".join(lines(second))
    assert row(second, "saves").startswith("0 ns to 1.00 ms a step")


def test_the_curve_shows_a_knee(report: Report) -> None:
    """Here half of the work saves nearly all there is."""
    knee = only(report, curve_ns=[7 * MS, 13 * MS, 14 * MS, 14_200_000])
    curve = "25% of it saves 7.00 ms, 50% 13.0 ms, 75% 14.0 ms, all 14.2 ms"
    assert row(knee, "curve", verbose=True) == curve


@pytest.mark.parametrize("width", [80, 120])
def test_the_curve_is_one_line(report: Report, width: int) -> None:
    """The longest times fit."""
    curve = row(only(report, curve_ns=[99_900_000] * 4), "curve", width, verbose=True)
    assert curve.endswith("all 99.9 ms")
    assert max(map(cell_len, lines(report, width, verbose=True))) <= width


def test_the_curve_is_for_those_who_ask(report: Report) -> None:
    """Only verbose shows it."""
    assert row(report, "curve") == ""


def test_static_bounds_have_no_curve(report: Report) -> None:
    """Nothing was replayed in part."""
    assert row(bounds(report), "curve", verbose=True) == ""
