"""Why the device is idle, to the nanosecond, on traces of a few events."""

import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import facts_of, recording_of

WINDOW_US = 5000
SYNC = "cudaDeviceSynchronize"


def idle_us(*events: Event, window_us: float = WINDOW_US) -> dict[str, float]:
    """Idle leaves of one step of 5 ms that holds these events, in microseconds."""
    facts = facts_of(recording_of(document(step(0, 0, window_us), *events)))
    budget = facts.timeline.budget(*facts.span_ns)
    assert sum(budget.values()) == window_us * 1000
    return {leaf: ns / 1000 for leaf, ns in budget.items() if "kernel" not in leaf}


def annotation(name: str, ts: float, dur: float, *, tid: int = 1) -> Event:
    return event("user_annotation", name, ts, dur, tid=tid)


def launched(ts: float, *, until: float = WINDOW_US, start: float | None = None) -> list[Event]:
    """A launch call of 10 us, and its kernel 10 us after it, to the end of the step."""
    begin = ts + 20 if start is None else start
    return [call(900, ts, 10), kernel(GEMM, begin, until - begin, correlation=900)]


FIRST = [call(1, 0, 5), kernel(GEMM, 0, 1000, correlation=1)]
"""A kernel that keeps the device busy from 0 to 1000 us."""


def test_a_launch_takes_its_call_and_the_usual_latency() -> None:
    """Before the call the thread was silent; call and 10 us behind it are the launch."""
    assert idle_us(*launched(500)) == {"host_other": 500, "launch": 20}


def test_a_thread_in_operators_is_dispatching() -> None:
    """Of the time before the launch, operators are launch, the rest is Python."""
    events = [*FIRST, host("aten::linear", 1100, 300), *launched(1380)]
    assert idle_us(*events) == {"launch": 300, "host_other": 100}


def test_a_deep_queue_is_no_idle_time() -> None:
    """Kernels wait hundreds of microseconds for their turn: only the first launch counts."""
    calls = [call(i, 10 * i, 5) for i in range(1, 50)]
    queued = [kernel(GEMM, 100 * i, 100, correlation=i) for i in range(1, 50)]
    assert idle_us(*calls, *queued) == {"host_other": 10, "launch": 15, "unclassified": 75}


def test_waiting_for_the_loader_is_input() -> None:
    """The loader stands in front of the launch that ends the gap."""
    loader = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1200, 2000)
    assert idle_us(*FIRST, loader, *launched(3300)) == {
        "input": 2000,
        "host_other": 300,
        "launch": 20,
    }


def test_a_loader_under_device_work_is_free() -> None:
    """It ends before the queue does."""
    loader = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 800)
    assert idle_us(*FIRST, loader, *launched(950, start=1000)) == {}


def test_after_a_drained_queue_the_time_is_the_synchronisations() -> None:
    """The host waits, the device runs dry under the call, and nothing is queued behind it."""
    events = [*FIRST, call(2, 50, 960, name=SYNC), host("aten::mm", 1100, 100), *launched(1380)]
    assert idle_us(*events) == {"sync": 400}


def test_a_synchronisation_of_an_idle_device_drains_nothing() -> None:
    """It begins after the device ran dry: what came before and after is not its doing."""
    events = [*FIRST, call(2, 1100, 30, name=SYNC), *launched(1380)]
    assert idle_us(*events) == {"host_other": 350, "sync": 30, "launch": 20}


def test_a_synchronisation_that_only_waits_costs_nothing() -> None:
    """Work is queued on another stream: when the call returns, the device is busy."""
    events = [*FIRST, call(2, 50, 960, name="cudaStreamSynchronize"), *launched(20, start=500)]
    assert idle_us(*events) == {}


def test_the_loader_wins_over_a_drained_queue() -> None:
    """After the drain the host loads data: with a full queue it would have loaded just as long."""
    loader = annotation("enumerate(DataLoader)#x", 1200, 2000)
    events = [*FIRST, call(2, 50, 960, name=SYNC), loader, *launched(3300)]
    assert idle_us(*events) == {"input": 2000, "sync": 320}


def test_work_that_was_launched_in_time_waits_for_something_else() -> None:
    """The kernel was launched long before the gap: it depends on an event."""
    assert idle_us(*FIRST, *launched(20, start=1800)) == {"dependency": 800}


