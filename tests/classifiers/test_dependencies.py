"""The graph of a job: unchanged it takes as long as recorded, changed as the job made so would.

Jobs are built twice: as they are, and with kernels, pauses or batches of another length. What the
second one takes is the right answer to what the first one would take with that change.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from fleet import Fault, fleet
from generate import JOBS, straggler
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from plain_model import facts_of

from perfdiag.classifiers.dependencies import lacking
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import Replay, replay_job, replay_row
from perfdiag.classifiers.whatif import Change, scale
from perfdiag.trace_schemas.recording import Int64s

OFF = 0.01
"""Of a step, by which a replay may be off."""

SIDE_STREAM = 21
OWN_PROCESSES = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SAME_PROCESS = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
STEPS = 4

Job = Callable[[float], KinetoBuilder]
"""A job of one rank, of which device work takes so many times as long."""


def host_bound(pace: float) -> KinetoBuilder:
    """Operators take twice as long as their kernels."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            operators(b, 40, 20, 12 * pace)
    b.sync()
    return b


def device_bound(pace: float) -> KinetoBuilder:
    """Kernels are queued far ahead of the device, over the ends of steps."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            operators(b, 20, 5, 500 * pace)
    b.sync()
    return b


def sync_each_step(pace: float) -> KinetoBuilder:
    """The device is drained at the end of each step, and Python thinks before it goes on."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            operators(b, 10, 5, 200 * pace)
            b.sync()
            b.idle(700)
    return b


def read_each_operator(pace: float) -> KinetoBuilder:
    """`tensor.item()` after every operator."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            for _ in range(10):
                operators(b, 1, 5, 100 * pace)
                with b.op("aten::item", 2):
                    b.copy("DtoH", 4, 1.5 * pace)
                    b.sync(COMPUTE_STREAM)
                b.idle(50)
    return b


def streams_that_wait(pace: float, *, sync_events: bool = False) -> KinetoBuilder:
    """Kernels of a second stream wait for those of the first, and it for them in the end."""
    b = KinetoBuilder(sync_events=sync_events)
    for _ in range(STEPS):
        with b.step():
            for _ in range(10):
                operators(b, 1, 5, 200 * pace)
                b.wait_event(SIDE_STREAM, on=COMPUTE_STREAM)
                b.launch(ELEMENTWISE, 300 * pace, stream=SIDE_STREAM)
            b.wait_event(COMPUTE_STREAM, on=SIDE_STREAM)
            b.launch(GEMM, 100 * pace)
    b.sync()
    return b


def copies_beside(pace: float) -> KinetoBuilder:
    """Batches are copied on a stream of their own."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.copy("HtoD", 1 << 20, 400 * pace, stream=SIDE_STREAM)
            b.wait_event(COMPUTE_STREAM, on=SIDE_STREAM)
            operators(b, 10, 5, 200 * pace)
    b.sync()
    return b


def collectives_beside(kernels: float, collectives: float) -> KinetoBuilder:
    """Each gradient is reduced under the kernels of the next one."""
    b = KinetoBuilder(world_size=8)
    for _ in range(STEPS):
        with b.step():
            for _ in range(6):
                operators(b, 3, 5, 100 * kernels)
                b.collective("allreduce", 1 << 20, 260 * collectives)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.launch(GEMM, 100 * kernels)
    b.sync()
    return b


def pageable_copy(pace: float, *, kind: str) -> KinetoBuilder:
    """The host waits in a call until its copy is done."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            operators(b, 10, 5, 200 * pace)
            b.copy(kind, 1 << 20, 900 * pace, pageable=True)
            b.idle(300)
    b.sync()
    return b


def own_processes(pace: float, *, every_us: float = 10_000) -> KinetoBuilder:
    """Batches come every now and then, whatever the step does; it has to wait for all but one."""
    b = KinetoBuilder()
    begin_us = b.now_us
    for number in range(STEPS):
        with b.step():
            b.annotation(OWN_PROCESSES, max(30, begin_us + every_us * number - b.now_us))
            operators(b, 10, 5, 150 * pace)
            b.sync()
    return b


def same_process(pace: float, *, load_us: float = 5_000) -> KinetoBuilder:
    """The thread itself loads every batch, while the device works off its queue."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.annotation(SAME_PROCESS, load_us)
            operators(b, 10, 5, 200 * pace)
    b.sync()
    return b


