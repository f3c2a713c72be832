"""What people see of kernels under their roofs."""

import io
import re

import pytest
from cli_fakes import poisoned
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters import terminal
from perfdiag.trace_schemas.report import Rank, Report, Roofline, Step


def block(report: Report, width: int = 120, *, colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="truecolor" if colour else None,
        force_terminal=colour,
    )
    parts = terminal.render(report, console).split("\n\n")
    return next((part for part in parts if "Roofline" in part.splitlines()[0]), "")


def changed(report: Report, steps: list[Step] | None = None, **fields: object) -> Report:
    """The first rank alone, with another roofline, or other steps."""
    rank = report.ranks[0]
    roofline = replace(roofline_of(rank), **fields)
    kept = rank.steps if steps is None else steps
    return replace(report, ranks=[replace(rank, roofline=roofline, steps=kept)])


def roofline_of(rank: Rank) -> Roofline:
    assert rank.roofline is not None
    return rank.roofline


def row(text: str, op: str) -> str:
    return next(line for line in text.splitlines() if line.strip().startswith(op))


def test_the_device_and_its_roofs_come_first(report: Report) -> None:
    """With the types that they hold for, and where the figures come from."""
    first = block(report).splitlines()[1].strip()
    assert first == (
        "NVIDIA A100 SXM4 80GB: TFLOP/s fp32 19.5, bf16 271; memory 1.60 TB/s "
        "(the most that was measured, else by data sheet)"
    )


def test_roofs_of_the_data_sheet_are_called_so(report: Report) -> None:
    """The basis is what the report says."""
    assert "TB/s (by data sheet)" in block(changed(report, basis="datasheet"))


def test_utilisation_says_its_denominator(report: Report) -> None:
    """MFU and HFU are shares of a peak in one type, over the steps."""
    report = changed(report, steps=[])
    assert "MFU 21.0%, HFU 28.0% of the data sheet's bf16 peak over the steps" in block(report)


def test_utilisation_that_differs_between_steps_has_a_range(report: Report) -> None:
    """The least and the most of them, where that is more than a tenth of the mean."""
    found = block(report)
    assert "MFU 21.0% (17.0-23.0% by step), HFU 28.0% (24.0-30.0% by step) of the data" in found


@pytest.mark.parametrize(
    "each", [[0.21], [0.21, 0.21], [0.205, 0.215], [None, 0.21, None], [0.20, 0.2209], []]
)
def test_steps_that_are_alike_have_no_range(report: Report, each: list[float | None]) -> None:
    """Nor does a single one, or one without a figure."""
    first = report.ranks[0].steps[0]
    steps = [replace(first, mfu=share, hfu=None) for share in each]
    assert "by step" not in block(changed(report, steps=steps))


def test_no_utilisation_where_there_is_no_peak(report: Report) -> None:
    """Nothing is said of a share of nothing."""
    assert "FU " not in block(changed(report, mfu=None, hfu=None, mfu_dtype=""))


def test_coverage_is_split_by_what_bounds(report: Report) -> None:
    """The largest part first; what is not covered is no part of it."""
    line = row(block(report), "91.2%")
    assert re.findall(r"([a-z -]+) ([\d.]+)%", line.split("covered: ")[1]) == [
        ("compute", "38.0"),
        (" memory", "31.5"),
        (" under-filled", "10.9"),
        (" above peak", "10.9"),
    ]


def test_kernels_of_no_operator_are_told_apart(report: Report) -> None:
    """What can be covered is what has an operator; by what it is bound is of all kernels."""
    text = " ".join(block(changed(report, unlinked=0.296, covered=0.9731)).split())
    assert (
        "97.3% of the kernels' time whose operator is in the trace is covered; 29.6% of all has "
        "none there. Of all: compute 38.0%, memory 31.5%"
    ) in text


def test_next_to_nothing_is_not_told_apart(report: Report) -> None:
    """A share that would be shown as 0.0 %."""
    assert "whose operator" not in block(changed(report, unlinked=0.0004))


def test_a_row_has_every_figure(report: Report) -> None:
    """Operator, kernel, calls of a step, share, type, intensity, both rates, roof and bound."""
    assert re.fullmatch(
        r"aten::mm +ampere_bf16_s16816gemm_bf16\S*… +64 +38\.0% +bf16 +333 +200 +600 +74% +compute",
        row(block(report), "aten::mm").strip(),
    )


def test_narrow_terminals_drop_columns_not_figures(report: Report) -> None:
    """Calls go first, then the names of kernels; what bounds stays."""
    titles = {width: row(block(report, width), "operator").split() for width in (80, 100, 120)}
    assert titles[100] == [title for title in titles[120] if title != "calls"]
    assert titles[80] == [title for title in titles[100] if title != "kernel"]
    assert re.fullmatch(
        r"aten::mm +38\.0% +bf16 +333 +200 +600 +74% +compute",
        row(block(report, 80), "aten::mm").strip(),
    )


