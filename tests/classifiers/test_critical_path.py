"""The longest chain of dependencies: jobs of which every microsecond can be named."""

from typing import Any

import pytest
from fleet import fleet
from kineto_builder import COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder
from plain_model import facts_of

from perfdiag.classifiers.critical_path import CLASSES
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.replay import replay_job

OWN_PROCESSES = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SIDE_STREAM = 21
LAUNCH_US, LATENCY_US = 4, 2


def shares(*builders: KinetoBuilder) -> dict[str, float]:
    return replay_job(gather([facts_of(b) for b in builders])).critical_path


def of_us(**times_us: float) -> Any:
    """Shares of times by class."""
    whole = sum(times_us.values())
    return pytest.approx({name: us / whole for name, us in times_us.items()}, abs=1e-6)


def test_a_queue_of_kernels_is_the_chain() -> None:
    """One launch, the way to the device, and kernels from then on; later launches are not on it."""
    b = KinetoBuilder(launch_us=LAUNCH_US, latency_us=LATENCY_US)
    with b.step():
        for _ in range(3):
            b.launch(GEMM, 400)
        b.launch(ELEMENTWISE, 200)
        b.copy("DtoD", 1 << 20, 100)
        b.sync()
    assert shares(b) == of_us(
        host=LAUNCH_US, delay=LATENCY_US, compute_kernel=1200, memory_kernel=200, copy=100
    )


def test_a_thread_that_is_slower_than_the_device_is_the_chain() -> None:
    """Of the kernels only the last one is waited for."""
    b = KinetoBuilder(launch_us=LAUNCH_US, latency_us=LATENCY_US)
    with b.step():
        for _ in range(10):
            with b.op("aten::mm", 50):
                b.launch(GEMM, 5)
        b.sync()
    assert shares(b) == of_us(host=10 * (50 + LAUNCH_US), delay=LATENCY_US, compute_kernel=5)


def test_the_chain_goes_to_and_fro() -> None:
    """Kernel, a wait for it, what the thread does then, and another kernel."""
    b = KinetoBuilder(launch_us=LAUNCH_US, latency_us=LATENCY_US)
    with b.step():
        b.launch(GEMM, 400)
        b.sync()
        b.idle(294)
        b.launch(GEMM, 300)
        b.sync()
    assert shares(b) == of_us(host=2 * LAUNCH_US + 294, delay=2 * LATENCY_US, compute_kernel=700)


@pytest.mark.parametrize(("side_us", "on_it"), [(300, "compute_kernel"), (900, "memory_kernel")])
def test_of_two_streams_the_slower_one_is_on_it(side_us: float, on_it: str) -> None:
    """They run side by side, and the last kernel waits for both."""
    b = KinetoBuilder()
    with b.step():
        b.launch(ELEMENTWISE, side_us, stream=SIDE_STREAM)
        b.launch(GEMM, 600)
        b.wait_event(COMPUTE_STREAM, on=SIDE_STREAM)
        b.copy("DtoD", 1 << 20, 100)
        b.sync()
    found = shares(b)
    whole = max(600, side_us) + 100
    assert found[on_it] == pytest.approx(max(600, side_us) / whole, abs=0.02)
    assert found["copy"] == pytest.approx(100 / whole, abs=0.02)
    assert len({"compute_kernel", "memory_kernel"} & set(found)) == 1


def loading(*came_us: float) -> KinetoBuilder:
    """Steps of which the batches come at some times, from a loader with processes of its own."""
    b = KinetoBuilder()
    begin_us = b.now_us
    for us in came_us:
        with b.step():
            b.annotation(OWN_PROCESSES, max(30, begin_us + us - b.now_us))
            b.launch(GEMM, 3000)
            b.sync()
    return b


def test_batches_that_come_late_are_on_it() -> None:
    """Of a loader with processes of its own: one batch after another, up to the last kernel."""
    found = shares(loading(0, 10_000, 20_000, 30_000, 40_000))
    assert found["input"] == pytest.approx(40 / 43, abs=0.002)
    assert found["compute_kernel"] == pytest.approx(3 / 43, abs=0.002)


def test_a_first_batch_that_comes_late_is_on_it() -> None:
    """So that the chain begins where the first step does."""
    found = shares(loading(10_000, 20_000))
    assert found["input"] == pytest.approx(20 / 23, abs=0.002)


def test_the_chain_goes_through_the_late_rank() -> None:
    """Its loader is on it, not the kernels of those that wait."""
    late = shares(*fleet(4, "loader", 1.0, seed=None))
    usual = shares(*fleet(4, seed=None))
    assert late["host"] > 0.45 > 0.01 > usual["host"]
    assert late["compute_kernel"] < 0.5 < 0.7 < usual["compute_kernel"]
    assert late["collective"] == pytest.approx(1 / 23, abs=0.005)


def test_shares_add_up() -> None:
    """Every moment of the chain has its class."""
    for builders in ([KinetoBuilder()], fleet(4, "gc", 0.5)):
        if len(builders) == 1:
            with builders[0].step():
                builders[0].launch(GEMM, 10)
        found = shares(*builders)
        assert sum(found.values()) == pytest.approx(1)
        assert set(found) <= set(CLASSES)


def test_without_a_graph_there_is_no_chain() -> None:
    """A job that cannot be replayed has none."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 50):
        pass
    assert shares(b) == {}