def backward_thread(pace: float, *, kernel_us: float, drained: bool) -> KinetoBuilder:
    """Two threads launch by turns."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            operators(b, 10, 25, kernel_us * pace)
            b.idle(150)
            with b.backward_thread():
                operators(b, 20, 25, kernel_us * pace)
            b.idle(150)
            operators(b, 5, 25, kernel_us * pace)
            if drained:
                b.sync()
    b.sync()
    return b


def graph_launch(pace: float) -> KinetoBuilder:
    """One launch, twenty kernels."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.copy("HtoD", 1 << 20, 50 * pace)
            b.graph([(GEMM, 200 * pace)] * 20)
            b.launch(ELEMENTWISE, 30 * pace)
    b.sync()
    return b


def full_queue(pace: float) -> KinetoBuilder:
    """The host runs ahead until a launch has to wait for a place in the queue."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            for _ in range(600):
                b.launch(GEMM, 80 * pace)
    b.sync()
    return b


def operators(b: KinetoBuilder, count: int, dispatch_us: float, kernel_us: float) -> None:
    for _ in range(count):
        with b.op("aten::mm", dispatch_us):
            b.launch(GEMM, kernel_us)


ALONE: dict[str, Job] = {
    "host-bound": host_bound,
    "device-bound": device_bound,
    "drained each step": sync_each_step,
    "item": read_each_operator,
    "streams": streams_that_wait,
    "streams, recorded": lambda pace: streams_that_wait(pace, sync_events=True),
    "copies beside": copies_beside,
    "collectives beside": lambda pace: collectives_beside(pace, pace),
    "pageable copy to the host": lambda pace: pageable_copy(pace, kind="DtoH"),
    "pageable copy to the device": lambda pace: pageable_copy(pace, kind="HtoD"),
    "loader in its own processes": own_processes,
    "loader in the thread": same_process,
    "backward, host-bound": lambda pace: backward_thread(pace, kernel_us=20, drained=False),
    "backward, device-bound": lambda pace: backward_thread(pace, kernel_us=200, drained=False),
    "backward, drained": lambda pace: backward_thread(pace, kernel_us=200, drained=True),
    "graph launch": graph_launch,
    "full queue": full_queue,
}


def replay(*builders: KinetoBuilder) -> Replay:
    return replay_job(gather([grouped_facts_of(b) for b in builders]))


def recorded(facts: RankFacts) -> Int64s:
    """How long each step took."""
    return np.asarray(facts.model.steps.end_ns - facts.model.steps.ts_ns, np.int64)


def nodes(job: Replay, kind: NodeKind, *, rank: int | None = None, of: str | None = None) -> Int64s:
    """Nodes of a kind: all, or those of a rank; device work of one kind."""
    assert job.program is not None
    found = job.program.nodes
    mine = np.flatnonzero(found.kind == kind)
    mine = mine if rank is None else mine[found.rank[mine] == rank]
    if of is None:
        return mine
    work = [job.ranks[found.rank[n]].model.work.kind.take(found.work[[n]])[0] for n in mine]
    return np.asarray(mine[np.array(work) == of], np.int64)


def during(job: Replay, name: str, rank: int = 0) -> Int64s:
    """What the threads of a rank do in ranges of a name."""
    assert job.program is not None
    hosts, found = job.ranks[rank].model.hosts, job.program.nodes
    mine = nodes(job, NodeKind.HOST, rank=rank)
    named = hosts.name.where(name)
    at = np.searchsorted(hosts.ts_ns[named], found.ts_ns[mine], "right") - 1
    ends = hosts.end_ns[named][np.maximum(at, 0)]
    return np.asarray(mine[(at >= 0) & (found.end_ns[mine] <= ends)], np.int64)


def steps(job: Replay, *changes: Change, rank: int = 0) -> Int64s:
    """How long the steps of a rank take with changes made together."""
    return np.asarray(job.steps_ns([changes])[rank][0], np.int64)


@pytest.mark.parametrize("job", ALONE)
def test_an_unchanged_job_takes_as_long_as_it_did(job: str) -> None:
    """Every step of it, and nothing starts later than its graph says."""
    found = replay(ALONE[job](1))
    assert len(found.errors) == STEPS
    assert found.errors.max() <= OFF
    assert found.program is not None
    assert found.program.orders[0].unexplained_ns == 0


@pytest.mark.parametrize("job", JOBS)
def test_an_unchanged_fixture_takes_as_long_as_it_did(job: str) -> None:
    """So do models of many operators."""
    assert replay(JOBS[job]()).errors.max() <= OFF


FAULTS: list[Fault] = ["", "loader", "gc", "kernels", "link"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mesh", [False, True])
def test_unchanged_ranks_take_as_long_as_they_did(fault: Fault, mesh: bool) -> None:
    """Every step of every rank, whatever they wait for each other."""
    found = replay(*fleet(4, fault, 0.5, mesh=mesh))
    assert len(found.errors) == 4 * 4
    assert found.errors.max() <= OFF


def test_unchanged_stragglers_take_as_long_as_they_did() -> None:
    """So do two ranks of which one waits for the other's loader."""
    assert replay(*straggler()).errors.max() <= OFF


