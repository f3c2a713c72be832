"""What fixes change in the graph of a job, against the same jobs made without what they undo."""

import numpy as np
import pytest
from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from replaying import mean_step_ns, replayed

from perfdiag.classifiers.dependencies import Program
from perfdiag.classifiers.effects import Effects
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.graph import Graph
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import replay_job
from perfdiag.classifiers.thresholds import tuned_diagnoses
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.classifiers.whatif import Change, apply

STEPS, READS = 5, 6


def step_ns(*traces: KinetoBuilder) -> float:
    """Mean step of a job as it was made."""
    return mean_step_ns(gather([grouped_facts_of(trace) for trace in traces]))


def read(b: KinetoBuilder) -> None:
    """A value is read from the device."""
    with b.op("aten::item", 2):
        b.sync(COMPUTE_STREAM)


def reading(*, reads: bool, python_us: float = 90) -> KinetoBuilder:
    """Python after each kernel of 100 us, on the value that was read or on another one."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            for _ in range(READS):
                b.launch(GEMM, 100)
                if reads:
                    read(b)
                b.idle(python_us)
    return b


def program_and_changes(
    trace: KinetoBuilder, name: str
) -> tuple[Program, tuple[list[Change], ...]]:
    """A job's graph with its nodes, and what a fix changes in it at least, likely and at most."""
    replay = replay_job(gather([grouped_facts_of(trace)]))
    facts, program = replay.ranks[0], replay.program
    assert program is not None
    found = diagnose_rank(facts, tuned_diagnoses({}), judge_rank(facts).unknown)
    share = next(one for one in found.shares if one.finding.diagnosis.id == name)
    return program, Effects.of(program, facts, 0).changes(share, np.ones(3))


def changes(trace: KinetoBuilder, name: str) -> tuple[Graph, tuple[list[Change], ...]]:
    """The same without what nodes stand for."""
    program, levels = program_and_changes(trace, name)
    return program.graph, levels


def cut_by(made: list[Change]) -> int:
    """How many edges do not wait."""
    return sum(int((change.cut_at < 1.0).sum()) for change in made)


def test_likely_no_read_is_waited_for_and_at_least_some_are_not() -> None:
    """All of them, half of that at least.

    The edges that are cut are not brought forward beside that.
    """
    _, (least, likely, most) = changes(reading(reads=True), "draining_sync")
    assert cut_by(likely) == cut_by(most) == STEPS * READS
    assert cut_by(least) == pytest.approx(STEPS * READS / 2, abs=1)
    assert sum(len(change.edges) for change in [*least, *likely, *most]) == 0


def test_python_on_what_was_read_goes_only_at_most() -> None:
    """The host does it without the read too. Reading itself, 2 us of an operator, is not done."""
    graph, levels = changes(reading(reads=True), "draining_sync")
    gone_us = [(graph.length_ns - apply(graph, made)[0]).sum() / 1000 for made in levels]
    reads, python = STEPS * READS, (STEPS * READS - 1) * 90
    assert gone_us[1] == pytest.approx(2 * reads, abs=1)
    assert gone_us[0] == pytest.approx(2 * reads / 2, abs=1)
    assert gone_us[2] >= python


@pytest.mark.parametrize("python_us", [30, 90, 300])
def test_a_host_that_does_not_wait_works_ahead(python_us: float) -> None:
    """Whether the device bounds the job then, or the host does: steps are as long as without reads.

    What stays is the last read of the trace, which no work follows: up to 100 us.
    """
    found = replayed([reading(reads=True, python_us=python_us)])
    real = found.step_ns - step_ns(reading(reads=False, python_us=python_us))
    saving = found.savings["draining_sync"]
    assert saving.likely_ns == pytest.approx(real, abs=100_000 / STEPS + 1_000)
    assert saving.low_ns <= real <= saving.high_ns
    assert saving.low_ns < 0.75 * saving.likely_ns


def logging(*, logs: bool, reads: bool) -> KinetoBuilder:
    """A kernel of 400 us, 300 us of logging, and ten kernels that are launched one by one."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 400)
            if logs:
                with b.annotation("wandb.log"):
                    if reads:
                        read(b)
                    b.idle(300)
            for _ in range(10):
                b.idle(5)
                b.launch(GEMM, 40)
            b.sync()
    return b


def test_without_logging_the_read_before_it_goes_too() -> None:
    """Nothing is read that is not logged: kernels behind it are launched under the one before."""
    found = replayed([logging(logs=True, reads=True)])
    real = found.step_ns - step_ns(logging(logs=False, reads=False))
    saving = found.savings["logging_stall"]
    assert real > 0.9 * 300_000
    assert saving.likely_ns == pytest.approx(real, abs=0.01 * found.step_ns)


def long_kernel_then_python(python_us: float) -> KinetoBuilder:
    """A kernel of 2 ms hides the Python before the first operators, not that before the others."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 2000)
            for _ in range(100):
                b.idle(python_us)
                with b.op("aten::linear", 10):
                    b.launch(GEMM, 20)
            b.sync()
    return b


def test_python_that_a_queue_hides_goes_too() -> None:
    """All launches come earlier, up to where the device has no gap: the saving is the real one."""
    found = replayed([long_kernel_then_python(40)])
    real = found.step_ns - step_ns(long_kernel_then_python(0))
    assert found.savings["python_overhead"].likely_ns == pytest.approx(real, rel=0.01)