def test_a_gap_may_turn_from_host_to_launch_to_dependency() -> None:
    """Launched in the middle of the gap, and then held up."""
    assert idle_us(*FIRST, *launched(1300, start=1800)) == {
        "host_other": 300,
        "launch": 20,
        "dependency": 480,
    }


def test_overhead_that_the_profiler_names_is_its_own() -> None:
    """On whatever thread it happens."""
    overhead = event("overhead", "Activity Buffer Request", 1100, 200, pid=-1, tid=0)
    assert idle_us(*FIRST, overhead, *launched(1380)) == {
        "host_other": 180,
        "profiler": 200,
        "launch": 20,
    }


@pytest.mark.parametrize(
    "name", ["gc.collect", "torch.save(model)", "save_checkpoint", "wandb.log"]
)
def test_named_work_beside_the_model_is_other(name: str) -> None:
    """Garbage collection, checkpoints and logging of milliseconds, though a queue was drained."""
    events = [*FIRST, call(2, 50, 960, name=SYNC), annotation(name, 1200, 2000), *launched(3300)]
    assert idle_us(*events) == {"host_other": 2000, "sync": 320}


def test_the_thread_that_launched_is_asked() -> None:
    """Autograd's thread dispatches while the main thread waits in `backward`."""
    behind = [
        host("autograd::engine::evaluate_function: MmBackward0", 1100, 300, tid=2),
        call(900, 1380, 10) | {"tid": 2},
        kernel(GEMM, 1400, WINDOW_US - 1400, correlation=900),
    ]
    assert idle_us(*FIRST, *behind) == {"host_other": 100, "launch": 300}


def test_where_that_thread_is_silent_the_main_thread_is_asked() -> None:
    """Before backward begins, autograd's thread sleeps, and the main thread loads."""
    loader = annotation("enumerate(DataLoader)#x", 1000, 500)
    behind = [
        host("autograd::engine::evaluate_function: MmBackward0", 1600, 100, tid=2),
        call(900, 1680, 10) | {"tid": 2},
        kernel(GEMM, 1700, WINDOW_US - 1700, correlation=900),
    ]
    assert idle_us(*FIRST, loader, *behind) == {"input": 500, "host_other": 100, "launch": 100}


def test_without_a_launch_a_silent_thread_proves_nothing() -> None:
    """The operator shows; the rest of the gap cannot be told."""
    unlinked = kernel(GEMM, 2000, 3000)
    assert idle_us(*FIRST, host("aten::mm", 1100, 100), unlinked) == {
        "launch": 100,
        "unclassified": 900,
    }


def test_behind_the_last_work_a_silent_thread_proves_nothing() -> None:
    """No launch ends the gap: the step does."""
    assert idle_us(*FIRST, host("aten::mm", 1100, 100)) == {"launch": 100, "unclassified": 3900}


def test_without_a_device_only_input_shows() -> None:
    """A host alone: that it loads data is certain, that a device waits is not."""
    loader = annotation("enumerate(DataLoader)#x", 1000, 500)
    assert idle_us(loader, host("aten::mm", 2000, 500)) == {"input": 500, "unclassified": 4500}


def test_the_latency_of_a_launch_is_learnt_from_the_trace() -> None:
    """Eight launches on an idle device that take 40 us each: then 40 us are the launch's."""
    events = [
        part
        for i in range(8)
        for part in (call(i, 500 * i, 10), kernel(GEMM, 500 * i + 50, 100, correlation=i))
    ]
    late = [call(8, 4000, 10), kernel(GEMM, 4500, 500, correlation=8)]
    assert idle_us(*events, *late) == {
        "host_other": 7 * 350 + 350,
        "launch": 8 * 50 + 50,
        "dependency": 450,
    }


def test_a_collective_that_waits_for_compute_leaves_no_gap() -> None:
    """On a built job, an event between streams is dependency, and only while nothing runs."""
    b = KinetoBuilder(world_size=2, launch_us=1)
    with b.step():
        b.launch(GEMM, 500)
        b.collective("allreduce", 1 << 20, 100)
        b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
        b.launch(GEMM, 500)
        b.sync()
    facts = facts_of(b)
    budget = facts.timeline.budget(*facts.span_ns)
    assert {leaf: ns for leaf, ns in budget.items() if "kernel" not in leaf} == {
        "collective_unsplit": 100_000,
        "launch": 3_000,
    }
