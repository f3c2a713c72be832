"""Truth by intervention, on jobs of which one can say what bounds them."""

from dataclasses import replace

import pytest
from tiny_jobs import NOISY, ROUND, all_reduce, job, launch, rank

from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.events import Window
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import (
    Batch,
    Copy,
    End,
    Host,
    Instruction,
    Job,
    Kernel,
    Launch,
    Loader,
    Range,
    Synchronize,
)
from perfdiag.profiler.simulator.truth import find_truth, judge, saving_of
from perfdiag.profiler.simulator.truth_types import Truth, decode_truth, encode_truth
from perfdiag.profiler.simulator.windows import Part, window_lengths

STREAMS = Launch(Kernel("elementwise", "bf16", (1,), 0.0, 100_000.0))


def truth_of(one: Job, platform: Platform = ROUND, workers: int = 1) -> Truth:
    """With chance 3."""
    return find_truth(one, platform, 3, simulate(one, platform, 3), workers)


@pytest.mark.parametrize("platform", [ROUND, NOISY], ids=["quiet", "noisy"])
@pytest.mark.parametrize(
    ("label", "step", "loader"),
    [
        ("compute-bound", (launch(100_000),), Loader(0, 0)),
        ("memory-bound", (STREAMS,), Loader(0, 0)),
        ("memory-bound", (Copy(100_000, "HtoD", blocking=True),), Loader(0, 0)),
        ("collective-bound", (all_reduce(100_000),), Loader(0, 0)),
        ("host-bound", (Host(100_000), launch(1_000), Synchronize()), Loader(0, 0)),
        ("host-bound", (Batch(), launch(1_000)), Loader(2, 200_000)),
        ("host-bound", (Batch(), launch(1_000)), Loader(0, 100_000)),
    ],
)
def test_what_a_job_spends_its_time_in_bounds_it(
    label: str, step: tuple[Instruction, ...], loader: Loader, platform: Platform
) -> None:
    """Twice as fast, it takes half of the time away."""
    ranks = [rank(*step, loader=loader)] * 2
    truth = truth_of(job(*ranks, steps=3), platform)
    verdicts = [truth.verdict, *(step.verdict for one in truth.ranks for step in one.steps[1:])]
    for verdict in verdicts:
        assert verdict.label == label
        assert not verdict.ambiguous
        assert verdict.saved_ns[label] == pytest.approx(verdict.window_ns / 2, rel=0.1)


def test_what_hides_behind_something_else_does_not_bound() -> None:
    """The host needs half as long as the device: it saves nothing."""
    truth = truth_of(job(rank(Host(50_000), launch(100_000)), steps=4))
    assert truth.verdict.saved_ns["compute-bound"] == pytest.approx(50_000, rel=0.02)
    assert truth.verdict.saved_ns["host-bound"] == pytest.approx(0, abs=100)


def test_a_rank_that_waits_is_bound_by_what_the_late_rank_does() -> None:
    """The wait of rank 0 ends sooner if rank 1 computes faster; its link is not to blame."""
    ranks = rank(all_reduce(5_000), Synchronize()), rank(launch(90_000, "comm"), all_reduce(5_000))
    truth = truth_of(job(*ranks, steps=3))
    assert {one.verdict.label for one in truth.ranks} == {"compute-bound"}
    late = [step.late for step in truth.ranks[0].steps]
    assert [one.rank for one in late if one is not None] == [1, 1, 1]
    assert truth.ranks[0].collectives[0].wait_ns == 90_000
    assert truth.ranks[0].collectives[0].transfer_ns == 5_000
    assert [step.late for step in truth.ranks[1].steps] == [None, None, None]


def test_waits_are_counted_for_the_rank_that_comes_last() -> None:
    """Of two late ranks the one that is waited for longer, with what it costs."""
    once, twice = all_reduce(1_000), (all_reduce(1_000), Synchronize("comm"))
    zero = rank(*twice, *twice)
    one = rank(Host(7_000), *twice, once)
    two = rank(*twice, Host(2_000), once)
    truth = truth_of(job(zero, one, two, steps=2))
    late = truth.ranks[0].steps[0].late
    assert late is not None
    assert (late.rank, late.wait_ns, late.all_waits_ns) == (1, 7_000, 9_000)


