"""The report for people."""

import io
import re

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from perfdiag.cli.reporters import terminal
from perfdiag.trace_schemas.report import Report, StepTime, Totals

WIDTHS = (80, 100, 120)
LONG_NAMES = ("model.l", "elementwise_kernel", "ampere_bf16", "indexSelect", "softmax_warp")
NO_TIME = Totals(
    window=0,
    busy=0,
    idle=0,
    compute=0,
    collective=0,
    exposed_collective=0,
    copy=0,
    exposed_copy=0,
)


def shown(report: Report, width: int = 100, *, verbose: bool = False, colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )
    return terminal.render(report, console, verbose=verbose)


def section(text: str, title: str) -> str:
    return next(part for part in text.split("\n\n") if part.startswith(title))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(report: Report, width: int, verbose: bool) -> None:
    """Nothing wraps where the terminal would wrap it."""
    assert max(map(cell_len, shown(report, width, verbose=verbose).splitlines())) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_never_cut(report: Report, width: int) -> None:
    """At the usual widths only names are shortened: those of modules and of kernels."""
    for line in shown(report, width).splitlines():
        assert "…" not in line or any(name in line for name in LONG_NAMES)


def test_the_verdict_comes_first(report: Report) -> None:
    """Label, confidence, runner-up, culprit, step time and reason, before any table."""
    verdict = shown(report, 120).split("\n\n")[1]
    for text in ("HOST-BOUND", "87% sure", "compute-bound", "rank 2", "81.4 ms", "80.0 ms"):
        assert text in verdict
    assert "because its DataLoader is not ready" in " ".join(verdict.split())


def test_sections_in_reading_order(report: Report) -> None:
    """From the whole to its parts, then what to do, notices last."""
    titles = re.findall(r"^[A-Z][a-z]+(?: [a-z]+)*", shown(report), re.MULTILINE)
    assert titles == [
        "Where the time goes",
        "Ranks",
        "Steps",
        "Phases",
        "Annotations and modules",
        "Longest work",
        "Roofline",
        "Collectives",
        "What to do",
        "Replay",
        "What was looked for",
        "Notices",
    ]


def test_the_budget_is_per_step_and_whole(report: Report) -> None:
    """Each leaf has its time of a mean step; a leaf that only ranks have is in the legend too."""
    budget = section(shown(report), "Where the time goes")
    assert "mean of 16 steps on 4 ranks" in budget
    assert re.search(r"memory kernels +14\.0 ms +17\.3%", budget)
    assert re.search(r"input +17\.0 ms +21\.0%", budget)
    assert re.search(r"collective wait +0 ns +0\.0%", budget)
    shares = [float(share) for share in re.findall(r"([\d.]+)%", budget)]
    assert sum(shares) == pytest.approx(100, abs=0.5)


def test_left_out_steps_are_counted(report: Report) -> None:
    """A table that does not show all steps says so."""
    steps = section(shown(report), "Steps")
    assert "12 of 16" in steps
    assert len(steps.splitlines()) == 2 + 12


def test_low_coverage_is_shown(report: Report) -> None:
    """A step whose device records are missing shows how many are there."""
    steps = section(shown(report), "Steps")
    assert "coverage" in steps
    assert re.search(r"unknown +62\.0%", steps)


def test_full_coverage_needs_no_column(report: Report) -> None:
    """Nothing to say, nothing shown."""
    rank = report.ranks[0]
    assert "coverage" not in section(shown(replace(report, ranks=[rank])), "Steps")


def test_one_rank_needs_no_rank_table(report: Report) -> None:
    """A job of one rank speaks of steps at once."""
    text = shown(replace(report, ranks=report.ranks[:1]))
    assert "\nRanks" not in text
    assert "rank" not in section(text, "Steps")


def test_fixes_say_what_whose_and_how_much(report: Report) -> None:
    """A fix has its layer, saving, share, interval, reason and way."""
    fixes = shown(report).split("\nWhat to do", 1)[1].split("\n\nNotices")[0]
    assert re.search(r"Load data in more workers.* 14\.2 ms a step +17\.5%", fixes)
    assert "11.4 ms to 15.6 ms a step, 85% sure, on rank 2" in fixes
    assert "together 19.3 ms a step (23.9%)" in fixes
    assert fixes.index("input-pipeline") < fixes.index("compiler") < fixes.index("collectives")
    assert fixes.count("saving not known") == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_collectives_show_their_size_and_how_near_the_link_is_to_its_peak(
    report: Report, width: int
) -> None:
    """Both fit into 80 columns, with the whole name of the group."""
    table = section(shown(report, width), "Collectives")
    assert re.search(r"all_reduce +default_pg +61 +1-16 MB .* 212 GB/s +47%", table)


