"""What cannot be believed is set aside and counted; all else keeps its place."""

from collections import Counter as Bag

import numpy as np
import pytest
from kineto_builder import COMPUTE_STREAM, ELEMENTWISE, GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import recording_of

from perfdiag.profiler.normalise import normalise
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import DEVICE_WORK, Kind, Recording

DAY_US = 86_400_000_000


def read(*events: Event, **top: object) -> Recording:
    return recording_of(document(*events, **top))


def noticed(recording: Recording, kind: str) -> Notice | None:
    return next((notice for notice in recording.notices if notice.kind == kind), None)


def count(recording: Recording, kind: str) -> int:
    return sum(notice.count for notice in recording.notices if notice.kind == kind)


def names(recording: Recording) -> list[str]:
    return [recording.strings[n] for n in recording.slices.name.tolist()]


def reasons(recording: Recording) -> dict[str, int]:
    aside = recording.set_aside
    return dict(Bag(aside.args["reason"].values.tolist())) if len(aside) else {}


def pairs(
    spans: list[tuple[float, float]], *, name: str = GEMM, same_call: bool = False
) -> list[Event]:
    """Kernels of one stream that start and last as told, each with a launch in time."""
    made: list[Event] = []
    for i, (ts, dur) in enumerate(spans):
        correlation = 1 if same_call else i + 1
        made += [call(correlation, ts - 10)] if i == 0 or not same_call else []
        made.append(kernel(name, ts, dur, correlation=correlation))
    return made


# ---------------------------------------------------------------- kinds


def test_names_tell_collectives_copies_and_fills_from_kernels() -> None:
    """AMD writes copies as kernels, and every vendor collectives."""
    found = read(
        *(
            kernel(name, 10 * i, 5)
            for i, name in enumerate(
                [GEMM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "__amd_rocclr_copyBuffer"]
            )
        ),
        kernel("__amd_rocclr_fillBufferAligned", 90, 5),
    )
    kinds = [Kind.KERNEL, Kind.COLLECTIVE, Kind.COPY, Kind.FILL]
    assert found.slices.kind.tolist() == kinds


def test_a_name_never_makes_work_of_what_is_no_kernel() -> None:
    """An operator called like a collective stays an operator."""
    found = read(host("nccl:all_reduce", 0, 5), kernel(GEMM, 10, 5))
    assert found.slices.kind[0] == Kind.HOST_OP


# ---------------------------------------------------------------- times that are none


def test_device_records_at_time_zero_are_set_aside() -> None:
    """Records that were never timed would begin the trace in 1970."""
    found = read(
        step(0, 1.7e15, 100), kernel(GEMM, 0, 0), kernel(GEMM, 0, 0), kernel(GEMM, 1.7e15 + 9, 5)
    )
    assert reasons(found) == {"timestamp.zero": 2}
    assert count(found, "timestamp.zero") == 2
    assert found.slices.ts_ns.tolist() == [0, 9000]


def test_a_record_from_zero_to_now_is_set_aside() -> None:
    """A record whose start alone was lost would last for fifty years."""
    found = read(step(0, 1.7e15, 100), kernel(GEMM, 0, 1.7e15 + 20), kernel(GEMM, 1.7e15 + 9, 5))
    assert reasons(found) == {"timestamp.zero": 1}
    assert found.slices.ts_ns.tolist() == [0, 9000]


def test_zero_is_a_time_like_any_other_in_a_trace_that_starts_there() -> None:
    """Times relative to the start of the trace have a first kernel at 0, or an empty one."""
    assert not len(read(kernel(GEMM, 0, 5), step(0, 2, 100)).set_aside)
    assert not len(read(step(0, 0, 100), kernel(GEMM, 0, 0), kernel(GEMM, 5, 5)).set_aside)
    assert not len(read(kernel(GEMM, 0, 0), kernel(GEMM, 0, 0)).set_aside)


