"""The engine against times told by hand, and laws that hold for any job."""

import gc
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from tiny_jobs import NOISY, ROUND, all_reduce, job, kernel, launch, rank

from perfdiag.profiler.simulator.engine import simulate, simulate_windows
from perfdiag.profiler.simulator.events import JobEvents, RankEvents
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import (
    Allocate,
    Batch,
    Call,
    Collective,
    Copy,
    End,
    Group,
    Host,
    Job,
    Loader,
    Range,
    RankProgram,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)
from perfdiag.profiler.simulator.rendezvous import DeadlockError


def alone(program: RankProgram, steps: int = 1, platform: Platform = ROUND) -> RankEvents:
    """A job of one rank."""
    return simulate(job(program, steps=steps), platform, 1).ranks[0]


def device(events: RankEvents) -> list[tuple[int, int]]:
    """Starts and ends of the work, in order of launch."""
    return [(work.start_ns, work.end_ns) for work in events.device]


def calls(events: RankEvents) -> list[tuple[int, int]]:
    """Starts and ends of the calls."""
    return [(call.start_ns, call.end_ns) for call in events.calls]


def test_a_kernel_starts_a_latency_after_its_launch() -> None:
    """The call takes 400 ns, and the kernel 50 ns to begin."""
    events = alone(rank(launch(1_000)))
    assert calls(events) == [(0, 400)]
    assert device(events) == [(450, 1_450)]
    assert events.calls[0].correlation == events.device[0].correlation == 1


def test_a_stream_does_one_kernel_after_the_other() -> None:
    """The second has been launched before the first ends, and starts when it does."""
    assert device(alone(rank(launch(1_000), launch(10)))) == [(450, 1_450), (1_450, 1_460)]


def test_streams_run_beside_each_other() -> None:
    """A kernel on another stream waits for its own launch alone."""
    events = alone(rank(launch(1_000), launch(1_000, "side")))
    assert device(events) == [(450, 1_450), (850, 1_850)]


def test_the_speed_of_the_host_divides_all_that_it_does() -> None:
    """Platform and rank each do it twice as fast here."""
    program = rank(Host(800), launch(10), host_speed=2.0)
    assert calls(alone(program, platform=replace(ROUND, host_speed=2.0))) == [(200, 300)]


def test_a_capped_clock_slows_arithmetic() -> None:
    """At half the clock, a kernel that computes takes twice as long."""
    assert device(alone(rank(launch(1_000), device_speed=0.5))) == [(450, 2_450)]


def test_an_event_holds_up_another_stream() -> None:
    """Until what was launched before its record has ended."""
    program = rank(
        launch(5_000), Record("e", "compute"), Wait("e", "side"), launch(10, "side"), launch(10)
    )
    assert device(alone(program)) == [(450, 5_450), (5_450, 5_460), (5_450, 5_460)]


def test_a_wait_is_for_the_last_record_of_its_name() -> None:
    """A record that comes after the wait changes nothing."""
    waits = (Record("e", "compute"), Wait("e", "side"), launch(5_000), Record("e", "compute"))
    assert device(alone(rank(launch(2_000), *waits, launch(10, "side"))))[2] == (2_450, 2_460)


def test_a_wait_passes_through_an_event_recorded_behind_it() -> None:
    """A stream that has nothing but a wait hands it on."""
    program = rank(
        launch(5_000),
        Record("a", "compute"),
        Wait("a", "side"),
        Record("b", "side"),
        Wait("b", "third"),
        launch(10, "third"),
    )
    assert device(alone(program))[1] == (5_450, 5_460)


def test_a_record_is_of_work_and_of_waits_after_it() -> None:
    """The third stream waits for the first although the second has ended long before."""
    program = rank(
        launch(5_000),
        launch(10, "side"),
        Record("a", "compute"),
        Wait("a", "side"),
        Record("b", "side"),
        Wait("b", "third"),
        launch(10, "third"),
    )
    assert device(alone(program))[1:] == [(850, 860), (5_450, 5_460)]


def test_an_event_that_nobody_recorded_holds_nothing_up() -> None:
    """As `cudaStreamWaitEvent` has it."""
    assert device(alone(rank(Wait("never", "compute"), launch(10)))) == [(550, 560)]