def test_links_of_unknown_devices_need_no_column(report: Report) -> None:
    """Nothing to say, nothing shown."""
    rows = [replace(row, link_share=None) for row in report.collectives]
    table = section(shown(replace(report, collectives=rows)), "Collectives")
    assert "212 GB/s" in table
    assert "link" not in table


def test_the_widest_figures_of_collectives_fit(report: Report) -> None:
    """None is cut at 80 columns, only names are."""
    wide = replace(
        report.collectives[0],
        op="reduce_scatter",
        group="a group of many ranks",
        size_class="64 kB-1 MB",
        count=4 * 1_234,
        bus_bandwidth=99.9e9,
        link_share=1.04,
    )
    table = section(shown(replace(report, collectives=[wide]), 80), "Collectives")
    assert re.search(r"reduce_scatter +a g\S*…\S* .*64 kB-1 MB .* 99\.9 GB/s +104%", table)


def test_infos_only_when_asked(report: Report) -> None:
    """Infos are counted, and listed with verbose."""
    assert "Clocks differ" not in shown(report)
    assert "1 error, 1 warning, 1 info" in shown(report)
    assert "Clocks differ by 2 us." in shown(report, verbose=True)


def test_verbose_lists_inputs(report: Report) -> None:
    """With verbose each input says what was read, kept and set aside."""
    text = shown(report, 120, verbose=True)
    assert "engine wasm v52.0" in text
    assert "job/rank3.json.gz: rank 3, kineto, 4.35 MB, 109,000 events read" in text


def test_colours_are_those_of_the_classes(report: Report) -> None:
    """A label has the colour of its class, and bars are solid."""
    text = shown(report, colour=True)
    colour = re.search(r"(\x1b\[[\d;]+m)collective-bound\x1b\[0m", text)
    assert colour is not None
    assert f"{colour[1]}█" in text
    assert "░" not in text


def test_a_trace_without_device_work(report: Report) -> None:
    """A report without steps, budget or fixes still has a verdict and a reason."""
    job = replace(
        report.job,
        label="unknown",
        runner_up=None,
        culprit_rank=None,
        confidence=0.0,
        why="The trace has launches but no device records.",
        step_time_ns=StepTime(n=0, median=None, p10=None, p90=None),
        totals_ns=NO_TIME,
        budget_ns={},
    )
    text = shown(replace(report, job=job, ranks=[], fixes=[], collectives=[], notices=[]))
    assert "UNKNOWN" in text
    assert "no device records" in text
    assert "Where the time goes" not in text


def test_a_trace_without_steps_says_so(report: Report) -> None:
    """Where no step was found the budget speaks of the whole trace."""
    rank = report.ranks[0]
    whole = replace(rank.steps[0], source="whole")
    text = shown(replace(report, ranks=[replace(rank, steps=[whole])]))
    assert "the whole trace: no steps found" in text


@pytest.mark.parametrize("width", [20, 40, *WIDTHS])
def test_hostile_names_stay_inside_the_terminal(hostile_report: Report, width: int) -> None:
    """Names of 10 kB with escapes and newlines cannot make a line too wide."""
    assert max(map(cell_len, shown(hostile_report, width).splitlines())) <= width


def test_hostile_names_have_no_effect(hostile_report: Report) -> None:
    """No escape of a name reaches the terminal, markup is shown as it is."""
    text = shown(hostile_report, 120, verbose=True)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", text)
    assert "owned" not in text
    assert "[red]evil[/red]" in text


def test_hostile_names_do_not_colour(hostile_report: Report) -> None:
    """On a terminal the only escape sequences are the colours of the report itself."""
    text = shown(hostile_report, colour=True)
    assert set(re.findall(r"\x1b[^a-zA-Z]*.", text)) == set(re.findall(r"\x1b\[[\d;]+m", text))
    assert "\x1b[31m" not in text