def collecting(pause_us: float) -> KinetoBuilder:
    """A pause of which a kernel hides a part, before launches that the device waits for."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 500)
            if pause_us:
                b.annotation("gc.collect", pause_us)
            for _ in range(50):
                b.idle(30)
                b.launch(GEMM, 20)
            b.sync()
    return b


def test_nothing_is_left_of_a_pause() -> None:
    """Also of the part that a kernel hides: launches after it come as much earlier."""
    found = replayed([collecting(900)])
    real = found.step_ns - step_ns(collecting(0))
    assert found.savings["gc_pause"].likely_ns == pytest.approx(real, rel=0.01)


def synchronizing(*, waits: bool) -> KinetoBuilder:
    """The host waits for the device between two kernels, and reads nothing."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 200)
            if waits:
                b.sync()
            b.idle(90)
            b.launch(GEMM, 200)
    return b


def test_a_wait_that_reads_nothing_has_no_read_to_remove() -> None:
    """A claim without any interval changes nothing; the wait is cut as others are."""
    found = replayed([synchronizing(waits=True)])
    real = found.step_ns - step_ns(synchronizing(waits=False))
    assert found.savings["draining_sync"].likely_ns == pytest.approx(real, abs=2_000)


def releasing(*, reads: bool, frees: bool, between_us: float = 1) -> KinetoBuilder:
    """A value is read after each kernel, and memory released, which waits for the device as well.

    Then Python, which the device hides if it has a kernel to go on with.
    """
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            for _ in range(READS):
                b.launch(GEMM, 300)
                if reads:
                    read(b)
                    b.idle(between_us)
                if frees:
                    left = max(b.clock.now, *b.clock.free.values()) - b.clock.now
                    b.clock.call("cudaFree", left + 60_000)
                b.idle(100)
    return b


def test_a_release_alone_saves_no_wait_for_the_device() -> None:
    """The read waits for the kernel with it and without it: what goes is the call's own time."""
    found = replayed([releasing(reads=True, frees=True)])
    real = found.step_ns - step_ns(releasing(reads=True, frees=False))
    assert found.savings["allocator_storm"].likely_ns == pytest.approx(real, abs=1_000)
    assert real == READS * 60_000


def test_calls_that_wait_in_turn_save_together_what_the_device_hides() -> None:
    """A release that goes does not wait either, though it recorded no wait: the read had waited."""
    found = replayed([releasing(reads=True, frees=True)])
    fixes = [found.savings[name] for name in ("draining_sync", "allocator_storm")]
    real = found.step_ns - step_ns(releasing(reads=False, frees=False))
    together = sum(one.left_ns for one in fixes)
    assert together == pytest.approx(real, abs=10_000)
    assert together > 1.3 * sum(one.likely_ns for one in fixes)


def test_a_release_takes_along_no_wait_that_ends_where_it_begins() -> None:
    """Its own wait goes, which ends after it has begun; the read right before it stays."""
    trace = releasing(reads=True, frees=True, between_us=0)
    program, (_, likely, _) = program_and_changes(trace, "allocator_storm")
    gone = np.concatenate([change.cut[change.cut_at < 1.0] for change in likely])
    until = np.sort(program.nodes.ts_ns[program.graph.target[gone]])
    calls = grouped_facts_of(trace).model.calls
    frees = calls.api.where("cudaFree")
    assert len(until) == STEPS * READS
    assert ((until > calls.ts_ns[frees]) & (until <= calls.end_ns[frees])).all()


def beside_a_pause() -> KinetoBuilder:
    """One thread collects garbage while another one launches kernels and reads values."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 20)
            start = b.clock.now
            b.annotation("gc.collect", 3000)
            with b.backward_thread():
                b.clock.now = start
                for _ in range(READS):
                    b.idle(200)
                    b.launch(GEMM, 100)
                    read(b)
            b.clock.now = max(b.clock.now, start + 3_000_000)
            b.sync()
    return b


def test_another_thread_waits_on_while_garbage_is_collected() -> None:
    """A claim that speaks of one thread lets go of the waits of that one alone."""
    _, levels = changes(beside_a_pause(), "gc_pause")
    assert [cut_by(made) for made in levels] == [0, 0, 0]


def copying(api: str) -> KinetoBuilder:
    """Values are read from the device, and others are copied to it by a call that blocks."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            for _ in range(READS):
                b.launch(GEMM, 100)
                read(b)
                b.idle(50)
                b.launch(GEMM, 100)
                b.copy("HtoD", 1 << 16, 20, pageable=True)
                b.idle(50)
    for event in b.clock.events:
        if event["name"] == "cudaMemcpyAsync":
            event["name"] = api
    return b


@pytest.mark.parametrize("api", ["cudaMemcpyAsync", "hipMemcpyWithStream"])
def test_reads_and_copies_that_block_are_let_go_one_by_one(api: str) -> None:
    """Without the reads the host still waits for each copy, and without these for each read."""
    for name in ("draining_sync", "pageable_copy"):
        _, (_, likely, most) = changes(copying(api), name)
        assert cut_by(likely) == cut_by(most) == STEPS * READS
