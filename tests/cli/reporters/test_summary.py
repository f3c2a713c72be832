"""Which rows the tables show, and their sums."""

from msgspec.structs import replace

from perfdiag.cli.reporters.summary import (
    collective_rows,
    fix_groups,
    mean_of,
    mean_window_ns,
    pick_ranks,
    pick_steps,
    rank_rows,
    region_rows,
    step_count,
    step_rows,
)
from perfdiag.trace_schemas.report import Report


def test_few_steps_are_all_shown(report: Report) -> None:
    """Nothing is left out where everything fits."""
    rows = step_rows(report)
    assert len(rows) == step_count(report) == 16
    assert pick_steps(rows, 16) == rows


def test_picked_steps_have_the_slowest_and_each_label(report: Report) -> None:
    """A rare label must not be lost among the usual ones."""
    rows = step_rows(report)
    picked = pick_steps(rows, 4)
    assert len(picked) == 4
    assert max(rows, key=lambda row: row.step.dur_ns) in picked
    assert {row.step.label for row in picked} >= {"unknown", "host-bound"}
    assert [rows.index(row) for row in picked] == sorted(rows.index(row) for row in picked)


def test_picked_ranks_have_the_culprit(report: Report) -> None:
    """The rank that the others wait for is always shown."""
    assert [rank.rank for rank in pick_ranks(report, 1)] == [2]


def test_ranks_that_wait_least_are_picked_without_a_culprit(report: Report) -> None:
    """The rank with most work of its own is the one to look at."""
    nobody = replace(report, job=replace(report.job, culprit_rank=None))
    assert [rank.rank for rank in pick_ranks(nobody, 1)] == [2]


def test_ranks_have_the_times_of_a_mean_step(report: Report) -> None:
    """Its own, what it waits, and what the others wait for it on average."""
    rows = rank_rows(report)
    assert [row.step_ns for row in rows] == [81_050_004.5] * 4
    assert [row.waits_ns for row in rows] == [16e6, 16e6, 1e6, 16e6]
    assert [row.late_ns for row in rows] == [0, 0, 12.5e6, 0]
    assert [row.is_culprit for row in rows] == [False, False, True, False]


def test_ranks_without_a_number_are_nobodys_culprit(report: Report) -> None:
    """A job without a culprit does not accuse a rank that has no number."""
    nameless = [replace(rank, rank=None) for rank in report.ranks]
    nobody = replace(report, ranks=nameless, job=replace(report.job, culprit_rank=None))
    assert not any(row.is_culprit or row.late_ns for row in rank_rows(nobody))


def test_regions_are_summed_by_name(report: Report) -> None:
    """Phases come in the order of a step; their times and budgets add up."""
    rows = region_rows(report)
    assert [row.name for row in rows[:4]] == ["data", "forward", "backward", "optimizer"]
    forward = rows[1]
    assert (forward.n, forward.agreeing, forward.label) == (16, 16, "compute-bound")
    assert forward.dur_ns == sum(forward.budget_ns.values()) == 16 * 21_000_000


def test_a_region_takes_the_label_that_holds_most_time(report: Report) -> None:
    """Labels that differ from step to step are weighed by time, and counted."""
    first, second, *_ = report.ranks[0].steps
    long = replace(first.regions[0], label="memory-bound", dur_ns=5_000_000)
    steps = [replace(first, regions=[long]), replace(second, regions=second.regions[:1])]
    rank = replace(report.ranks[0], steps=steps)
    row = region_rows(replace(report, ranks=[rank]))[0]
    assert (row.label, row.agreeing, row.n) == ("memory-bound", 1, 2)


def test_collectives_are_summed_over_ranks(report: Report) -> None:
    """One row an operation and group, those that cost most first."""
    rows = collective_rows(report.collectives)
    assert [row.op for row in rows] == ["all_reduce", "broadcast"]
    assert (rows[0].count, rows[0].exposed_ns) == (4 * 244, 4 * 100_000_000)
    assert (rows[0].link_share, rows[1].link_share) == (0.471, None)


def test_collectives_of_different_sizes_stay_apart(report: Report) -> None:
    """Each size class of an operation has a row."""
    small = [replace(row, size_class="<64 kB") for row in report.collectives]
    rows = collective_rows([*report.collectives, *small])
    assert [(row.op, row.size_class) for row in rows[:2]] == [
        ("all_reduce", "1-16 MB"),
        ("all_reduce", "<64 kB"),
    ]


def test_fixes_are_grouped_by_layer_and_ranked(report: Report) -> None:
    """The layer whose fix is ranked first comes first, and so does the fix within it."""
    groups = fix_groups(report.fixes)
    assert {layer: [fix.id for fix in fixes] for layer, fixes in groups.items()} == {
        "input-pipeline": ["input_starved"],
        "compiler": ["elementwise_unfused", "launch_bound"],
        "collectives": ["allreduce_small_buckets"],
    }
    assert list(groups) == ["input-pipeline", "compiler", "collectives"]


def test_means_are_of_the_steps_that_totals_add_up(report: Report) -> None:
    """Steps without a verdict are not in the totals, so nothing is divided by them."""
    rank = report.ranks[0]
    lost = [replace(step, coverage=0.0) for step in rank.steps[2:]]
    window = sum(step.totals_ns.window for step in rank.steps[:2])
    totals = replace(rank.totals_ns, window=window)
    half = replace(rank, steps=[*rank.steps[:2], *lost], totals_ns=totals)
    assert mean_window_ns(half) == window / 2
    alone = replace(report, ranks=[half])
    assert mean_of(alone) == "mean of the 2 of 4 steps that have a verdict"
    assert mean_of(report) == "mean of 16 steps on 4 ranks"