@pytest.mark.parametrize(("job", "pace"), [*product(ALONE, (0.5, 2.0))])
def test_device_work_of_another_length(job: str, pace: float) -> None:
    """All of it twice as fast, or twice as slow: steps are those of a job that was made so."""
    found = replay(ALONE[job](1))
    changed = steps(found, scale(nodes(found, NodeKind.WORK), pace))
    wanted = recorded(facts_of(ALONE[job](pace)))
    assert changed.tolist() == pytest.approx(wanted.tolist(), rel=OFF)
    assert pace > 1 or changed.sum() <= steps(found).sum()


@pytest.mark.parametrize(("kernels", "collectives"), [(0.5, 1.0), (1.0, 0.25), (2.0, 0.5)])
def test_collectives_are_hidden_as_far_as_kernels_last(kernels: float, collectives: float) -> None:
    """Either may be what the step waits for, and that changes with their lengths."""
    found = replay(collectives_beside(1, 1))
    made = [
        scale(nodes(found, NodeKind.WORK, of="kernel"), kernels),
        scale(nodes(found, NodeKind.WORK, of="collective"), collectives),
    ]
    wanted = recorded(facts_of(collectives_beside(kernels, collectives))).tolist()
    assert steps(found, *made).tolist() == pytest.approx(wanted, rel=OFF)


def test_kernels_save_nothing_where_batches_come_late() -> None:
    """Batches come every 10 ms; that the kernels are done earlier only lengthens the wait."""
    found = replay(own_processes(1))
    faster = steps(found, scale(nodes(found, NodeKind.WORK), 0.5))
    assert faster[1:].tolist() == steps(found)[1:].tolist()
    assert faster[1:].tolist() == pytest.approx([10e6] * (STEPS - 1), rel=OFF)


def test_batches_in_half_of_the_time() -> None:
    """They come every 5 ms, and so do the steps end."""
    found = replay(own_processes(1))
    faster = steps(found, scale(nodes(found, NodeKind.BATCH), 0.5))
    assert faster[1:].tolist() == pytest.approx([5e6] * (STEPS - 1), rel=OFF)


def test_batches_faster_than_the_step() -> None:
    """In a tenth of their time they are always there: the step is its kernels."""
    found = replay(own_processes(1))
    faster = steps(found, scale(nodes(found, NodeKind.BATCH), 0.1))
    assert faster[1:].tolist() == pytest.approx([1.5e6] * (STEPS - 1), rel=0.05)


@pytest.mark.parametrize("left", [0.5, 0.0])
def test_a_loader_in_the_thread_takes_its_time(left: float) -> None:
    """It is like any other work of the thread, until the kernels take longer than it."""
    found = replay(same_process(1))
    faster = steps(found, scale(during(found, SAME_PROCESS), left))
    wanted = recorded(facts_of(same_process(1, load_us=5_000 * left)))
    assert faster.tolist() == pytest.approx(wanted.tolist(), rel=OFF)