def test_a_synchronization_lasts_until_the_stream_is_empty() -> None:
    """The next launch comes after it; other streams may still be busy."""
    program = rank(launch(9_000, "side"), launch(1_000), Synchronize("compute"), launch(10))
    events = alone(program)
    assert calls(events)[2:] == [(800, 1_850), (1_850, 2_250)]
    assert device(events)[2] == (2_300, 2_310)


def test_a_synchronization_with_the_device_waits_for_all_streams() -> None:
    """The busiest decides."""
    events = alone(rank(launch(9_000, "side"), launch(1_000), Synchronize()))
    assert calls(events)[2] == (800, 9_450)


def test_a_synchronization_with_an_idle_stream_is_a_call_only() -> None:
    """It takes as long as a look at an event."""
    assert calls(alone(rank(Synchronize()))) == [(0, 100)]


def test_a_full_stream_holds_up_the_launch() -> None:
    """With room for two, the third call waits for the end of the first kernel."""
    events = alone(rank(*[launch(1_000)] * 4), platform=replace(ROUND, queue=2))
    assert calls(events) == [(0, 400), (400, 800), (800, 1_850), (1_850, 2_850)]
    assert device(events)[-1] == (3_450, 4_450)


def test_a_blocking_copy_holds_up_the_host() -> None:
    """Its call lasts until the copy has ended; pageable memory is half as fast here."""
    copy = Copy(1_000, "HtoD", blocking=True, pinned=False)
    events = alone(rank(copy, Host(10), launch(5)))
    assert calls(events) == [(0, 2_450), (2_460, 2_860)]
    assert device(events)[0] == (450, 2_450)


def test_copies_in_one_direction_take_turns() -> None:
    """Those in the other direction do not wait for them."""
    to, back = Copy(1_000, "HtoD", stream="a"), Copy(1_000, "HtoD", stream="b")
    events = alone(rank(to, back, Copy(1_000, "DtoH", stream="c")))
    assert device(events) == [(450, 1_450), (1_450, 2_450), (1_250, 2_250)]


def test_freeing_memory_drains_the_device_first() -> None:
    """The call waits for the kernel and then takes its own time."""
    events = alone(rank(launch(1_000), Allocate(1, free=True), Allocate(1)))
    assert calls(events)[1:] == [(400, 4_450), (4_450, 7_450)]


def test_a_graph_is_one_call() -> None:
    """Its kernels follow each other at a small distance, under one number."""
    events = alone(rank(ReplayGraph((kernel(100), kernel(100), kernel(100))), launch(1)))
    assert calls(events) == [(0, 400), (400, 800)]
    assert device(events) == [(450, 550), (557, 657), (664, 764), (850, 851)]
    assert [work.correlation for work in events.device] == [1, 1, 1, 2]


def test_a_graph_follows_other_work_at_once() -> None:
    """The distance is between its own kernels."""
    events = alone(rank(launch(1_000), ReplayGraph((kernel(10), kernel(10)))))
    assert device(events)[1:] == [(1_450, 1_460), (1_467, 1_477)]


def test_a_graph_takes_the_room_of_one_launch() -> None:
    """The third call waits for the first kernel, not for a kernel of the graph."""
    graph = ReplayGraph((kernel(1_000), kernel(1_000), kernel(1_000)))
    events = alone(rank(launch(1_000), graph, launch(1)), platform=replace(ROUND, queue=2))
    assert calls(events)[2] == (800, 1_850)


def test_a_caller_waits_for_the_thread_it_calls() -> None:
    """What the other thread does is its own, and belongs to the caller's phase."""
    autograd = (Range("mm", cost_ns=100), launch(1), End())
    backward = Range("backward", "annotation", phase="backward")
    events = alone(rank(backward, Call("autograd"), End(), threads={"autograd": autograd}))
    assert [(one.thread, one.start_ns, one.end_ns) for one in events.host] == [
        ("main", 0, 500),
        ("autograd", 0, 500),
    ]
    assert events.calls[0].thread == "autograd"
    assert events.device[0].phase == "backward"


def test_ranges_nest_and_cost_before_what_is_inside() -> None:
    """The outer one holds the inner one and the launch."""
    events = alone(rank(Range("a", cost_ns=10), Range("b", cost_ns=20), launch(1), End(), End()))
    assert [(one.start_ns, one.end_ns) for one in events.host] == [(0, 430), (10, 430)]


