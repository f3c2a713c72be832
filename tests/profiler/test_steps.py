"""Steps: where they come from, and their windows."""

import random
from dataclasses import replace

import pytest
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import recording_of

from perfdiag.profiler.steps import Step, find_steps
from perfdiag.trace_schemas.notices import Notice


def found(
    trace: KinetoBuilder | bytes, marker: str | None = None
) -> tuple[list[Step], dict[str, Notice]]:
    steps, notices = find_steps(recording_of(trace), marker)
    return steps, {notice.kind: notice for notice in notices}


def windows_us(steps: list[Step]) -> list[tuple[float, float]]:
    return [(s.ts_ns / 1000, s.end_ns / 1000) for s in steps]


def mark(name: str, ts: float, dur: float, tid: int = 1) -> Event:
    return event("user_annotation", name, ts, dur, tid=tid)


# ---------------------------------------------------------------- windows


def test_a_window_runs_from_completion_to_completion() -> None:
    """The host runs ahead: each step ends with its last kernel, wherever the host is by then."""
    steps, _ = found(
        document(
            *(step(i, 10 * i, 10) for i in range(3)),
            *(call(i, 10 * i + 1) for i in range(3)),
            *(kernel(GEMM, 3 + 100 * i, 100, correlation=i) for i in range(3)),
        )
    )
    assert windows_us(steps) == [(0, 103), (103, 203), (203, 303)]
    assert [(s.host_ts_ns, s.host_dur_ns) for s in steps] == [
        (0, 10_000),
        (10_000, 10_000),
        (20_000, 10_000),
    ]


def test_a_step_that_hides_behind_the_last_one_has_an_empty_window() -> None:
    """Its kernel, on another stream, is done before that of the step before."""
    steps, _ = found(
        document(
            *(step(i, 10 * i, 10) for i in range(3)),
            *(call(i, 10 * i + 1) for i in range(3)),
            kernel(GEMM, 5, 500, correlation=0),
            kernel(GEMM, 15, 50, correlation=1, stream=20),
            kernel(GEMM, 505, 50, correlation=2),
        )
    )
    assert windows_us(steps) == [(0, 505), (505, 505), (505, 555)]


def test_the_host_ends_a_step_whose_work_is_done() -> None:
    """A step that waits for its device lasts until the host leaves it."""
    steps, _ = found(
        document(step(0, 0, 100), call(1, 10), kernel(GEMM, 20, 30, correlation=1), step(1, 120, 9))
    )
    assert windows_us(steps) == [(0, 100), (100, 129)]


def test_work_belongs_to_the_step_that_launched_it() -> None:
    """A kernel that runs during step 1 but was launched in step 0 ends step 0."""
    events = [step(0, 0, 10), step(1, 10, 90), call(1, 5)]
    launched, _ = found(document(*events, kernel(GEMM, 40, 20, correlation=1)))
    assert windows_us(launched) == [(0, 60), (60, 100)]


def test_work_without_a_launch_belongs_to_a_step_by_time() -> None:
    """It starts in step 1 and outlasts its host range: step 1 ends with it."""
    steps, _ = found(document(step(0, 0, 10), step(1, 10, 90), kernel(GEMM, 40, 100)))
    assert windows_us(steps) == [(0, 10), (10, 140)]


def test_work_launched_in_no_step_ends_none() -> None:
    """What is launched between or behind steps does not stretch them."""
    steps, _ = found(
        document(
            step(0, 0, 10),
            call(1, 15),
            kernel(GEMM, 20, 1000, correlation=1),
            step(1, 30, 10),
            call(2, 50),
            kernel(GEMM, 1020, 1000, correlation=2),
        )
    )
    assert windows_us(steps) == [(0, 10), (10, 40)]


@pytest.mark.parametrize("seed", range(30))
def test_windows_follow_each_other_and_are_never_negative(seed: int) -> None:
    """Whatever steps and kernels overlap, each window begins where the one before ends."""
    rng = random.Random(seed)
    n = rng.randrange(1, 12)
    events = [step(i, rng.randrange(200), rng.randrange(40)) for i in range(n)]
    for i in range(rng.randrange(30)):
        launched = rng.randrange(250)
        events += [call(i, launched), kernel(GEMM, launched, rng.randrange(99), correlation=i)]
    steps, _ = found(document(*events))
    assert all(s.dur_ns >= 0 for s in steps)
    assert [s.ts_ns for s in steps[1:]] == [s.end_ns for s in steps[:-1]]
    assert steps[0].ts_ns == steps[0].host_ts_ns
    assert [s.ordinal for s in steps] == list(range(len(steps)))