def test_an_event_that_ends_before_it_starts_is_set_aside() -> None:
    """On the host and on the device."""
    found = read(host("aten::mm", 5, -1), kernel(GEMM, 5, -3), kernel(GEMM, 10, 5))
    assert reasons(found) == {"duration.negative": 2}
    assert count(found, "duration.negative") == 2
    assert names(found) == [GEMM]


def test_nothing_may_be_left() -> None:
    """A trace of unusable events alone is normalised all the same."""
    found = read(host("aten::mm", 5, -1), kernel(GEMM, 5, -3))
    assert (len(found.slices), len(found.set_aside)) == (0, 2)


# ---------------------------------------------------------------- causality


def test_work_from_long_before_its_launch_is_set_aside() -> None:
    """A kernel a second before its launch comes from another clock."""
    found = read(call(1, 2e6), kernel(GEMM, 1e6, 50, correlation=1))
    assert reasons(found) == {"causality.violation": 1}
    notice = noticed(found, "causality.violation")
    assert notice is not None
    assert (notice.count, notice.severity) == (1, "warning")


def test_mere_skew_is_said_and_kept() -> None:
    """Clocks 200 us apart leave durations right: the work stays, and the notice says how far."""
    found = read(call(1, 1000), kernel(GEMM, 800, 50, correlation=1), host("aten::mm", 0, 1))
    assert not len(found.set_aside)
    notice = noticed(found, "causality.violation")
    assert notice is not None
    assert (notice.count, "200 us" in notice.message) == (1, True)


@pytest.mark.parametrize("delay_us", [-1, 0, 1, 1e6])
def test_rounding_to_microseconds_is_no_violation(delay_us: float) -> None:
    """A kernel may start with its launch, or seem to 1 us earlier."""
    found = read(call(1, 1000), kernel(GEMM, 1000 + delay_us, 50, correlation=1))
    assert count(found, "causality.violation") == len(found.set_aside) == 0


def test_all_of_a_graph_is_held_against_its_one_launch() -> None:
    """Only the kernel that starts too early is set aside."""
    early = kernel("early", 1, 50, correlation=1)
    found = read(early, call(1, 5e6), *pairs([(5.1e6, 10), (5.2e6, 10)], same_call=True)[1:])
    assert reasons(found) == {"causality.violation": 1}
    assert names(found).count(GEMM) == 2


# ---------------------------------------------------------------- impossible durations


def serial(n: int, dur_us: float = 4.0) -> list[tuple[float, float]]:
    """n kernels back to back, one microsecond apart."""
    return [(100 + i * (dur_us + 1), dur_us) for i in range(n)]


def test_a_few_broken_ends_in_a_long_stream_are_set_aside() -> None:
    """Seven in 55,423, as a user reported: the copies are what they were without them."""
    spans = serial(55_423)
    broken = [100, 5_000, 5_001, 20_000, 33_333, 50_000, 55_400]
    for i in broken:
        spans[i] = (spans[i][0], 200_000.0)
    found = recording_of(document(*pairs(spans, name="Memcpy HtoD (Pinned -> Device)")))
    assert reasons(found) == {"duration.impossible": 7}
    assert count(found, "duration.impossible") == 7
    assert set(found.slices.dur_ns[found.slices.kind == Kind.COPY].tolist()) == {4000}


@pytest.mark.parametrize("n", [4, 10, 30])
@pytest.mark.parametrize("at", [0, 1])
def test_a_broken_end_shows_in_a_short_stream_too(n: int, at: int) -> None:
    """One kernel of a few, and it hides the others."""
    spans = serial(n)
    spans[at] = (spans[at][0], 1e6)
    assert reasons(recording_of(document(*pairs(spans)))) == {"duration.impossible": 1}


def test_a_broken_end_without_namesakes_is_held_against_its_stream() -> None:
    """A kernel of its own name, 1,000 times as long as the others of its stream."""
    broken = [call(99, 90), kernel(ELEMENTWISE, 101, 4000, correlation=99)]
    assert reasons(read(*broken, *pairs(serial(50)))) == {"duration.impossible": 1}


