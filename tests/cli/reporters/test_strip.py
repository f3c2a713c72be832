"""The heat strip of a job's ranks."""

import io

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters import terminal
from perfdiag.trace_schemas.report import Report, Wait

LATE = 21
MS = 1_000_000


def job(report: Report, n: int) -> Report:
    """So many ranks that wait 16 ms of each step for rank 21, but those of an even number 8 ms."""
    usual = replace(report.ranks[0], waits=[])
    ranks = []
    for number in range(n):
        wait_ns = 0 if number == LATE else 4 * MS * (16 if number % 2 else 8)
        budget = {**usual.budget_ns, "collective_wait": wait_ns}
        waits = [Wait(late_rank=LATE, time_ns=wait_ns, leaf_ns={})] if wait_ns else []
        ranks.append(replace(usual, rank=number, budget_ns=budget, waits=waits))
    return replace(report, ranks=ranks, job=replace(report.job, culprit_rank=LATE))


def strip(report: Report, width: int, encoding: str = "utf-8") -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    text = terminal.render(report, Console(file=stream, width=width, color_system=None))
    return text.split("\nRanks")[1].split("\n\n")[0].splitlines()[1:]


def row(lines: list[str], name: str) -> list[str]:
    """What stands behind a name, line by line."""
    return [line[12:] for line in lines if line.startswith(f"  {name} ")]


def test_one_character_a_rank(report: Report) -> None:
    """The darkest shade has the longest time, the lightest the shortest; both are told."""
    (waits,) = row(strip(job(report, 40), 100), "waits")
    assert waits == "▒█" * 10 + "▒ " + "▒█" * 9 + "  0 ns to 16.0 ms"


def test_how_long_the_others_wait_for_each(report: Report) -> None:
    """A rank is as late as the others wait for it, on average."""
    (late,) = row(strip(job(report, 40), 100), "late")
    mean = (20 * 8 + 19 * 16) / 39
    assert late == " " * LATE + "█" + " " * 18 + f"  0 ns to {mean:.1f} ms"


def test_the_culprit_is_marked(report: Report) -> None:
    """Under its character."""
    assert row(strip(job(report, 40), 100), "culprit") == [" " * LATE + "^"]


def test_without_a_culprit_nothing_is_marked(report: Report) -> None:
    """No mark, no line for it."""
    whole = job(report, 40)
    nobody = replace(whole, job=replace(whole.job, culprit_rank=None))
    assert row(strip(nobody, 100), "culprit") == []


def test_every_eighth_rank_has_its_number_below(report: Report) -> None:
    """By the number that it bears, not by its place."""
    whole = job(report, 40)
    there = [rank for rank in whole.ranks if rank.rank != 3]
    (numbers,) = row(strip(replace(whole, ranks=there), 100), "rank")
    assert [numbers[at : at + 8].strip() for at in range(0, 40, 8)] == ["0", "9", "17", "25", "33"]


def test_128_ranks_fit_on_a_line_of_160(report: Report) -> None:
    """With figures that are as long as can be."""
    whole = job(report, 128)
    first = whole.ranks[0]
    longer = replace(first.totals_ns, window=first.totals_ns.window + 40 * MS)
    ranks = [replace(first, totals_ns=longer), *whole.ranks[1:]]
    lines = strip(replace(whole, ranks=ranks), 160)
    assert row(lines, "step time") == ["█" + " " * 127 + "  81.1 ms to 91.1 ms"]
    assert max(map(cell_len, lines)) == 160


@pytest.mark.parametrize(("width", "cells"), [(80, 48), (120, 88), (200, 128)])
def test_ranks_wrap_at_the_width(report: Report, width: int, cells: int) -> None:
    """A line holds a multiple of eight; figures stand on the first, numbers go on."""
    lines = strip(job(report, 200), width)
    waits, numbers = row(lines, "waits"), row(lines, "rank")
    assert len(waits) == len(numbers) == -(-200 // cells)
    assert waits[0].endswith("  0 ns to 16.0 ms")
    assert "".join([waits[0][:cells], *waits[1:]]) == "▒█" * 10 + "▒ " + "▒█" * 89
    assert [int(line.split()[0]) for line in numbers] == list(range(0, 200, cells))
    assert max(map(cell_len, lines)) <= width


def test_ascii_where_the_terminal_has_no_more(report: Report) -> None:
    """An ASCII terminal gets ASCII."""
    (waits,) = row(strip(job(report, 40), 100, "ascii"), "waits")
    assert waits.startswith(":#" * 10 + ": ")


def test_noise_is_no_pattern(report: Report) -> None:
    """Steps that differ by a thousandth look the same."""
    whole = job(report, 40)
    ranks = [
        replace(r, totals_ns=replace(r.totals_ns, window=r.totals_ns.window + i * 8_000))
        for i, r in enumerate(whole.ranks)
    ]
    (steps,) = row(strip(replace(whole, ranks=ranks), 100), "step time")
    assert steps[:40].strip() == ""


def test_nobody_waits(report: Report) -> None:
    """Without waits there are only step times."""
    whole = job(report, 40)
    ranks = [replace(r, waits=[], budget_ns={"compute_kernel": 1}) for r in whole.ranks]
    lines = strip(replace(whole, ranks=ranks), 100)
    assert row(lines, "waits") == row(lines, "late") == []
    assert row(lines, "step time") != []


def test_two_ranks_need_no_strip(report: Report) -> None:
    """The table says it all."""
    assert row(strip(replace(report, ranks=report.ranks[:2]), 100), "step time") == []


def test_the_table_of_ranks_stays(report: Report) -> None:
    """It follows the strip."""
    text = terminal.render(report, Console(file=io.StringIO(), width=100, color_system=None))
    ranks = text.split("\nRanks")[1].split("\nSteps")[0]
    assert ranks.index("step time") < ranks.index("bound by")
    assert ranks.count("collective-bound") == 3
