"""Every leaf of the time budget, made to appear and counted to the nanosecond."""

import numpy as np
import pytest
from kineto_builder import ELEMENTWISE, GEMM
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import facts_of, recording_of

from perfdiag.classifiers.budget import busiest_device
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.report import LEAVES, Totals

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
HTOD = "Memcpy HtoD (Pinned -> Device)"


def look(*events: Event, steps: int = 1, window_us: float = 1000) -> RankFacts:
    markers = [step(i, i * window_us, window_us) for i in range(steps)]
    return facts_of(recording_of(document(*markers, *events)))


def budget_us(*events: Event) -> dict[str, float]:
    facts = look(*events)
    budget = facts.timeline.budget(*facts.span_ns)
    return {leaf: ns / 1000 for leaf, ns in budget.items()}


def work(name: str, ts: float, dur: float, *, stream: int = 7, category: str = "kernel") -> Event:
    """Work whose launch is not in the trace."""
    args = {"device": 0, "stream": stream}
    return event(category, name, ts, dur, pid=0, tid=stream, args=args)


def totals_us(facts: RankFacts, start_us: float, end_us: float) -> dict[str, float]:
    totals = facts.timeline.totals(round(start_us * 1000), round(end_us * 1000))
    return {name: getattr(totals, name) / 1000 for name in Totals.__struct_fields__}


# ---------------------------------------------------------------- leaves

LEAF_MADE = [
    ("compute_kernel", [work(GEMM, 0, 1000)]),
    ("memory_kernel", [work(ELEMENTWISE, 0, 1000)]),
    ("kernel_unclassified", [work("my_own_kernel", 0, 1000)]),
    ("copy", [work(HTOD, 0, 400, category="gpu_memcpy"), work("Memset", 400, 600)]),
    ("collective_unsplit", [work(NCCL, 0, 1000, stream=20)]),
    ("input", [event("user_annotation", "enumerate(DataLoader)#x", 0, 1000), work(GEMM, 1000, 1)]),
    ("launch", [host("aten::mm", 0, 1000), work(GEMM, 1000, 1)]),
    ("profiler", [event("overhead", "Buffer Flush", 0, 1000, pid=-1), work(GEMM, 1000, 1)]),
    ("host_other", [call(1, 1000), kernel(GEMM, 1100, 9, correlation=1)]),
    ("unclassified", [work(GEMM, 1000, 1)]),
]


@pytest.mark.parametrize(("leaf", "events"), LEAF_MADE)
def test_a_leaf_may_fill_a_step(leaf: str, events: list[Event]) -> None:
    """All of the first millisecond is that leaf's."""
    facts = look(*events, steps=2)
    assert facts.timeline.budget(0, 1_000_000) == {leaf: 1_000_000}


def test_a_drained_queue_and_a_wait_fill_the_rest() -> None:
    """Sync and dependency need work before them."""
    first = [call(1, 0, 5), kernel(GEMM, 0, 100, correlation=1)]
    drain = [call(2, 50, 55, name="cudaDeviceSynchronize"), call(3, 600, 10)]
    last = kernel(GEMM, 620, 380, correlation=3)
    assert budget_us(*first, *drain, last) == {"compute_kernel": 480, "sync": 520}
    early = [call(3, 10, 5), kernel(GEMM, 620, 380, correlation=3)]
    assert budget_us(*first, *early) == {"compute_kernel": 480, "dependency": 520}


def test_every_leaf_that_a_single_rank_can_have_is_tested_here() -> None:
    """Waits and transfers of collectives need the other ranks."""
    made = {leaf for leaf, _ in LEAF_MADE} | {"sync", "dependency"}
    assert set(LEAVES) - made == {"collective_transfer", "collective_wait"}


# ---------------------------------------------------------------- what wins


def test_of_work_side_by_side_the_most_telling_counts() -> None:
    """Arithmetic before memory before unknown kernels before collectives before copies."""
    assert budget_us(
        work(HTOD, 0, 1000, stream=9, category="gpu_memcpy"),
        work(NCCL, 0, 800, stream=20),
        work("my_own_kernel", 0, 600, stream=10),
        work(ELEMENTWISE, 0, 400, stream=8),
        work(GEMM, 0, 200),
    ) == {
        "compute_kernel": 200,
        "memory_kernel": 200,
        "kernel_unclassified": 200,
        "collective_unsplit": 200,
        "copy": 200,
    }


