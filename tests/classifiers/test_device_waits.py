"""Which calls wait for the device, and which work waits for other streams.

Jobs are built twice, as in `test_dependencies`: what the one takes that was made so is the right
answer to what the other one would take.
"""

import numpy as np
import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.device_order import order_devices
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import Replay, replay_job
from perfdiag.classifiers.whatif import scale
from perfdiag.trace_schemas.recording import Int64s

STEPS = 3


def replay(b: KinetoBuilder) -> Replay:
    return replay_job(gather([facts_of(b)]))


def recorded(b: KinetoBuilder) -> Int64s:
    """How long each step takes of a job that was made so."""
    steps = facts_of(b).model.steps
    return np.asarray(steps.end_ns - steps.ts_ns, np.int64)


def with_work(job: Replay, kind: str, pace: float) -> Int64s:
    """How long each step takes if device work of a kind takes so many times as long."""
    assert job.program is not None
    nodes, work = job.program.nodes, job.ranks[0].model.work
    ids = np.flatnonzero(nodes.kind == NodeKind.WORK)
    mine = ids[work.kind.where(kind)[nodes.work[ids]]]
    return np.asarray(job.steps_ns([[scale(mine, pace)]])[0][0], np.int64)


def memory(api: str, own_us: float, kernel_us: float, *, waits: bool) -> KinetoBuilder:
    """Each step launches a kernel, allocates or releases memory, works, and launches another."""
    b = KinetoBuilder()
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, kernel_us)
            drained = max(b.clock.free.values())
            b.clock.call(api, round(own_us * 1000) + waits * (drained - b.clock.now))
            b.idle(500)
            b.launch(GEMM, kernel_us)
            b.sync()
    return b


CALLS = {
    "a release": ("cudaFree", 1_000, True),
    "an allocation that work explains": ("cudaMalloc", 50, True),
    "an allocation that takes long itself": ("cudaMalloc", 1_000, False),
}


@pytest.mark.parametrize("pace", [0.5, 2.0])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_lasts_as_long_as_what_it_waits_for(call: str, pace: float) -> None:
    """A release until the device has caught up and then for itself, an allocation one of both."""
    api, own_us, waits = CALLS[call]
    found = with_work(replay(memory(api, own_us, 300, waits=waits)), "kernel", pace)
    wanted = recorded(memory(api, own_us, 300 * pace, waits=waits))
    assert found.tolist() == pytest.approx(wanted.tolist(), abs=5_000)


def handed_over(reduce_us: float, *, pause_us: float = 1_000) -> KinetoBuilder:
    """Autograd's thread waits for a reduction on the stream of the optimizer, which comes later.

    What it launches itself is done by then, so that the reduction alone keeps the optimizer.
    """
    b = KinetoBuilder(world_size=8)
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 50)
            b.idle(150)
            with b.backward_thread():
                b.launch(GEMM, 50)
                b.collective("allreduce", 1 << 20, reduce_us)
                b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.idle(pause_us)
            b.launch(GEMM, 50)
            b.sync(COMPUTE_STREAM)
    b.sync()
    return b


def test_the_optimizer_waits_for_what_autograds_thread_asked_for() -> None:
    """The reduction is over when it is launched, but would not be if it took longer."""
    found = with_work(replay(handed_over(500)), "collective", 4.0)
    wanted = recorded(handed_over(2_000))
    assert found.tolist() == pytest.approx(wanted.tolist(), abs=5_000)
    assert found.sum() >= recorded(handed_over(500)).sum() + 500_000 * STEPS


def working_on() -> KinetoBuilder:
    """The main thread makes NCCL's stream wait and launches on it; autograd's launches kernels."""
    b = KinetoBuilder(world_size=8)
    for _ in range(STEPS):
        with b.step():
            b.launch(GEMM, 100)
            b.collective("allreduce", 1 << 20, 100)
            b.idle(150)
            with b.backward_thread():
                b.launch(GEMM, 100)
            b.idle(600)
    b.sync()
    return b


def test_what_another_thread_launches_does_not_wait_once_the_first_has_gone_on() -> None:
    """The wait was for what the thread that asked for it has launched itself since."""
    facts = facts_of(working_on())
    order = order_devices(facts)
    assert len(order.target)
    assert (facts.model.work.launch_lane[order.target] == facts.states.main_lane).all()