def test_a_broken_graph_kernel_is_set_aside() -> None:
    """It outlasts the replays that were launched after its own."""
    spans = [
        serial(8),
        [(s + 1000, d) for s, d in serial(8)],
        [(s + 2000, d) for s, d in serial(8)],
    ]
    replays = [
        kernel(GEMM, ts, 1e6 if (i, j) == (0, 3) else dur, correlation=i + 1)
        for i, replay in enumerate(spans)
        for j, (ts, dur) in enumerate(replay)
    ]
    launches = [call(i + 1, 90 + 1000 * i, name="cudaGraphLaunch") for i in range(3)]
    assert reasons(read(*launches, *replays)) == {"duration.impossible": 1}


def test_long_work_of_a_serial_stream_is_kept() -> None:
    """A kernel 10,000 times as long as the others, which wait for it."""
    before, after = serial(20), [(s + 50_000, d) for s, d in serial(20)]
    found = recording_of(document(*pairs([*before, (250.0, 40_000.0), *after])))
    assert not len(found.set_aside)


def test_dependent_launches_are_kept() -> None:
    """With programmatic dependent launch every kernel starts before the last one is done."""
    spans = [(100 + 10.0 * i, 14.0) for i in range(200)]
    spans[50] = (600.0, 14.0)
    found = recording_of(document(*pairs(spans)))
    assert not len(found.set_aside)
    assert count(found, "slice.overlap") == 199


def test_a_long_kernel_with_a_dependent_one_is_kept() -> None:
    """A long kernel, 100 times as long as its namesakes, lets the next one start early."""
    spans = serial(40)
    spans[20:] = [(s + 400, d) for s, d in spans[20:]]
    spans[19] = (spans[19][0], spans[20][0] + 2 - spans[19][0])
    assert not len(recording_of(document(*pairs(spans))).set_aside)


def test_branches_of_a_graph_are_kept() -> None:
    """What one call launched may run side by side: a collective over many small kernels."""
    spans = [(100.0, 2_000.0), *((110 + 20.0 * i, 4.0) for i in range(90))]
    assert not len(recording_of(document(*pairs(spans, same_call=True))).set_aside)


def test_a_lane_that_is_no_stream_is_left_alone() -> None:
    """Where much of the work outlasts later work, several queues are drawn on one lane."""
    long = [(100 + 50.0 * i, 400.0) for i in range(20)]
    short = [(103 + 50.0 * i, 4.0) for i in range(20)]
    spans = sorted([*long, *short, (1103.0, 40_000.0)])
    assert not len(recording_of(document(*pairs(spans))).set_aside)


def test_streams_are_judged_one_by_one() -> None:
    """A kernel that lasts while another stream works is none of its business."""
    beside = [call(500, 90), kernel(GEMM, 100, 1e6, correlation=500, stream=20)]
    assert not len(read(*pairs(serial(100)), *beside).set_aside)


# ---------------------------------------------------------------- overlaps, units, ranks


def test_crossing_slices_are_counted_and_kept() -> None:
    """Operators that cross on a thread keep their times; frames and projections do not count."""
    crossing = [host("a", 0, 10), host("b", 5, 10), host("c", 20, 5)]
    frames = [event("python_function", "f", ts, 10) for ts in (0, 5)]
    drawn = [
        event("gpu_user_annotation", "g", ts, 10, pid=0, tid=7, args={"stream": 7}) for ts in (0, 5)
    ]
    found = read(*crossing, *frames, *drawn)
    assert count(found, "slice.overlap") == 1
    assert len(found.slices) == 7