# ---------------------------------------------------------------- markers


def test_steps_of_the_profiler_are_markers() -> None:
    """They keep their names, and nothing has to be said about them."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 10)
    steps, notices = found(b)
    assert [s.name for s in steps] == [f"ProfilerStep#{i}" for i in range(3)]
    assert {s.source for s in steps} == {"marker"}
    assert not notices


def test_old_traces_write_steps_as_operators() -> None:
    """Before annotations had a category of their own, steps were `cpu_op`."""
    steps, _ = found(document(*(host(f"ProfilerStep#{i}", 10 * i, 9) for i in range(2))))
    assert [(s.name, s.source) for s in steps] == [
        ("ProfilerStep#0", "marker"),
        ("ProfilerStep#1", "marker"),
    ]


def test_a_projection_of_a_step_onto_a_stream_is_no_step() -> None:
    """Kineto draws the step over its kernels too; only the host's range counts."""
    drawn = event("gpu_user_annotation", "ProfilerStep#0", 5, 50, pid=0, tid=7)
    steps, _ = found(document(step(0, 0, 10), drawn))
    assert windows_us(steps) == [(0, 10)]


def test_the_regex_of_the_user_names_the_marker() -> None:
    """It matches anywhere in a name, and what it matches are steps even beside known markers."""
    events = [step(0, 0, 100), *(mark(f"my iteration {i}", 20 * i, 20) for i in range(3))]
    steps, notices = found(document(*events), "iteration")
    assert [s.name for s in steps] == [f"my iteration {i}" for i in range(3)]
    assert not notices


def test_a_regex_that_matches_nothing_is_said() -> None:
    """Known markers do not step in for a name that the user gave; the message repeats it."""
    steps, notices = found(document(step(0, 0, 100)), "no such range")
    assert [s.source for s in steps] == ["whole"]
    assert "'no such range'" in notices["steps.missing"].message


def test_of_several_conventions_the_first_is_believed() -> None:
    """Steps of the profiler around `step 0`, `step 1`: the profiler's count."""
    inner = [mark(f"step {i}", 10 * i, 9) for i in range(6)]
    steps, _ = found(document(step(0, 0, 30), step(1, 30, 30), *inner))
    assert [s.name for s in steps] == ["ProfilerStep#0", "ProfilerStep#1"]


def test_a_marker_inside_another_of_its_kind_is_no_step() -> None:
    """A range repeated inside itself would count its time twice."""
    steps, _ = found(document(mark("train_step", 0, 100), mark("train_step", 10, 50)))
    assert windows_us(steps) == [(0, 100)]


def test_markers_that_cross_are_both_steps() -> None:
    """A microsecond of overlap, from rounding, swallows no step."""
    steps, _ = found(document(step(0, 0, 101), step(1, 100, 100), step(2, 200, 100)))
    assert windows_us(steps) == [(0, 101), (101, 200), (200, 300)]


def test_markers_of_the_busiest_thread_count() -> None:
    """A helper thread that marks one step of its own adds none."""
    steps, _ = found(
        document(*(mark(f"step {i}", 10 * i, 9) for i in range(3)), mark("step 0", 4, 9, tid=2))
    )
    assert [s.host_ts_ns for s in steps] == [0, 10_000, 20_000]


@pytest.mark.parametrize(
    "names",
    [
        ["step[DECODE bs=8]", "step[DECODE bs=9]", "step[EXTEND bs=1 toks=16384]"],
        ["execute_context_0(0)_generation_32(32)", "execute_context_1(512)_generation_31(31)"],
        ["execute_new_1_cached_0", "execute_new_0_cached_1"],
        ["[Executor] _forward_step 7: 0 ctx reqs, 32 gen reqs"],
        ["[pl][profile]run_training_batch", "[pl][profile]run_training_batch"],
        ["train 0", "train 1"],
    ],
)
def test_markers_of_other_frameworks_are_steps(names: list[str]) -> None:
    """Serving engines and trainers, each with its own words."""
    steps, _ = found(document(*(mark(name, 10 * i, 9) for i, name in enumerate(names))))
    assert [s.name for s in steps] == names
    assert {s.source for s in steps} == {"marker"}


# ---------------------------------------------------------------- inferred


