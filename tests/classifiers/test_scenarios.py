"""Whole jobs of which the truth is known by construction: what an expert would sign, and why."""

from kineto_builder import GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import facts_of, recording_of

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.labels import judge

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
FIRST = [call(1, 0, 5), kernel(GEMM, 0, 1000, correlation=1)]
"""A kernel that keeps the device busy from 0 to 1000 us."""


def budgets_us(facts: RankFacts) -> list[dict[str, float]]:
    """Of each step; they sum to its window."""
    steps = facts.model.steps
    found = []
    for start, end in zip(steps.ts_ns.tolist(), steps.end_ns.tolist(), strict=True):
        budget = facts.timeline.budget(start, end)
        assert sum(budget.values()) == end - start
        found.append({leaf: ns / 1000 for leaf, ns in budget.items()})
    return found


def step_us(*events: Event) -> dict[str, float]:
    """Of one step of 5 ms that holds these events."""
    (budget,) = budgets_us(facts_of(recording_of(document(step(0, 0, 5000), *events))))
    return budget


def overhead(name: str, ts: float, dur: float) -> Event:
    return event("overhead", name, ts, dur, pid=-1, tid=0)


def without_kernels(b: KinetoBuilder, first: int, last: int, of: int) -> KinetoBuilder:
    """Lose the records of some of every so many kernels."""
    kernels = [e for e in b.clock.events if e.get("cat") == "kernel"]
    lost = {id(e) for i, e in enumerate(kernels) if first <= i % of < last}
    b.clock.events[:] = [e for e in b.clock.events if id(e) not in lost]
    return b


def queued(steps: int, long_us: float = 10, *, sync: bool = False) -> KinetoBuilder:
    """Steps of 92 kernels of 10 us and 8 longer ones; `sync` waits for them at the end."""
    b = KinetoBuilder()
    for _ in range(steps):
        with b.step():
            for i in range(100):
                with b.op("aten::mm", 2):
                    b.launch(GEMM, 10 if i < 92 else long_us)
            if sync:
                b.sync()
    return b


def test_python_after_an_item_from_pageable_memory_is_the_syncs() -> None:
    """The copy's call returns when it is done; the synchronisation after it finds no work."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.launch(GEMM, 500)
            with b.op("aten::item"):
                b.copy("DtoH", 4, 2, pageable=True)
                b.sync(7)
            b.idle(1000)
    first, last = (budget["sync"] for budget in budgets_us(facts_of(b)))
    assert first == 1.5 + 1000  # the synchronisation and Python
    assert last == 4 + 2 + 1.5  # the next launch and its start; the synchronisation after it


def test_an_asynchronous_copy_drains_nothing() -> None:
    """Its call returns before the copy is done: what follows is Python."""
    copied = event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 1000, 100, pid=0, tid=7)
    copied["args"] = {"device": 0, "stream": 7, "correlation": 2}
    copy = [call(2, 900, 10, name="cudaMemcpyAsync"), copied]
    later = [call(3, 2000, 10), kernel(GEMM, 2020, 2980, correlation=3)]
    assert step_us(*FIRST, *copy, *later)["host_other"] == 900


def test_long_kernels_without_records_are_no_wait_of_the_host() -> None:
    """8 % of the launches, but nine tenths of the time: the host waits for work unseen."""
    facts = facts_of(without_kernels(queued(3, long_us=1000, sync=True), 92, 100, 100))
    assert facts.trusted.all()
    first, *others = budgets_us(facts)
    assert first == {"compute_kernel": 920, "launch": 8, "unclassified": 8000}
    assert others == [{"compute_kernel": 920, "unclassified": 8008}] * 2
    assert judge({leaf: int(us) for leaf, us in first.items()}).label == "unknown"
    assert [n.kind for n in facts.notices] == ["device.under_recorded"]


def test_lost_work_of_one_step_is_no_idle_time_of_the_next() -> None:
    """The host is ahead: the lost kernels would have run in the next step's window."""
    facts = facts_of(without_kernels(queued(4), 100, 200, 400))
    assert facts.trusted.tolist() == [True, False, True, True]
    lost, following = budgets_us(facts)[1:3]
    assert set(lost) == {"unclassified"}
    assert following == {"compute_kernel": 1000, "unclassified": 1000 - lost["unclassified"]}


def test_before_the_lost_launch_idle_time_is_believed() -> None:
    """The host prepared for 1 ms, then launched work without a record."""
    queue = [call(10 + i, 5 * i, 4) for i in range(20)]
    work = [kernel(GEMM, 50 * i, 50, correlation=10 + i) for i in range(20)]
    lost, later = call(2, 2000, 10), [call(3, 3000, 10), kernel(GEMM, 3020, 1980, correlation=3)]
    budget = step_us(*queue, *work, host("aten::stack", 1000, 1000), lost, *later)
    assert budget == {"compute_kernel": 2980, "launch": 1000, "unclassified": 1020}


def test_records_may_end_in_the_middle_of_a_step() -> None:
    """Half of the launches of the third step, and all after them, have no record."""
    facts = facts_of(without_kernels(queued(4), 250, 400, 400))
    assert facts.trusted.tolist() == [True, True, False, False]
    assert [(n.kind, n.count) for n in facts.notices] == [("device.truncated", 150)]


def test_a_buffer_request_inside_the_launch_is_overhead() -> None:
    """CUPTI asks for a buffer in the call that would have ended the gap."""
    launch = [call(2, 1100, 2020), kernel(GEMM, 3130, 1870, correlation=2)]
    assert step_us(*FIRST, overhead("Activity Buffer Request", 1110, 2000), *launch) == {
        "compute_kernel": 2870,
        "host_other": 100,
        "launch": 30,
        "profiler": 2000,
    }


def test_a_loader_does_not_wait_for_a_flush_beside_it() -> None:
    """Without the profiler it would have taken as long."""
    loader = event("user_annotation", LOADER, 1000, 3000)
    launch = [call(2, 4000, 10), kernel(GEMM, 4020, 980, correlation=2)]
    assert step_us(*FIRST, loader, overhead("Buffer Flush", 1500, 2000), *launch) == {
        "compute_kernel": 1980,
        "input": 3000,
        "launch": 20,
    }


def test_waiting_for_an_event_every_time_is_no_latency() -> None:
    """Nine kernels start 300 us after their launch on an idle device: no launch is that slow."""
    events = [
        part
        for i in range(10)
        for part in (call(i, 500 * i + 10, 10), kernel(GEMM, 500 * i + 310, 190, correlation=i))
    ]
    assert step_us(*events)["dependency"] == 9 * (310 - 20 - 100)


def test_before_the_first_record_a_queued_kernel_waits_for_nothing_known() -> None:
    """The recording began while the device was busy: work of then has no records."""
    launch = [call(1, 100, 10), kernel(GEMM, 4000, 1000, correlation=1)]
    assert step_us(*launch) == {
        "compute_kernel": 1000,
        "host_other": 100,
        "launch": 20,
        "unclassified": 3880,
    }