def test_nanoseconds_read_as_microseconds_are_suspected() -> None:
    """Launches of 5 ms and no shorter event: the numbers are 1,000 times too large."""
    events = [step(0, 0, 1e6), call(1, 1e4, 5000), kernel(GEMM, 1e5, 8e5, correlation=1)]
    found = read(*events)
    notice = noticed(found, "unit.suspect")
    assert notice is not None
    assert (notice.count, "--time-unit" in notice.message) == (3, True)


@pytest.mark.parametrize("short_us", [5, 900])
def test_a_slow_launch_alone_is_no_reason_for_suspicion(short_us: float) -> None:
    """A first launch may take long; other events are short."""
    events = [step(0, 0, 1e6), call(1, 1e4, 5000), kernel(GEMM, 1e5, short_us, correlation=1)]
    assert noticed(read(*events), "unit.suspect") is None


def test_two_processes_with_the_same_steps_are_merged_ranks() -> None:
    """Two hosts mark step 0, and one device lane takes the work of both."""
    found = read(step(0, 0, 9), step(0, 1, 9, pid=2), kernel(GEMM, 5, 5))
    notice = noticed(found, "merge.pid_collision")
    assert notice is not None
    assert (notice.count, notice.severity) == (2, "error")


def test_two_processes_with_steps_of_their_own_are_not() -> None:
    """Different steps, or the same annotation without a number, say nothing."""
    found = read(
        step(0, 0, 9),
        step(1, 10, 9, pid=2),
        event("user_annotation", "forward", 0, 5),
        event("user_annotation", "forward", 0, 5, pid=2),
    )
    assert noticed(found, "merge.pid_collision") is None


# ---------------------------------------------------------------- time 0


def test_zero_is_the_start_of_the_trace() -> None:
    """The base time of the file, and where the first event is from there, are remembered."""
    found = read(step(0, 1000.5, 9), kernel(GEMM, 1001, 5), baseTimeNanoseconds=10**18)
    assert found.slices.ts_ns.tolist() == [0, 500]
    clock = found.clock
    assert (clock.origin_ns, clock.unix_ns) == (10**18 + 1_000_500, 10**18 + 1_000_500)
    assert clock.quality == "exact"


def test_times_that_look_like_an_epoch_are_taken_for_one() -> None:
    """Microseconds since 1970 without a base: a guess, and called one."""
    clock = read(step(0, 1_700_000_000_000_000, 9)).clock
    assert (clock.unix_ns, clock.quality) == (1_700_000_000_000_000_000, "guess")


def test_other_times_have_no_origin() -> None:
    """Microseconds since the machine started say nothing of the date."""
    clock = read(step(0, 5_000_000, 9)).clock
    assert (clock.origin_ns, clock.unix_ns, clock.quality) == (5_000_000_000, None, "none")


def test_counters_move_with_the_slices() -> None:
    """A sample keeps its distance from them; one from before the first event is left out."""
    samples = [
        {"ph": "C", "name": "memory", "pid": 0, "ts": ts, "args": {"bytes": 1}}
        for ts in (100, 1000, 1010)
    ]
    found = read(step(0, 1000, 9), *samples)
    assert found.counters[0].ts_ns.tolist() == [0, 10_000]
    assert count(found, "counter.missing") == 1


def test_what_is_normalised_stays_as_it_is() -> None:
    """Steps run once: a recording that went through them comes back."""
    once = read(step(0, 1000, 9), kernel(GEMM, 1001, -5))
    assert once.normalised
    assert normalise(once) is once


def test_a_sound_trace_loses_nothing() -> None:
    """Thousands of launches with a full queue, copies and fills: no notice but for the rank."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.copy("HtoD", 1 << 20, 50)
            for i in range(600):
                b.launch(GEMM, 1 + 50 * (i % 7 == 0), stream=COMPUTE_STREAM + i % 2)
            b.memset(1 << 10, 2)
            b.sync()
    found = recording_of(b)
    assert {notice.kind for notice in found.notices} == {"rank.missing"}
    assert np.isin(found.slices.kind, DEVICE_WORK).sum() == 3 * 602