def test_a_first_batch_that_is_waited_for() -> None:
    """It can come earlier like all others."""
    b = KinetoBuilder()
    with b.step():
        b.annotation(OWN_PROCESSES, 10_000)
        operators(b, 10, 5, 150)
        b.sync()
    found = replay(b)
    faster = steps(found, scale(nodes(found, NodeKind.BATCH), 0.5))
    assert faster.tolist() == pytest.approx([6.5e6], rel=0.02)


def test_kernels_save_half_of_a_device_bound_step() -> None:
    """Their streams are never empty."""
    found = replay(device_bound(1))
    faster = steps(found, scale(nodes(found, NodeKind.WORK), 0.5))
    assert faster[1:].tolist() == [5_000_000] * (STEPS - 1)


def test_the_host_saves_nothing_of_a_device_bound_step() -> None:
    """Its launches are there long before."""
    found = replay(device_bound(1))
    faster = steps(found, scale(nodes(found, NodeKind.HOST), 0.5))
    assert faster[1:].tolist() == [10_000_000] * (STEPS - 1)


def test_the_host_saves_half_of_a_host_bound_step() -> None:
    """Its kernels have time to spare."""
    found = replay(host_bound(1))
    faster = steps(found, scale(nodes(found, NodeKind.HOST), 0.5))
    assert faster[1:].tolist() == pytest.approx([480_000] * (STEPS - 1), rel=OFF)


def paused(pause_us: float, queued_us: float, after_us: float, *, drained: bool) -> KinetoBuilder:
    """Each step launches, collects garbage, goes on, and launches again."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, queued_us)
            if pause_us:
                b.annotation("gc.collect", pause_us)
            operators(b, 20, after_us / 20, 10)
            b.launch(GEMM, 2000)
            if drained:
                b.sync()
    b.sync()
    return b


PAUSES = {
    "exposed": ((3000, 10, 100, True), 3000),
    "hidden at first, but the host has more to do than the device": (
        (3000, 2000, 4900, True),
        3000,
    ),
    "longer than its queue": ((3000, 2000, 100, True), 1000),
    "hidden behind a queue": ((3000, 6000, 100, True), 0),
    "hidden behind the queue of the step before": ((1500, 10, 100, False), 0),
}


@pytest.mark.parametrize("pause", PAUSES)
def test_a_pause_saves_what_was_exposed(pause: str) -> None:
    """Even if the queue hid a part of it: what counts is what the step waits for without it."""
    (pause_us, queued_us, after_us, drained), saved_us = PAUSES[pause]
    found = replay(paused(pause_us, queued_us, after_us, drained=drained))
    without = steps(found, scale(during(found, "gc.collect"), 0.0))
    wanted = recorded(facts_of(paused(0, queued_us, after_us, drained=drained)))
    assert without.tolist() == pytest.approx(wanted.tolist(), abs=20_000)
    saved = (steps(found) - without)[1:]  # the operators beside it take up to 0.2 ms
    assert saved.tolist() == pytest.approx([saved_us * 1000] * (STEPS - 1), abs=250_000)


@pytest.mark.parametrize("mesh", [False, True])
def test_a_slow_rank_in_step_shortens_the_steps_of_all(mesh: bool) -> None:
    """Its kernels as fast as those of others: all ranks take as long as in the healthy job."""
    ill, well = fleet(4, "kernels", 0.5, mesh=mesh), fleet(4, mesh=mesh)
    found = replay(*ill)
    slow = nodes(found, NodeKind.WORK, rank=1, of="kernel")
    for rank, builder in enumerate(well):
        changed = steps(found, scale(slow, 1 / 1.6), rank=rank)
        assert changed.tolist() == pytest.approx(recorded(facts_of(builder)).tolist(), rel=1e-3)
        assert (steps(found, rank=rank) - changed > 5_000_000).all()


@pytest.mark.parametrize(("fault", "name"), [("gc", "gc.collect"), ("loader", SAME_PROCESS)])
def test_a_late_rank_in_time_shortens_the_steps_of_all(fault: Fault, name: str) -> None:
    """Without what holds it up the ranks take no longer than in the healthy job."""
    found = replay(*fleet(4, fault, 0.5))
    for rank, builder in enumerate(fleet(4)):
        changed = steps(found, scale(during(found, name, 1), 0.0), rank=rank)
        assert changed.tolist() == pytest.approx(recorded(facts_of(builder)).tolist(), rel=OFF)


def test_a_rank_that_is_early_saves_nothing() -> None:
    """Those that wait for the late one may be as fast as they like."""
    found = replay(*fleet(4, "kernels", 0.5))
    early = np.concatenate(
        [nodes(found, NodeKind.WORK, rank=rank, of="kernel") for rank in (0, 2, 3)]
    )
    for rank in range(4):
        assert (
            steps(found, scale(early, 0.1), rank=rank).tolist() == steps(found, rank=rank).tolist()
        )


def test_clocks_that_differ_are_brought_together() -> None:
    """Ranks whose clocks are 3 ms apart meet as if they had one."""
    facts = [facts_of(b) for b in fleet(4, "loader", 0.5)]
    origin = 1_700_000_000_000_000_000
    apart = [replace(f, clock_unix_ns=origin + i * 3_000_000) for i, f in enumerate(facts)]
    found = replay_job(gather(apart))
    assert found.errors.max() <= OFF
    late = scale(during(found, SAME_PROCESS, 1), 0.0)
    for rank, builder in enumerate(fleet(4)):
        wanted = recorded(facts_of(builder)).tolist()
        assert steps(found, late, rank=rank).tolist() == pytest.approx(wanted, rel=OFF)


def test_a_job_that_lacks_nothing() -> None:
    """Its savings are replayed."""
    facts = facts_of(device_bound(1))
    assert lacking(facts) == ""
    assert replay_row(replay_job(gather([facts]))).believed


def without_device() -> RankFacts:
    """Operators, and no record of what they launched."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step(), b.op("aten::mm", 500):
            pass
    return facts_of(b)