def test_phases_of_a_step_have_truths_of_their_own() -> None:
    """A forward that the host bounds, and a backward that arithmetic does."""
    forward = (Range("f", phase="forward"), Host(60_000), launch(1_000), Synchronize(), End())
    backward = (Range("b", phase="backward"), launch(60_000), Synchronize(), End())
    truth = truth_of(job(rank(*forward, *backward), steps=3))
    phases = {one.phase: one.verdict.label for one in truth.ranks[0].steps[1].phases}
    assert phases == {"forward": "host-bound", "backward": "compute-bound"}


def test_short_phases_are_left_out() -> None:
    """The optimizer takes less than a hundredth of the step."""
    optimizer = (Range("o", phase="optimizer"), Host(300), End())
    forward = (Range("f", phase="forward"), launch(60_000), Synchronize(), End())
    truth = truth_of(job(rank(*forward, *optimizer), steps=2))
    assert [one.phase for one in truth.ranks[0].steps[1].phases] == ["forward"]


def test_the_first_step_is_marked() -> None:
    """Nothing was under way when it began."""
    truth = truth_of(job(rank(launch(1_000)), steps=3))
    assert [step.warm_up for step in truth.ranks[0].steps] == [True, False, False]


def test_one_step_is_not_enough() -> None:
    """There would be no step but the one that does not count."""
    with pytest.raises(ValueError, match="at least two"):
        truth_of(job(rank(launch(1_000))))


def test_windows_run_from_completion_to_completion() -> None:
    """A piece that is over before the one before it is empty; pieces of a phase add up."""
    windows = [
        Window(0, None, 10, 100, 130),
        Window(0, "forward", 10, 40, 70),
        Window(0, "backward", 40, 60, 65),
        Window(0, "forward", 60, 80, 90),
        Window(0, "optimizer", 80, 100, 130),
        Window(1, None, 100, 200, 200),
        Window(1, "forward", 100, 200, 200),
    ]
    assert window_lengths(windows) == {
        Part(0, None): 120,
        Part(0, "forward"): 80,
        Part(0, "backward"): 0,
        Part(0, "optimizer"): 40,
        Part(1, None): 70,
        Part(1, "forward"): 70,
    }


@pytest.mark.parametrize(
    ("compute", "host", "ambiguous"),
    [(400.0, 340.0, True), (400.0, 339.0, False), (49.0, 0.0, True), (50.0, 0.0, False)],
)
def test_a_label_is_ambiguous_by_its_rules(compute: float, host: float, ambiguous: bool) -> None:
    """Within 15 % of the best saving, or below 5 % of the window."""
    saved = {"host-bound": host, "compute-bound": compute, "memory-bound": -9.0}
    verdict = judge(1_000.0, saved)  # type: ignore[arg-type]
    assert (verdict.label, verdict.runner_up) == ("compute-bound", "host-bound")
    assert verdict.ambiguous is ambiguous


def test_a_repair_is_worth_what_it_takes_away() -> None:
    """A synchronization in each step keeps the host from running ahead."""
    step = (Host(3_000), launch(4_000))
    slow, repaired = job(rank(*step, Synchronize()), steps=9), job(rank(*step), steps=9)
    # 3,000 + 400 + 50 + 4,000 ns a step with it, 4,000 ns without.
    assert saving_of(slow, repaired, ROUND, 1) == pytest.approx(3_450)


def test_the_truth_is_written_and_read_again() -> None:
    """All of it, and the same bytes for the same seed."""
    one = job(*[rank(launch(9_000), all_reduce(900))] * 2, steps=2)
    truth = truth_of(one, replace(NOISY, contention=1.2))
    assert decode_truth(encode_truth(truth)) == truth
    assert encode_truth(truth_of(one, replace(NOISY, contention=1.2))) == encode_truth(truth)


def test_processes_find_the_same_truth() -> None:
    """Two at a time."""
    one = job(*[rank(launch(9_000), all_reduce(900))] * 2, steps=2)
    assert truth_of(one, NOISY, workers=2) == truth_of(one, NOISY)