def test_a_sub_microsecond_of_exposure_is_counted() -> None:
    """Nanoseconds are not rounded away."""
    assert budget_us(work(GEMM, 0, 999.999), work(NCCL, 0.5, 999.5, stream=20)) == {
        "compute_kernel": 999.999,
        "collective_unsplit": 0.001,
    }


# ---------------------------------------------------------------- totals


def test_totals_are_unions_on_one_device() -> None:
    """Overlaps count once, and exposed is what nothing better hides."""
    facts = look(
        work(GEMM, 100, 300),
        work(ELEMENTWISE, 200, 300, stream=8),
        work(NCCL, 400, 300, stream=20),
        work(NCCL, 450, 300, stream=21),
        work(HTOD, 600, 300, stream=9, category="gpu_memcpy"),
    )
    assert totals_us(facts, 0, 1000) == {
        "window": 1000,
        "busy": 800,
        "idle": 200,
        "compute": 400,
        "collective": 350,
        "exposed_collective": 250,
        "copy": 300,
        "exposed_copy": 150,
    }


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (150, 151), (99.5, 400.25), (0, 1000)])
def test_any_part_of_the_time_has_a_budget(start: float, end: float) -> None:
    """Between any two times leaves and totals are those of the parts inside."""
    facts = look(call(1, 10), kernel(GEMM, 100, 300, correlation=1), host("aten::mm", 500, 100))
    budget = facts.timeline.budget(round(start * 1000), round(end * 1000))
    totals = totals_us(facts, start, end)
    assert sum(budget.values()) == round(1000 * (end - start))
    inside = max(0.0, min(end, 400) - max(start, 100))
    assert totals["compute"] == totals["busy"] == inside
    assert budget.get("compute_kernel", 0) == round(1000 * inside)


def test_the_busiest_device_speaks_for_the_rank() -> None:
    """By the union of its work, not by the number of kernels."""
    few = [kernel(GEMM, 0, 900) | {"pid": 3, "args": {"device": 3, "stream": 7}}]
    many = [work(GEMM, 10 * i, 5) for i in range(50)]
    facts = look(*few, *many)
    assert facts.timeline.device == busiest_device(facts.model.work) == 3
    assert facts.timeline.budget(*facts.span_ns)["compute_kernel"] == 900_000
    assert "device.multiple" in {notice.kind for notice in facts.notices}


def test_without_work_there_is_no_device() -> None:
    """And every nanosecond of the host is accounted for all the same."""
    facts = look(host("aten::mm", 0, 10))
    assert facts.timeline.device == -1
    assert facts.timeline.budget(*facts.span_ns) == {"unclassified": 1_000_000}


def test_idle_time_of_a_step_that_cannot_be_believed_is_unclassified() -> None:
    """Half of its launches have no record; busy time stays what it is."""
    lost = [call(10 + i, 10 * i, 5) for i in range(5)]
    kept = [
        part
        for i in range(5)
        for part in (call(i, 600 + 10 * i, 5), kernel(GEMM, 650 + 60 * i, 60, correlation=i))
    ]
    assert budget_us(*lost, *kept) == {"compute_kernel": 300, "unclassified": 700}


# ---------------------------------------------------------------- steps


def test_work_counts_where_it_runs_and_windows_where_it_was_launched() -> None:
    """A kernel of step 0 that outlasts it makes the window of step 0 longer, and step 1 shorter."""
    facts = look(
        call(1, 10),
        kernel(GEMM, 100, 1400, correlation=1),
        call(2, 1010),
        kernel(ELEMENTWISE, 1500, 900, correlation=2),
        steps=2,
    )
    bounds = np.column_stack((facts.model.steps.ts_ns, facts.model.steps.end_ns)).tolist()
    assert bounds == [[0, 1_500_000], [1_500_000, 2_400_000]]
    budgets = [facts.timeline.budget(a, b) for a, b in bounds]
    assert [b.get("compute_kernel") for b in budgets] == [1_400_000, None]
    assert budgets[1] == {"memory_kernel": 900_000}