@pytest.mark.parametrize("width", [20, 40, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(report: Report, width: int) -> None:
    """Nothing wraps where the terminal would wrap it."""
    assert max(map(cell_len, block(report, width).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_widest_figures_fit(report: Report, width: int) -> None:
    """None is cut, names are."""
    widest = replace(
        roofline_of(report.ranks[0]).kernels[0],
        op="torch_attn::_flash_attention_forward_with_everything",
        count=4_000_000,
        dur_ns=180_000_000,
        dtype="complex128",
        flops_per_s=2_250e12,
        bytes_per_s=19_999e9,
        intensity=12_345.6,
        compute_share=1.02,
        bound="under-filled",
        at_datasheet="compute",
    )
    line = row(block(changed(report, kernels=[widest]), width), "torch_")
    assert re.search(r"12,346 +2,250 +19,999 +102% +under-filled\*$", line)
    assert cell_len(line) <= width


def test_what_is_above_a_peak_has_no_figures(report: Report) -> None:
    """It is listed with its time, and its rates are not shown as facts."""
    text = block(report)
    line = row(text, "aten::copy_").split()
    assert line[-5:] == ["?", "?", "?", "above", "peak"]
    assert "2,250" not in text
    assert "above peak: more than the data sheet allows; not believed, no figures" in text


def test_the_remark_on_peaks_needs_a_cause(report: Report) -> None:
    """Nothing to say, nothing shown."""
    kernels = roofline_of(report.ranks[0]).kernels[:1]
    text = block(changed(report, kernels=kernels, bound={"compute": 1.0}))
    assert "above peak" not in text
    assert "*" not in text


def test_what_hangs_on_the_choice_of_roofs_is_marked(report: Report) -> None:
    """A star, explained below the table."""
    text = block(report)
    assert row(text, "aten::_softmax").endswith("memory*")
    assert "* the data sheet's roofs would say otherwise" in text
    assert sum(line.endswith("*") for line in text.splitlines()) == 1


def test_kernels_that_matter_little_are_left_out(report: Report) -> None:
    """Those that are shown take nine tenths of the time, the longest first."""
    ops = re.findall(r"^  (aten::\w+)", block(report), re.MULTILINE)
    assert ops == ["aten::mm", "aten::add", "aten::copy_", "aten::index_select", "aten::_softmax"]


def test_no_more_than_twelve_rows(report: Report) -> None:
    """Many kernels of equal time do not fill the screen."""
    one = roofline_of(report.ranks[0]).kernels[0]
    text = block(changed(report, kernels=[replace(one, op=f"op{at}") for at in range(40)]))
    assert re.findall(r"^  (op\d+)", text, re.MULTILINE) == [f"op{at}" for at in range(12)]


def test_what_is_not_covered_is_named(report: Report) -> None:
    """A few names, and how many more there are; the line is missing where all is covered."""
    assert (
        "not covered: aten::nonzero, aten::_unique2, my::op, aten::sort; 1 more name in the JSON"
        in block(report)
    )
    assert "not covered" not in block(changed(report, uncovered=[]))


def test_names_that_are_short_for_the_same_are_named_once(report: Report) -> None:
    """Kernels that differ in what is cut off are one name."""
    names = ["gemm_" + "x" * 100 + end for end in "abc"]
    assert block(changed(report, uncovered=names)).count("gemm_xxx") == 1


def test_the_rank_whose_kernels_run_longest_is_shown(report: Report) -> None:
    """Which it is, is said where there are several."""
    first, *others = report.ranks
    longer = replace(first.totals_ns, compute=first.totals_ns.compute + 1)
    third = replace(others[1], totals_ns=longer)
    text = block(replace(report, ranks=[first, others[0], third, others[2]]))
    assert text.splitlines()[0] == "Roofline  of rank 2, whose kernels run longest"


def test_one_rank_needs_no_name(report: Report) -> None:
    """Nothing to say, nothing shown."""
    assert block(changed(report)).splitlines()[0] == "Roofline"


def test_ranks_without_a_roofline_are_passed_over(report: Report) -> None:
    """The section is that of a rank that has one, and missing where none has."""
    first, *others = (replace(rank, roofline=None) for rank in report.ranks)
    last = report.ranks[3]
    assert "of rank 3" in block(replace(report, ranks=[first, *others[:2], last]))
    assert block(replace(report, ranks=[first, *others])) == ""


def test_a_roofline_without_kernels(report: Report) -> None:
    """Coverage is still told where no step has a verdict."""
    text = block(changed(report, kernels=[], bound={}, covered=0.0))
    assert "0.0% of the kernels' time is covered" in text
    assert "operator" not in text


@pytest.mark.parametrize("width", [20, 40, 80, 100, 120])
def test_hostile_names_stay_inside_the_terminal(hostile_report: Report, width: int) -> None:
    """Names of 10 kB with escapes and newlines cannot make a line too wide."""
    shown = block(hostile_report, width)
    assert shown
    assert max(map(cell_len, shown.splitlines())) <= width


def test_hostile_names_have_no_effect(report: Report) -> None:
    """No escape of an operator, kernel, type or device reaches the terminal."""
    text = block(poisoned(report), colour=True)
    assert "evil" in text
    assert "owned" not in text
    assert set(re.findall(r"\x1b[^a-zA-Z]*.", text)) == set(re.findall(r"\x1b\[[\d;]+m", text))
    assert "\x1b[31m" not in text
