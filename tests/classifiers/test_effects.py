"""What fixes change in the graph of a job, against the same jobs made without what they undo."""

import numpy as np
import pytest
from kineto_builder import COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of
from replaying import mean_step_ns, replayed

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


def changes(trace: KinetoBuilder, name: str) -> tuple[Graph, tuple[list[Change], ...]]:
    """A job's graph, and what a fix changes in it at least, likely and at most."""
    replay = replay_job(gather([grouped_facts_of(trace)]))
    facts, program = replay.ranks[0], replay.program
    assert program is not None
    found = diagnose_rank(facts, tuned_diagnoses({}), judge_rank(facts).unknown)
    share = next(one for one in found.shares if one.finding.diagnosis.id == name)
    return program.graph, Effects.of(program, facts, 0).changes(share, np.ones(3))


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
