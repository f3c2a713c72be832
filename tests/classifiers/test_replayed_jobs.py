"""Jobs on which a simple model of dependencies goes wrong, against the same jobs made otherwise."""

import pytest
from fleet import fleet, meet
from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from random_fleets import random_fleet
from replaying import Replayed, mean_step_ns, replayed

from perfdiag.classifiers.job import gather
from perfdiag.classifiers.savings import worthwhile

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def real_step_ns(*traces: KinetoBuilder) -> float:
    """Mean step of a job as it was made."""
    return mean_step_ns(gather([grouped_facts_of(trace) for trace in traces]))


def pausing(pause_us: float) -> KinetoBuilder:
    """The device drains under a pause, and the host reads a value at the end of each step."""
    b = KinetoBuilder()
    for _ in range(6):
        with b.step():
            b.idle(4000)
            b.launch(GEMM, 8000)
            if pause_us:
                b.annotation("gc.collect", pause_us)
            b.sync()
    return b


def test_a_wait_for_what_is_done_stays_one() -> None:
    """Without the pause the host would come to the read before the device is done."""
    found = replayed([pausing(10_000)])
    real = found.step_ns - real_step_ns(pausing(0))
    saving = found.savings["gc_pause"]
    assert saving.high_ns >= real
    assert saving.low_ns <= real
    assert saving.high_ns == pytest.approx(real, abs=0.05 * found.step_ns)


def loading(pace: float, *, slow: int) -> KinetoBuilder:
    """Batches are there when they are asked for, but one."""
    b = KinetoBuilder()
    for number in range(8):
        with b.step():
            b.annotation(LOADER, 5000 if number == slow else 20)
            for _ in range(10):
                b.launch(GEMM, 1000 * pace)
            b.sync()
    return b


def test_one_late_batch_does_not_hold_up_the_steps_before_it() -> None:
    """Kernels twice as fast save of each step what they save in a job that was made so."""
    found = replayed([loading(1, slow=6)])
    real = 1 - real_step_ns(loading(0.5, slow=6)) / found.step_ns
    assert found.replay.twice_as_fast["compute-bound"] == pytest.approx(real, abs=0.02)


def in_two_groups(pace: float) -> list[KinetoBuilder]:
    """Parameters are gathered ahead on one communicator, gradients are scattered on another."""
    builders = [KinetoBuilder(rank, 2) for rank in range(2)]
    for step in range(5):
        opened = [b.step() for b in builders]
        for b, one in zip(builders, opened, strict=True):
            one.__enter__()
            for number, length_us in enumerate((10_000, 500)):
                first = len(b.clock.events)
                b.collective("_allgather_base", 1 << 20, length_us, stream=20)
                _put_into(b, first, "gather", 2 * step + number)
            b.launch(GEMM, 12_000 * pace)
            first = len(b.clock.events)
            b.collective("_reduce_scatter_base", 1 << 20, 1000, stream=22)
            _put_into(b, first, "scatter", step)
            b.wait_event(COMPUTE_STREAM, on=22)
            b.launch(GEMM, 12_000 * pace)
        for b, one in zip(builders, opened, strict=True):
            b.sync()
            one.__exit__(None, None, None)
    return builders


def _put_into(b: KinetoBuilder, first: int, group: str, number: int) -> None:
    for event in b.clock.events[first:]:
        if "Process Group Name" in event.get("args", {}):
            event["args"] |= {"Process Group Name": group, "Seq": number}


def test_groups_of_the_same_ranks_do_not_wait_for_each_other() -> None:
    """Kernels twice as fast bring reductions forward, whatever is still being gathered."""
    found = replayed(in_two_groups(1))
    real = 1 - real_step_ns(*in_two_groups(0.5)) / found.step_ns
    assert found.replay.twice_as_fast["compute-bound"] == pytest.approx(real, abs=0.02)


