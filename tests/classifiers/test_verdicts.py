"""Verdicts on steps, regions and the rank, and when there are none."""

import pytest
from generate import JOBS, straggler
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_events import Event, call, document, host, kernel, step
from plain_model import facts_of, recording_of

from perfdiag.classifiers.labels import add_budgets
from perfdiag.classifiers.verdicts import RankVerdict, judge_rank
from perfdiag.trace_schemas.report import Label


def verdict_on(trace: KinetoBuilder | bytes, marker: str | None = None) -> RankVerdict:
    return judge_rank(facts_of(recording_of(trace), marker))


def launches(first: int, n: int, ts: float, dur: float, *, recorded: bool = True) -> list[Event]:
    """n kernels of one length, each launched just before it starts."""
    parts: list[Event] = []
    for i in range(n):
        parts.append(call(first + i, ts + i * dur, 1))
        if recorded:
            parts.append(kernel(GEMM, ts + i * dur + 1, dur - 1, correlation=first + i))
    return parts


@pytest.mark.parametrize(
    ("job", "label"),
    [
        ("compute_bound", "compute-bound"),
        ("memory_bound", "memory-bound"),
        ("loader_stall", "host-bound"),
        ("pageable_copy", "memory-bound"),
        ("draining_sync", "host-bound"),
        ("tiny_kernels", "host-bound"),
        ("exposed_all_reduce", "collective-bound"),
        ("collective_on_compute_stream", "collective-bound"),
        ("profiler_overhead", "unknown"),
        ("healthy_overlap", "compute-bound"),
        ("cuda_graph", "compute-bound"),
        ("ddp_transformer", "compute-bound"),
    ],
)
def test_each_job_is_bound_by_what_it_was_made_to_be_bound_by(job: str, label: Label) -> None:
    """The rank, and each step after the first, in which the job warms up."""
    found = verdict_on(JOBS[job]())
    assert found.verdict.label == label
    assert {step.label for step in found.steps[1:]} == {label}


def test_each_rank_is_judged_by_its_own_budget() -> None:
    """Of a straggler and its victim, one waits for data and the other in a collective."""
    waiting, late = straggler()
    assert verdict_on(waiting).verdict.label == "collective-bound"
    assert verdict_on(late).verdict.label == "host-bound"


def test_regions_have_verdicts_of_their_own() -> None:
    """In a job that waits for its loader, forward and backward are bound by compute."""
    found = verdict_on(JOBS["loader_stall"]())
    labels = {r.name: r.label for r in found.steps[1].regions if r.kind == "phase"}
    assert labels["data"] == "host-bound"
    assert labels["backward"] == "compute-bound"


def test_a_region_without_time_has_no_label() -> None:
    """It hides behind the device's work."""
    found = verdict_on(JOBS["compute_bound"]())
    (data,) = [r for r in found.steps[1].regions if r.name == "data"]
    assert (data.dur_ns, data.label, data.budget_ns) == (0, "unknown", {})


def test_the_rank_is_the_sum_of_its_steps() -> None:
    """Budgets and totals alike, to the nanosecond."""
    found = verdict_on(JOBS["ddp_transformer"]())
    assert found.budget_ns == add_budgets([step.budget_ns for step in found.steps])
    assert found.totals.window == sum(step.dur_ns for step in found.steps)
    assert sum(found.budget_ns.values()) == found.totals.window


def test_steps_that_cannot_be_believed_are_left_out_of_the_rank() -> None:
    """Step 1 lost its records: it is unknown, and the rank rests on the two others."""
    found = verdict_on(
        document(
            *(step(i, 1000 * i, 1000) for i in range(3)),
            *launches(0, 10, 0, 100),
            *launches(20, 10, 1000, 100, recorded=False),
            *launches(40, 10, 2000, 100),
        )
    )
    assert [s.label for s in found.steps] == ["compute-bound", "unknown", "compute-bound"]
    assert [s.coverage for s in found.steps] == [1, 0, 1]
    assert found.steps[1].budget_ns == {"unclassified": 1_000_000}
    assert found.verdict.label == "compute-bound"
    assert found.totals.window == 2_000_000
    assert {r.label for r in found.steps[1].regions} <= {"unknown"}


def test_without_any_records_the_rank_is_unknown_and_says_why() -> None:
    """Never host-bound; its totals are those of all steps."""
    found = verdict_on(document(step(0, 0, 1000), *launches(0, 10, 0, 100, recorded=False)))
    assert found.verdict.label == "unknown"
    assert "not one device record" in found.verdict.why
    assert found.totals.window == 1_000_000


def test_a_host_alone_gets_no_verdict_on_device_time() -> None:
    """There is no device in the trace: rank and step say so."""
    found = verdict_on(document(step(0, 0, 1000), host("aten::mm", 0, 900)))
    assert found.verdict.label == found.steps[0].label == "unknown"
    assert "no device" in found.verdict.why.lower()


def test_a_device_alone_is_judged_by_its_work() -> None:
    """Kernels that follow each other are bound by what they do; nobody says whose the gaps are."""
    busy = [kernel(ELEMENTWISE, 10 * i, 9.5) for i in range(50)]
    found = verdict_on(document(*busy))
    assert found.verdict.label == "memory-bound"
    assert set(found.budget_ns) == {"memory_kernel", "unclassified"}
    assert verdict_on(document(kernel(GEMM, 0, 1), kernel(GEMM, 99, 1))).verdict.label == "unknown"


def test_a_step_says_where_it_comes_from() -> None:
    """Its name, its source, its window and its time on the host."""
    found = verdict_on(document(step(7, 10, 100), *launches(0, 1, 20, 500)))
    (only,) = found.steps
    assert (only.name, only.source, only.ordinal) == ("ProfilerStep#7", "marker", 0)
    assert (only.start_ns, only.dur_ns) == (0, 510_000)
    assert (only.host_start_ns, only.host_dur_ns) == (0, 100_000)
    whole = verdict_on(document(host("aten::mm", 0, 5), *launches(0, 1, 20, 500)))
    assert (whole.steps[0].source, whole.steps[0].name) == ("whole", "trace")
    assert whole.verdict.why.startswith("Of the trace")


def test_one_slow_step_does_not_speak_for_the_others_unsaid() -> None:
    """A rank bound by the loader of its first step says that the other steps are not."""
    b = KinetoBuilder()
    for wait_us in (50_000, 0, 0, 0):
        with b.step():
            b.loader(wait_us)
            b.launch(GEMM, 5_000)
            b.sync()
    verdict = verdict_on(b).verdict
    assert verdict.label == "host-bound"
    assert "3 of 4 steps are compute-bound" in verdict.why


def test_steps_that_agree_have_nothing_to_add() -> None:
    """Where the steps share the rank's label the sentence stands alone."""
    assert "But" not in verdict_on(JOBS["loader_stall"]()).verdict.why