def training(n: int = 4, *, optimizer: bool = True) -> KinetoBuilder:
    """n steps without markers."""
    b = KinetoBuilder()
    for _ in range(n):
        b.idle(200)
        for i in range(12):
            with b.op("aten::mm", 5):
                b.launch(f"kernel_{i}", 10 + i)
        if optimizer:
            with b.annotation("Optimizer.step#AdamW.step", 5):
                b.launch("adam", 10)
        b.sync()
    return b


def test_steps_end_with_the_optimizer() -> None:
    """Without markers, a step lasts from one `Optimizer.step` to the next."""
    steps, notices = found(training())
    assert [(s.name, s.source) for s in steps] == [(f"step {i}", "inferred") for i in range(4)]
    assert notices["steps.inferred"].count == 4
    assert "steps.missing" in notices
    assert steps[0].host_ts_ns == 0


def test_one_optimizer_step_repeats_nothing() -> None:
    """A single update is no period; the trace is looked at as a whole."""
    steps, notices = found(training(1))
    assert [s.source for s in steps] == ["whole"]
    assert "steps.inferred" not in notices


def test_steps_repeat_a_sequence_of_launches() -> None:
    """Without an optimizer, what repeats is a step; it begins after the longest pause."""
    b = training(optimizer=False)
    launched = [e["ts"] for e in b.clock.events if e["name"] == "cudaLaunchKernel"]
    steps, notices = found(b)
    assert notices["steps.inferred"].count == 4
    begin = b.clock.events[0]["ts"]
    assert [s.host_ts_ns for s in steps] == [t - begin for t in launched[::12]]


def test_launches_that_do_not_repeat_are_no_steps() -> None:
    """A random sequence has no period."""
    rng = random.Random(3)
    b = KinetoBuilder()
    for _ in range(100):
        b.launch(rng.choice([GEMM, ELEMENTWISE, "a", "b", "c", "d"]), 5)
    assert [s.source for s in found(b)[0]] == ["whole"]


# ---------------------------------------------------------------- whole


def test_without_steps_the_covered_range_is_one() -> None:
    """From the first event to the last work of the device, what the profiler adds left out."""
    b = KinetoBuilder()
    b.op("aten::empty", 50)
    end = b.launch(GEMM, 1000).end_us
    (only,), notices = found(b)
    assert (only.name, only.source) == ("trace", "whole")
    assert (only.ts_ns, only.end_ns) == (0, round(1000 * (end - 1e6)))
    assert "--step-marker" in notices["steps.missing"].message


def test_a_device_alone_is_covered_by_its_work() -> None:
    """A trace without a host has a range all the same."""
    (only,), _ = found(document(kernel(GEMM, 10, 5), kernel(GEMM, 30, 5)))
    assert (only.ts_ns, only.dur_ns) == (0, 25_000)


def test_a_trace_whose_events_are_all_unusable_has_an_empty_step() -> None:
    """Nothing is covered, and nothing breaks."""
    (only,), _ = found(document(host("aten::mm", 5, -1), kernel(GEMM, 5, -3)))
    assert (only.ts_ns, only.dur_ns) == (0, 0)


def test_annotations_that_repeat_are_offered_as_markers() -> None:
    """The most frequent ones, with numbers cut out; known ranges and rare ones are not."""
    b = KinetoBuilder()
    for i in range(4):
        with b.annotation(f"tick {i}"):
            b.launch(GEMM, 10 * (i + 1))
            b.annotation("forward", 5)
            b.annotation("nccl:all_reduce", 5)
    b.annotation("once", 5)
    notice = found(b)[1]["steps.unknown_marker"]
    assert (notice.count, "'tick N' x4" in notice.message) == (1, True)


def test_a_recording_is_not_changed() -> None:
    """Finding steps twice finds the same."""
    recording = recording_of(training())
    before = replace(recording)
    assert find_steps(recording) == find_steps(recording)
    assert recording == before


def test_a_repeat_that_is_cut_off_is_no_step() -> None:
    """Three and a half repeats of twelve launches are three steps; the rest is left out, aloud."""
    b = KinetoBuilder()
    for number in range(3 * 12 + 6):
        if number % 12 == 0:
            b.idle(100)
        b.launch(f"kernel_{number % 12}", 5)
    steps, notices = found(b)
    assert len(steps) == 3
    assert notices["step.incomplete"].count == 6
    launched = [e["ts"] for e in b.clock.events if e["name"] == "cudaLaunchKernel"]
    assert steps[-1].host_dur_ns == launched[36] - launched[24]