def without_steps_from(b: KinetoBuilder, number: int) -> KinetoBuilder:
    """A trace that ends with a step."""
    marks = (e["ts"] for e in b.clock.events if e["name"] == f"ProfilerStep#{number}")
    end = min(marks)
    b.clock.events[:] = [event for event in b.clock.events if event["ts"] < end]
    return b


def test_ranks_are_compared_by_step() -> None:
    """A trace of twice as many steps is not that of a rank that takes twice as long."""
    whole = replayed(fleet(4, "kernels", 0.2, steps=8)).savings["late_rank"].likely_ns
    builders = fleet(4, "kernels", 0.2, steps=8)
    cut = replayed([b if b.rank == 1 else without_steps_from(b, 4) for b in builders])
    assert cut.savings["late_rank"].likely_ns <= 1.05 * whole


def waiting_for_each_other() -> list[KinetoBuilder]:
    """One rank loads, the other one collects garbage, each as long."""

    builders = [KinetoBuilder(rank, 2) for rank in range(2)]
    for _ in range(4):
        opened = [b.step() for b in builders]
        for b, one in zip(builders, opened, strict=True):
            one.__enter__()
            b.annotation(*(("gc.collect", 3000) if b.rank else (LOADER, 3000)))
            b.launch(GEMM, 8000)
        meet(builders, 500)
        for b, one in zip(builders, opened, strict=True):
            b.sync()
            one.__exit__(None, None, None)
    return builders


def test_two_fixes_that_only_help_together_are_both_kept() -> None:
    """Neither saves anything alone; what the second one saves needs the first."""

    found = replayed(waiting_for_each_other())
    assert found.savings["gc_pause"].likely_ns < 0.01 * found.step_ns
    kept = set(worthwhile(found.savings))
    assert "gc_pause" in kept
    assert kept & {"loader_stall", "loader_workers_starved"}


def test_another_thread_goes_on_while_garbage_is_collected() -> None:
    """Only the thread that collects gets the time back."""
    b = KinetoBuilder()
    for _ in range(5):
        with b.step():
            start = b.clock.now
            b.annotation("gc.collect", 5000)
            with b.backward_thread():
                b.clock.now = start
                for _ in range(45):
                    with b.op("aten::mm", 90):
                        b.launch(GEMM, 20)
            b.clock.now = max(b.clock.now, start + 5_000_000)
            b.sync()
    found = replayed([b])
    assert found.savings["gc_pause"].likely_ns <= 0.2 * found.step_ns


def test_a_kernel_before_its_launch_costs_no_replay() -> None:
    """The record is impossible, and the rest of the job is not."""
    b = KinetoBuilder()
    for _ in range(4):
        with b.step():
            for number in range(20):
                b.launch(GEMM, 50)
                if number % 2:
                    b.sync()
                b.idle(10)
    [e for e in b.clock.events if e.get("cat") == "kernel"][30]["ts"] -= 80_000
    assert replayed([b]).replay.believed


def test_a_step_of_no_length_costs_no_report() -> None:
    """One of the ranks has a step marker without any time."""
    builders = fleet(2, steps=1)
    for event in builders[0].clock.events:
        if event["name"].startswith("ProfilerStep"):
            event["dur"] = 0
    assert isinstance(replayed(builders), Replayed)


def test_transfers_of_no_length_cost_no_report() -> None:
    """A clock too coarse shows collectives as moments."""
    builders = fleet(4, mesh=True, steps=2)
    for b in builders:
        for event in b.clock.events:
            about = event.get("args", {}).get("Process Group Description", "")
            if event.get("cat") == "kernel" and about.startswith("mesh_dim"):
                event["ts"] += event["dur"]
                event["dur"] = 0
    assert isinstance(replayed(builders), Replayed)


@pytest.mark.parametrize("seed", range(20))
def test_no_saving_exceeds_the_step(seed: int) -> None:
    """Nor does its upper bound."""
    job = replayed(random_fleet(seed).traces)
    assert all(saving.high_ns <= 1.001 * job.step_ns for saving in job.savings.values())