def test_some_host_time_comes_in_some_steps_only() -> None:
    """Every second step collects garbage."""
    events = alone(rank(Host(70, "gc", every=2), Host(30)), steps=3)
    assert [(one.step, one.start_ns, one.end_ns) for one in events.host] == [
        (0, 0, 70),
        (2, 130, 200),
    ]


def test_a_collective_waits_for_the_last_rank() -> None:
    """Data move from then on, and both ranks end together."""
    early, late = rank(all_reduce(1_000)), rank(Host(5_000), all_reduce(1_000))
    first, last = simulate(job(early, late), ROUND, 1).ranks
    assert (first.device[0].start_ns, last.device[0].start_ns) == (450, 5_450)
    assert {one.device[0].moving_ns for one in (first, last)} == {5_450}
    assert {one.device[0].end_ns for one in (first, last)} == {6_450}


def test_a_slow_link_slows_its_group() -> None:
    """Three times as long as the platform says."""
    slow = [Group("dp", "", (0, 1), slowdown=3.0)]
    events = simulate(job(*[rank(all_reduce(1_000))] * 2, groups=slow), ROUND, 1)
    assert device(events.ranks[0]) == [(450, 3_450)]


def test_transfers_between_two_ranks_meet_by_direction() -> None:
    """What goes one way does not meet what goes the other way."""
    up, down = Collective("send", "pp", 100, peer=1), Collective("recv", "pp", 300, peer=1)
    here = rank(replace(up, stream="up"), replace(down, stream="down"))
    up, down = replace(up, op="recv", peer=0), replace(down, op="send", peer=0)
    there = rank(replace(down, stream="down"), replace(up, stream="up"))
    events = simulate(job(here, there, groups=[Group("pp", "", (0, 1))]), ROUND, 1)
    moves = [[(work.moving_ns, work.end_ns) for work in one.device] for one in events.ranks]
    assert moves == [[(850, 950), (850, 1_150)], [(850, 1_150), (850, 950)]]


def test_the_largest_message_decides() -> None:
    """Of an exchange in which one rank sends more than another."""
    ranks = (rank(Collective("all_to_all", "dp", size)) for size in (200, 4_000, 400))
    events = simulate(job(*ranks), ROUND, 1)
    assert {work.end_ns for one in events.ranks for work in one.device} == {450 + 2_667}


def test_kernels_are_slower_while_data_move_and_not_before_or_after() -> None:
    """Of 1,000 ns half are done before the transfer, and 300 of 600 ns of it count."""
    platform = replace(ROUND, contention=2.0)
    computes = rank(all_reduce(600), launch(1_000))
    waits = rank(Host(900), all_reduce(600))
    first = simulate(job(computes, waits), platform, 1).ranks[0]
    assert (first.device[0].start_ns, first.device[0].moving_ns) == (450, 1_350)
    assert (first.device[1].start_ns, first.device[1].end_ns) == (850, 2_150)


def test_a_kernel_that_starts_beside_a_transfer_speeds_up_when_it_ends() -> None:
    """It has done 100 of its 250 ns in the transfer's last 200."""
    platform = replace(ROUND, contention=2.0)
    program = rank(all_reduce(600), launch(250))
    events = simulate(job(program, program), platform, 1)
    assert device(events.ranks[0]) == [(450, 1_050), (850, 1_200)]


def test_a_kernel_may_end_when_a_transfer_begins() -> None:
    """The one after it runs beside the transfer: of its 250 ns 100 are done when that ends."""
    platform = replace(ROUND, contention=2.0)
    computes = rank(all_reduce(200), launch(500), launch(250))
    events = simulate(job(rank(Host(900), all_reduce(200)), computes), platform, 1)
    assert device(events.ranks[1])[1:] == [(850, 1_350), (1_350, 1_700)]


def test_workers_that_are_too_slow_keep_the_host_waiting() -> None:
    """Two workers at 2,000 ns a batch give one every 1,000 ns, while a step needs 10."""
    events = alone(rank(Batch(), Host(10), loader=Loader(2, 2_000)), steps=4)
    assert [one.end_ns for one in events.host] == [1_000, 2_000, 3_000, 4_000]


