"""Whether the device records are there, before anything is said about idle time."""

import pytest
from kineto_builder import GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import facts_of, recording_of

from perfdiag.classifiers.coverage import LEAST_COVERAGE, Coverage
from perfdiag.classifiers.facts import RankFacts

GRAPH = "cudaGraphLaunch"


def look(*events: Event) -> RankFacts:
    return facts_of(recording_of(document(*events)))


def notices(facts: RankFacts) -> dict[str, int]:
    return {
        notice.kind: notice.count for notice in facts.notices if notice.kind != "link.no_launch"
    }


def launches(first: int, n: int, ts: float, *, recorded: int) -> list[Event]:
    """n launches from `ts` on, 10 us apart; of the first `recorded` there are kernels."""
    calls = [call(first + i, ts + 10 * i, 5) for i in range(n)]
    kernels = [kernel(GEMM, ts + 10 * i + 7, 5, correlation=first + i) for i in range(recorded)]
    return [*calls, *kernels]


def steps(n: int) -> list[Event]:
    return [step(i, 1000 * i, 1000) for i in range(n)]


def test_a_whole_trace_is_covered() -> None:
    """Every launch has its record: all steps are trusted, and nothing is to be said."""
    facts = look(*steps(2), *launches(0, 10, 0, recorded=10), *launches(10, 10, 1000, recorded=10))
    assert facts.coverage.steps.tolist() == [1.0, 1.0]
    assert facts.trusted.all()
    assert not notices(facts)


@pytest.mark.parametrize(("recorded", "trusted"), [(20, True), (18, True), (17, False), (0, False)])
def test_a_tenth_of_the_records_may_be_missing(recorded: int, trusted: bool) -> None:
    """Below that no verdict on the step; other steps keep theirs."""
    other = launches(100, 20, 1000, recorded=20)
    facts = look(*steps(2), *launches(0, 20, 0, recorded=recorded), *other)
    assert facts.coverage.steps.tolist() == [recorded / 20, 1.0]
    assert facts.trusted.tolist() == [trusted, True]
    assert (recorded / 20 >= LEAST_COVERAGE) == trusted


def test_launches_without_any_record_are_an_error() -> None:
    """The whole device is missing: never host-bound."""
    facts = look(*steps(1), *launches(0, 20, 0, recorded=0))
    assert notices(facts) == {"device.missing": 20}
    assert not facts.trusted.any()


def test_a_host_that_launches_nothing_has_no_device() -> None:
    """A trace of the CPU: said once, as a warning."""
    facts = look(*steps(1), host("aten::mm", 10, 5))
    (notice,) = facts.notices
    assert (notice.kind, notice.severity, notice.count) == ("device.missing", "warning", 1)
    assert not facts.coverage.has_device


def test_records_that_end_early_are_told_from_records_lost_here_and_there() -> None:
    """All launches after some moment, or some of all."""
    early = look(*steps(2), *launches(0, 20, 0, recorded=20), *launches(50, 40, 1000, recorded=0))
    assert notices(early) == {"device.truncated": 40}
    assert early.trusted.tolist() == [True, False]
    sparse = look(
        *steps(2),
        *launches(0, 20, 0, recorded=5),
        *launches(50, 20, 1000, recorded=20),
    )
    assert notices(sparse) == {"device.under_recorded": 15}


def test_the_message_says_where_the_records_end() -> None:
    """In milliseconds from the start of the trace."""
    facts = look(*steps(2), *launches(0, 20, 0, recorded=20), *launches(50, 20, 1000, recorded=0))
    (notice,) = [n for n in facts.notices if n.kind == "device.truncated"]
    assert "end at 0.202 ms" in notice.message
    assert facts.coverage.last_device_ns == 202_000


def test_one_graph_launch_covers_all_its_kernels() -> None:
    """Fifty kernels of one call are one launch with records, not one of fifty."""
    graph = call(1, 10, 5, name=GRAPH)
    kernels = [kernel(GEMM, 20 + 5 * i, 4, correlation=1) for i in range(50)]
    facts = look(*steps(1), graph, *kernels)
    assert (facts.coverage.launches, facts.coverage.recorded) == (1, 1)


def test_launches_into_a_graph_that_is_captured_run_nothing() -> None:
    """Between `cudaStreamBeginCapture` and `EndCapture` no record is to be expected."""
    begin = event("cuda_runtime", "cudaStreamBeginCapture", 100, 5)
    end = event("cuda_runtime", "cudaStreamEndCapture", 500, 5)
    captured = launches(50, 30, 110, recorded=0)
    facts = look(*steps(1), begin, *captured, end, *launches(0, 10, 600, recorded=10))
    assert (facts.coverage.launches, facts.coverage.recorded) == (10, 10)
    assert facts.trusted.all()


def test_copies_and_events_need_no_record() -> None:
    """Only calls that launch kernels are counted."""
    others = [
        call(50 + i, 10 * i, 5, name=name)
        for i, name in enumerate(["cudaMemcpyAsync", "cudaEventRecord", "cudaMalloc"])
    ]
    facts = look(*steps(1), *others, *launches(0, 3, 100, recorded=3))
    assert (facts.coverage.launches, facts.coverage.recorded) == (3, 3)


def test_records_that_were_set_aside_are_records() -> None:
    """Their time is not known, but they are not lost: 3 of 10 were never timed."""
    kernels = [kernel(GEMM, 0, 0, correlation=i) for i in range(3)]
    base = 1.7e15
    events = [
        step(0, base, 1000),
        *(call(i, base + 10 * i, 5) for i in range(10)),
        *kernels,
        *(kernel(GEMM, base + 200 + 10 * i, 5, correlation=i) for i in range(3, 10)),
    ]
    facts = look(*events)
    assert (facts.coverage.launches, facts.coverage.recorded) == (10, 10)


def test_a_device_alone_is_covered_and_said_to_lack_its_host() -> None:
    """Idle time is certain there; who caused it is not."""
    facts = look(kernel(GEMM, 0, 10), kernel(GEMM, 50, 10))
    assert notices(facts) == {"host.missing": 1}
    assert facts.trusted.all()


def test_a_step_of_a_truncated_input_without_work_lost_its_records() -> None:
    """Device records stand at the end of the file: the last step has launches of copies only."""
    facts = look(*steps(2), *launches(0, 5, 0, recorded=5))
    whole = Coverage.of(facts.model, truncated=False)
    cut = Coverage.of(facts.model, truncated=True)
    assert (whole.steps.tolist(), cut.steps.tolist()) == ([1.0, 1.0], [1.0, 0.0])


def test_merged_ranks_are_never_trusted() -> None:
    """Two processes share the device lanes of the file."""
    b = KinetoBuilder()
    with b.step():
        b.launch(GEMM, 100)
    twice = [*b.clock.events, *({**e, "pid": 777} for e in b.clock.events if e["pid"] != 0)]
    events = [{**e, "ts": e["ts"] / 1000, "dur": e["dur"] / 1000} for e in twice if e["ph"] == "X"]
    facts = look(*events)
    assert not facts.trusted.any()
    assert facts.coverage.trusted.all()