def without_launches(lost: float, *, first: int = 0) -> RankFacts:
    """A share of the launches is missing, from some launch on."""
    b = device_bound(1)
    calls = [e for e in b.clock.events if e["name"] == "cudaLaunchKernel"][first:]
    gone = {id(e) for e in calls[: round(lost * len(calls))]}
    b.clock.events[:] = [e for e in b.clock.events if id(e) not in gone]
    return facts_of(b)


def test_a_trace_without_device_work_lacks_it() -> None:
    """There is nothing to be replayed."""
    assert lacking(without_device()) == "The trace holds no device work."


def test_a_trace_without_a_verdict_lacks_device_work() -> None:
    """What the records do not hold cannot be replayed."""
    facts = facts_of(device_bound(1))
    assert "No step has a verdict" in lacking(replace(facts, trusted=facts.trusted & False))


def test_a_trace_without_launches_lacks_them() -> None:
    """Nothing says what its kernels waited for."""
    assert lacking(without_launches(1.0)) == (
        "Only 0% of the device work has its launch in the trace."
    )


def test_a_few_launches_may_be_missing() -> None:
    """One in twenty-five, but not one in ten."""
    assert lacking(without_launches(0.04, first=10)) == ""
    assert "has its launch in the trace" in lacking(without_launches(0.1, first=10))


def test_launches_of_before_the_trace_are_not_missed() -> None:
    """A trace that begins with kernels that were queued before it can be replayed."""
    facts = without_launches(0.3)
    assert lacking(facts) == ""
    assert replay_job(gather([facts])).errors.max() <= OFF


def test_what_one_rank_lacks_the_job_lacks() -> None:
    """It says which one: without it nobody knows what the others waited for."""
    ranks = [replace(without_device(), rank=1), replace(facts_of(device_bound(1)), rank=0)]
    found = replay_job(gather(ranks))
    assert found.program is None
    assert found.lacks == "Rank 1: the trace holds no device work."
    told = replay_row(found)
    assert not told.believed
    assert told.why.startswith("Savings are static bounds")