def test_workers_stop_when_enough_batches_are_ready() -> None:
    """One worker with room for one: the next batch is begun when the last is taken."""
    loader = Loader(1, 1_000, prefetch=1)
    events = alone(rank(Batch(), Host(5_000), loader=loader), steps=3)
    assert [one.end_ns - one.start_ns for one in events.host] == [1_000, 0, 0]
    quick = alone(rank(Batch(), Host(400), loader=loader), steps=3)
    assert [one.end_ns - one.start_ns for one in quick.host] == [1_000, 600, 600]


def test_a_worker_that_had_no_room_begins_when_a_batch_is_taken() -> None:
    """After a long step the one batch is there; the next is begun only when that is taken."""
    program = rank(Batch(), Host(5_000, every=3), loader=Loader(1, 1_000, prefetch=1))
    assert [one.end_ns for one in alone(program, steps=3).host] == [1_000, 6_000, 7_000]


def test_without_workers_the_main_thread_loads() -> None:
    """Each step pays for its batch."""
    events = alone(rank(Batch(), loader=Loader(0, 700), host_speed=2.0), steps=2)
    assert [(one.start_ns, one.end_ns) for one in events.host] == [(0, 350), (350, 700)]


def test_a_step_is_complete_when_its_last_work_is() -> None:
    """The host of the second step ends before the work of the first."""
    windows = alone(rank(launch(5_000)), steps=2).windows
    steps = [one for one in windows if one.phase is None]
    assert [(one.host_start_ns, one.host_end_ns) for one in steps] == [(0, 400), (400, 800)]
    assert [one.completion_ns for one in steps] == [5_450, 10_450]


def test_a_step_is_not_complete_before_its_host() -> None:
    """The kernel has ended long before."""
    windows = alone(rank(launch(10), Host(9_000))).windows
    assert [one.completion_ns for one in windows] == [9_400, 9_400]


def test_phases_cut_a_step_without_gaps() -> None:
    """Host time between two phases belongs to the first, unless an operator runs in it."""

    def phase(name: str) -> Range:
        return Range(name, "annotation", phase=name)  # type: ignore[arg-type]

    work = (launch(10), End())
    between = (Host(50), phase("backward"), *work, Range("aten::add"), *work)
    events = alone(rank(phase("forward"), *work, *between, phase("optimizer"), *work))
    pieces = [one for one in events.windows if one.phase is not None]
    assert [one.phase for one in pieces] == ["forward", "backward", "other", "optimizer"]
    assert [one.host_start_ns for one in pieces] == [0, 450, 850, 1_250]
    assert [one.host_end_ns for one in pieces] == [450, 850, 1_250, 1_650]


def test_a_rank_that_never_comes_is_a_deadlock() -> None:
    """The error names the collective, who waits, and for whom."""
    stuck = job(rank(all_reduce(10), Synchronize()), rank(launch(1)), rank(all_reduce(10)))
    with pytest.raises(DeadlockError, match=r"all_reduce 0 of 'dp': ranks \[0, 2\].*ranks \[1\]"):
        simulate(stuck, ROUND, 1)


def test_groups_in_another_order_are_a_deadlock() -> None:
    """Two ranks that wait for each other in two groups on one stream."""
    groups = [Group("a", "", (0, 1)), Group("b", "", (0, 1))]
    a, b = all_reduce(1, "a"), all_reduce(1, "b")
    with pytest.raises(DeadlockError, match=r"'a': .*'b': "):
        simulate(job(rank(a, b), rank(b, a), groups=groups), ROUND, 1)


