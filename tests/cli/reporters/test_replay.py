"""What people see of the replay."""

import io
import re

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters import terminal
from perfdiag.trace_schemas.report import Replay as ReplayRow
from perfdiag.trace_schemas.report import Report

WHY = (
    "Savings are static bounds: the job cannot be replayed. Only 12% of the device work has its "
    "launch in the trace."
)


def block(report: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    parts = terminal.render(report, console).split("\n\n")
    return next((part for part in parts if part.startswith("Replay")), "")


def changed(report: Report, **fields: object) -> Report:
    return replace(report, replay=replace(report.replay, **fields))


def unbelieved(report: Report) -> Report:
    nothing = ReplayRow(
        believed=False,
        why=WHY,
        nodes=0,
        edges=0,
        inferred=0,
        error=None,
        contention=None,
        critical_path={},
        twice_as_fast={},
    )
    return replace(report, replay=nothing)


def test_what_saves_most_if_it_is_twice_as_fast_comes_first(report: Report) -> None:
    """Each label has its share; the largest is marked."""
    rows = re.findall(r"^  (\S+-bound) +([\d.]+%)  \S+(  most)?$", block(report), re.MULTILINE)
    assert rows == [
        ("host-bound", "22.0%", "  most"),
        ("memory-bound", "19.0%", ""),
        ("collective-bound", "8.0%", ""),
        ("compute-bound", "4.0%", ""),
    ]


def test_the_bar_of_what_saves_most_is_the_longest(report: Report) -> None:
    """The others are drawn to its scale, each in the glyph of its class."""
    text = block(report)
    assert [text.count(glyph) for glyph in "░▓▒█"] == [24, round(24 * 19 / 22), 9, 4]


def test_where_nothing_would_help_nothing_is_marked(report: Report) -> None:
    """No share, no largest one."""
    text = block(changed(report, twice_as_fast=dict.fromkeys(report.replay.twice_as_fast, 0.0)))
    assert text.count("0.0%") == 4
    assert "most" not in text.splitlines()[2]


def test_how_far_it_is_to_be_trusted(report: Report) -> None:
    """Error, size, what was inferred, and how kernels suffer from collectives."""
    text = block(report)
    assert "0.2% off when unchanged, 0.8% at most" in text
    assert "412,208 nodes, 97,412 dependencies, 118 of them inferred" in text
    assert "kernels take 1.08 times as long beside collectives" in text


def test_unknown_contention_is_not_told(report: Report) -> None:
    """Nothing to say, nothing shown."""
    assert "contention" not in block(changed(report, contention=None))


def test_the_critical_path_is_one_line_for_display(report: Report) -> None:
    """The largest part comes first."""
    path = r"critical path +memory 42%, host 31%, collectives 24%, delays 3%; for display$"
    assert re.search(path, block(report), re.MULTILINE)


def test_small_parts_of_the_critical_path_are_added_up(report: Report) -> None:
    """Four are named."""
    shares = {"host": 0.4, "input": 0.3, "copy": 0.1, "collective": 0.08, "delay": 0.07}
    shares["kernel_unclassified"] = 0.05
    named = "host 40%, input 30%, copies 10%, collectives 8%, others 12%"
    assert named in block(changed(report, critical_path=shares))


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits(report: Report, width: int) -> None:
    """One line a label and a fact: at 80 columns nothing wraps."""
    lines = block(report, width).splitlines()
    assert len(lines) == 1 + 1 + 4 + 3
    assert max(map(cell_len, lines)) <= width


def test_a_replay_that_is_not_believed_says_only_why(report: Report) -> None:
    """No figure of it is shown."""
    assert " ".join(block(unbelieved(report)).split()) == f"Replay {WHY}"


def test_without_device_work_there_is_no_replay_to_speak_of(report: Report) -> None:
    """Nothing could have been replayed."""
    idle = [
        replace(rank, totals_ns=replace(rank.totals_ns, busy=0, idle=rank.totals_ns.window))
        for rank in report.ranks
    ]
    assert block(replace(unbelieved(report), ranks=idle)) == ""