def test_ranks_must_call_the_same_operation() -> None:
    """One gathers while another reduces."""
    ranks = rank(all_reduce(1)), rank(Collective("all_gather", "dp", 1))
    with pytest.raises(ValueError, match="rank 1 calls all_gather instead"):
        simulate(job(*ranks), ROUND, 1)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (rank(), "does nothing"),
        (rank(Range("open")), "leaves 1 ranges open"),
        (rank(Host(1), End()), "has not opened"),
        (rank(Call("nobody")), "'nobody' is called"),
        (rank(Call("main")), "waits for itself"),
        (rank(all_reduce(1, "unknown")), "which is no group"),
        (rank(Collective("send", "dp", 1)), "names no peer"),
    ],
)
def test_a_program_that_makes_no_sense_is_refused(program: RankProgram, problem: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(ValueError, match=problem):
        alone(program)


def busy_job(ranks: int = 3, steps: int = 3) -> Job:
    """Two streams, a loader, overlapped collectives and a synchronization, on each rank."""
    layers = [
        instruction
        for i in range(20)
        for instruction in (
            Range("aten::mm", cost_ns=300),
            launch(700 + 100 * (i % 3)),
            End(),
            Record("grad", "compute"),
            Wait("grad", "comm"),
            all_reduce(900),
        )
    ]
    tail = (Record("all", "comm"), Wait("all", "compute"), launch(2_000), Synchronize("compute"))
    step = Range("ProfilerStep#", "annotation"), Batch(), Copy(500, "HtoD"), *layers, *tail, End()
    return job(*[rank(*step, loader=Loader(2, 9_000))] * ranks, steps=steps)


@pytest.fixture(scope="module")
def noisy() -> JobEvents:
    """The busy job, with chance and contention."""
    return simulate(busy_job(), replace(NOISY, contention=1.3, queue=8), 7)


def test_the_same_seed_gives_the_same_events(noisy: JobEvents) -> None:
    """And another seed gives others."""
    platform = replace(NOISY, contention=1.3, queue=8)
    assert simulate(busy_job(), platform, 7) == noisy
    assert simulate(busy_job(), platform, 8) != noisy


def test_chance_is_another_for_each_rank_and_step() -> None:
    """The same kernel never takes the same time twice here."""
    events = simulate(job(*[rank(launch(1e6), launch(1e6))] * 2, steps=2), NOISY, 7)
    lengths = [work.end_ns - work.start_ns for one in events.ranks for work in one.device]
    assert len(set(lengths)) == 8


def test_windows_alone_are_those_of_the_events(noisy: JobEvents) -> None:
    """Both come from the same run."""
    windows = simulate_windows(busy_job(), replace(NOISY, contention=1.3, queue=8), 7)
    assert windows == [one.windows for one in noisy.ranks]


def test_no_work_overlaps_another_of_its_stream(noisy: JobEvents) -> None:
    """In order of launch, each starts when the one before it has ended."""
    for events in noisy.ranks:
        streams = defaultdict(list)
        for work in events.device:
            streams[work.stream].append(work)
        for works in streams.values():
            assert all(a.end_ns <= b.start_ns for a, b in pairwise(works))


def test_no_work_starts_before_its_launch_has_ended(noisy: JobEvents) -> None:
    """Nor does a call begin before the one before it on the same rank has ended."""
    for events in noisy.ranks:
        ends = {call.correlation: call.end_ns for call in events.calls}
        assert all(work.start_ns >= ends[work.correlation] + 50 for work in events.device)
        assert all(a.end_ns <= b.start_ns for a, b in pairwise(events.calls))


def test_all_ranks_of_a_collective_end_together(noisy: JobEvents) -> None:
    """Data move from the last arrival on."""
    sides = [[work for work in events.device if work.stream == "comm"] for events in noisy.ranks]
    assert len(sides[0]) == 60
    for met in zip(*sides, strict=True):
        assert len({work.end_ns for work in met}) == 1
        assert {work.moving_ns for work in met} == {max(work.start_ns for work in met)}


def test_chance_is_the_same_on_a_faster_platform(noisy: JobEvents) -> None:
    """Twice the peak halves each kernel, whatever was drawn for it."""
    platform = replace(NOISY, flops_per_s={"bf16": 2e9}, queue=8)
    slow = simulate(busy_job(), replace(platform, flops_per_s={"bf16": 1e9}), 7)
    for one, two in zip(slow.ranks, simulate(busy_job(), platform, 7).ranks, strict=True):
        for a, b in zip(one.device, two.device, strict=True):
            if a.stream == "compute" and a.source.__class__.__name__ == "Kernel":
                assert b.end_ns - b.start_ns == pytest.approx((a.end_ns - a.start_ns) / 2, abs=1)


def test_a_run_leaves_nothing_to_the_collector() -> None:
    """Many runs in one process need no more memory than one, even without a collector."""
    one = busy_job()
    gc.collect()
    gc.disable()
    try:
        simulate_windows(one, NOISY, 7)
        left = gc.collect()
    finally:
        gc.enable()
    assert left < len(one.ranks) * 60
