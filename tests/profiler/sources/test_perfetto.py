"""Perfetto traces that other programs wrote."""

from pathlib import Path

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from perfetto_builder import TraceBuilder

from perfdiag.profiler.engine import Session, open_session
from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.model import prepare
from perfdiag.profiler.normalise import normalise
from perfdiag.profiler.opening import ReadOptions, read_blob
from perfdiag.profiler.querying import query_trace
from perfdiag.profiler.sources.files import expand
from perfdiag.profiler.sources.perfetto import PerfettoOptions, read_perfetto
from perfdiag.profiler.steps import find_steps
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT, Kind, Recording

SHARED = Path(__file__).parents[3] / "../shared"
US = 1000


def sdk_app() -> TraceBuilder:
    """Two steps of an app that uses Perfetto's SDK and links by flows alone."""
    trace = TraceBuilder()
    trace.process(7, "trainer")
    main = trace.thread(7, 7, "main")
    gpu = trace.track("GPU 1")
    stream = trace.track("stream 7", gpu)
    for step in range(2):
        at = step * 100 * US
        trace.slice(main, at, 80 * US, f"train_step {step}")
        trace.slice(main, at + 5 * US, 4 * US, "submit", flow=step + 1)
        trace.slice(stream, at + 20 * US, 90 * US, "gemm_kernel", flow_end=step + 1)
    return trace


def jax_like() -> TraceBuilder:
    """Three steps of a program on a TPU, as XLA's profiler lays them out."""
    trace = TraceBuilder()
    trace.process(1, "/device:TPU:0")
    trace.process(2, "/host:CPU")
    steps, modules, ops = (
        trace.thread(1, 10 + i, name) for i, name in enumerate(("Steps", "XLA Modules", "XLA Ops"))
    )
    host = trace.thread(2, 20, "python")
    for step in range(3):
        at = step * 100 * US
        trace.slice(host, at, 10 * US, "PjitFunction(train_step)")
        trace.slice(steps, at, 90 * US, str(step + 4))
        trace.slice(modules, at, 90 * US, "jit_train_step(123)")
        trace.slice(ops, at, 50 * US, "fusion.1")
        trace.slice(ops, at + 50 * US, 20 * US, "all-reduce.2")
    return trace


def rocprof_like() -> TraceBuilder:
    """A launch, its kernel and a copy, with the tracks that rocprofv3 makes."""
    trace = TraceBuilder()
    trace.process(9, "python")
    host = trace.track("THREAD 0 (4711)")
    queue = trace.track("COMPUTE AMD Instinct MI300X [2] QUEUE [5] GPU")
    copies = trace.track("COPY to AGENT [2] THREAD [0] (GPU)")
    trace.slice(host, 0, 5 * US, "hipLaunchKernel", "hip_api", corr_id=11)
    trace.slice(host, 6 * US, 5 * US, "hipMemcpyAsync", "hip_api", corr_id=12)
    trace.slice(queue, 10 * US, 30 * US, "Cijk_Ailk", "kernel_dispatch", corr_id=11)
    trace.slice(copies, 50 * US, 8 * US, "MEMORY_COPY_HOST_TO_DEVICE", "memory_copy", corr_id=12)
    return trace


def read(
    trace: TraceBuilder, device_track: str | None = None, step_marker: str | None = None
) -> Recording:
    """The trace as the analysis sees it."""
    options = PerfettoOptions(device_track=device_track, step_marker=step_marker)
    return normalise(read_perfetto(trace.build(), "trace.pftrace", options))


def named(recording: Recording, name: str) -> list[int]:
    """Rows of the slices of one name."""
    wanted = [i for i, text in enumerate(recording.strings) if text == name]
    return np.flatnonzero(np.isin(recording.slices.name, wanted)).tolist()


def lane_of(recording: Recording, name: str) -> tuple[str, int, int]:
    """Kind, device and stream of the lane on which a slice lies."""
    lane = recording.lanes[recording.slices.lane[named(recording, name)[0]]]
    return lane.kind, lane.device, lane.stream


def kind_of(recording: Recording, name: str) -> Kind:
    """Kind of the first slice of a name."""
    return Kind(recording.slices.kind[named(recording, name)[0]])


def session_with(trace: TraceBuilder) -> Session:
    """The trace as it is, with the model's tables."""
    session = open_session()
    session.load([trace.build()])
    prepare(session)
    return session


def test_names_of_tracks_tell_device_and_stream() -> None:
    """What is called a GPU's stream is a device lane, a thread is the host's."""
    recording = read(sdk_app())
    assert lane_of(recording, "gemm_kernel") == ("stream", 1, 7)
    assert lane_of(recording, "submit") == ("thread", ABSENT, ABSENT)
    assert [device.ordinal for device in recording.devices] == [1]


def test_flows_link_where_there_are_no_ids() -> None:
    """The slice from which a flow leads to device work is its launch."""
    recording = read(sdk_app())
    work, calls = named(recording, "gemm_kernel"), named(recording, "submit")
    assert launch_rows(recording.slices)[work].tolist() == calls
    assert kind_of(recording, "submit") is Kind.RUNTIME


def test_a_flow_that_runs_on_links_all_its_work() -> None:
    """One launch may start several kernels, as a graph does."""
    trace = TraceBuilder()
    host = trace.thread(1, 1, "main")
    stream = trace.track("stream 3")
    trace.slice(host, 0, 10, "replay", flow=5)
    trace.slice(stream, 20, 10, "first", flow=5)
    trace.slice(stream, 30, 10, "second", flow=5)
    recording = read(trace)
    launch = launch_rows(recording.slices)
    replay = named(recording, "replay")
    assert launch[named(recording, "first")].tolist() == replay
    assert launch[named(recording, "second")].tolist() == replay


def test_steps_end_with_the_work_that_they_launched() -> None:
    """Steps of a foreign trace obey the same definition as all others."""
    steps, _ = find_steps(read(sdk_app()))
    assert [(s.ts_ns, s.end_ns) for s in steps] == [(0, 110 * US), (110 * US, 210 * US)]


def test_equal_ids_of_two_processes_stay_apart() -> None:
    """Ids are unique only in one process: each kernel finds the launch of its own."""
    trace = TraceBuilder()
    for pid in (1, 2):
        trace.process(pid, f"worker {pid}")
        host = trace.thread(pid, pid * 10, "main")
        stream = trace.track(f"stream {pid}", trace.track(f"GPU {pid}"))
        trace.slice(host, pid, 5, f"launch {pid}", "cuda_runtime", correlation=1, flow=pid)
        trace.slice(stream, 20, 5, f"kernel {pid}", "kernel", correlation=1, flow_end=pid)
    recording = read(trace)
    launch = launch_rows(recording.slices)
    for pid in (1, 2):
        found = launch[named(recording, f"kernel {pid}")].tolist()
        assert found == named(recording, f"launch {pid}")


def test_xla_lines_are_told_apart() -> None:
    """Ops are work; modules are the same time once more; steps are steps."""
    recording = read(jax_like())
    assert kind_of(recording, "fusion.1") is Kind.KERNEL
    assert kind_of(recording, "all-reduce.2") is Kind.COLLECTIVE
    assert kind_of(recording, "jit_train_step(123)") is Kind.DEVICE_ANNOTATION
    assert lane_of(recording, "fusion.1")[:2] == ("stream", 0)
    assert lane_of(recording, "PjitFunction(train_step)")[0] == "thread"
    steps, _ = find_steps(recording)
    assert [(s.name, s.source) for s in steps] == [(f"step {n}", "marker") for n in (4, 5, 6)]


def test_rocprof_tracks_are_known() -> None:
    """Queues, copies and threads are told by the names that rocprofv3 gives them."""
    recording = read(rocprof_like())
    assert lane_of(recording, "Cijk_Ailk") == ("stream", 2, 5)
    assert lane_of(recording, "MEMORY_COPY_HOST_TO_DEVICE")[:2] == ("stream", 2)
    assert kind_of(recording, "MEMORY_COPY_HOST_TO_DEVICE") is Kind.COPY
    launch = launch_rows(recording.slices)
    assert launch[named(recording, "Cijk_Ailk")].tolist() == named(recording, "hipLaunchKernel")
    assert not [n for n in recording.notices if n.kind == "track.unmapped"]


def odd_names() -> TraceBuilder:
    """Tracks whose names tell nothing."""
    trace = TraceBuilder()
    trace.slice(trace.track("lane A"), 0, 100 * US, "matmul")
    trace.slice(trace.track("progress"), 0, 90 * US, "round 1")
    return trace


def test_tracks_that_tell_nothing_are_said() -> None:
    """Unmapped tracks are named in a notice, and their slices are nobody's work."""
    recording = read(odd_names())
    notices = [n for n in recording.notices if n.kind == "track.unmapped"]
    assert [n.count for n in notices] == [2]
    assert "lane A" in notices[0].message
    assert set(recording.slices.kind.tolist()) == {Kind.OTHER}


def test_the_user_names_device_tracks_and_steps() -> None:
    """Regular expressions map what names do not."""
    recording = read(odd_names(), device_track="(?i)^LANE", step_marker=r"^round \d+$")
    assert kind_of(recording, "matmul") is Kind.KERNEL
    steps, _ = find_steps(recording, r"^round \d+$")
    assert [step.name for step in steps] == ["round 1"]


def test_a_slice_without_end_is_no_work() -> None:
    """It is set aside and counted, not stretched to the end of the trace."""
    trace = sdk_app()
    trace.slice(trace.track("stream 9"), 30, None, "hanging")
    recording = read(trace)
    assert named(recording, "hanging") == []
    assert [recording.strings[n] for n in recording.set_aside.name.tolist()] == ["hanging"]
    assert [n.count for n in recording.notices if n.kind == "slice.unfinished"] == [1]


def test_begins_before_ends_are_mended() -> None:
    """Kernels back to back keep their boundaries though the file closes the wrong ones."""
    trace = TraceBuilder()
    stream = trace.track("stream 0")
    times = [(0, 10), (10, 15), (25, 5), (30, 20)]
    for i, (start, dur) in enumerate(times):
        trace.slice(stream, start, dur, f"kernel {i}")
    recording = normalise(read_perfetto(trace.build_begins_first(), "trace.pftrace"))
    found = zip(recording.slices.ts_ns.tolist(), recording.slices.dur_ns.tolist(), strict=True)
    assert sorted(found) == times
    assert [n.count for n in recording.notices if n.kind == "duration.impossible"] == [3]


def test_counters_keep_unit_and_device() -> None:
    """A counter below a GPU's track is that GPU's."""
    trace = sdk_app()
    trace.counter("SM Active", [(0, 0.5), (10 * US, 90.0)], trace.track("GPU 3"))
    counter = read(trace).counters[0]
    assert (counter.name, counter.unit, counter.device) == ("SM Active", "%", 3)
    assert counter.values.tolist() == [0.5, 90.0]


def test_nothing_to_read_is_an_input_error() -> None:
    """A trace with tracks but no events is refused by name."""
    trace = TraceBuilder()
    trace.track("GPU 0")
    with pytest.raises(InputError, match=r"trace\.pftrace"):
        read_perfetto(trace.build(), "trace.pftrace")


def test_a_cut_trace_says_where() -> None:
    """What is before the cut is read; the notice has the byte of the broken packet."""
    data = sdk_app().build()
    recording = normalise(read_perfetto(data[:-3], "trace.pftrace"))
    assert len(named(recording, "submit")) == 2
    notice = next(n for n in recording.notices if n.kind == "input.truncated")
    last = pb.Trace(packet=pb.Trace.FromString(data).packet[-1:]).SerializeToString()
    assert f"at byte {len(data) - len(last)};" in notice.message


def test_sql_sees_the_same_model() -> None:
    """Device work, launches and steps of a foreign trace are rows of the model's tables."""
    with session_with(sdk_app()) as session:
        work = session.query(
            "SELECT op.device_id, op.dur, launch.api, step.ordinal "
            "FROM perfdiag_device_op AS op "
            "JOIN perfdiag_launch AS launch ON launch.id = op.launch_id "
            "JOIN perfdiag_step AS step ON step.id = op.step_id ORDER BY op.ts"
        )
        steps = session.query("SELECT ts, dur FROM perfdiag_step ORDER BY ordinal")
    assert work.rows() == [(1, 90 * US, "submit", 0), (1, 90 * US, "submit", 1)]
    assert steps.rows() == [(0, 110 * US), (110 * US, 100 * US)]


def test_categories_of_our_own_are_not_counted_twice() -> None:
    """A foreign slice whose category is `kernel` is one row of device work."""
    trace = TraceBuilder()
    trace.slice(trace.track("stream 1"), 0, 10, "gemm", "kernel")
    with session_with(trace) as session:
        assert session.query("SELECT count(*) AS n FROM perfdiag_device_op").rows() == [(1,)]


def test_the_trace_processors_own_tables_are_there(tmp_path: Path) -> None:
    """A foreign trace is opened as it is: nothing of it is renamed or left out."""
    (tmp_path / "trace.pftrace").write_bytes(odd_names().build())
    table = query_trace(
        str(tmp_path / "trace.pftrace"),
        "SELECT slice.name, track.name AS track FROM slice JOIN track ON track.id = track_id "
        "ORDER BY slice.name",
    )
    assert table.rows() == [("matmul", "lane A"), ("round 1", "progress")]


def test_overlapping_ends_on_one_track() -> None:
    """Of begins and ends that do not pair, the union is right and what stays open no work."""
    path = SHARED / "cases/74-perfetto-unbalanced-begin-end/trace.pftrace"
    if not path.exists():
        pytest.skip("the shared cases are not here")
    recording = read_blob(next(expand([str(path)])), ReadOptions())
    busy = np.zeros(50 * US, bool)
    for start, end in zip(recording.slices.ts_ns, recording.slices.end_ns, strict=True):
        busy[start:end] = True
    assert busy.sum() == 36 * US
    assert [n.count for n in recording.notices if n.kind == "slice.unfinished"] == [1]


@pytest.mark.parametrize("name", ["synthetic_2rank.pftrace", "synthetic_2rank.pftrace.gz"])
def test_a_trace_of_two_ranks(name: str) -> None:
    """Both ranks' lanes are found, and that they are two is said."""
    path = SHARED / "traces/perfetto" / name
    if not path.exists():
        pytest.skip("the shared traces are not here")
    recording = read_blob(next(expand([str(path)])), ReadOptions())
    streams = {(lane.device, lane.stream) for lane in recording.lanes if lane.kind == "stream"}
    assert streams == {(0, 7), (0, 20), (1, 7), (1, 20)}
    assert recording.clock.quality == "exact"
    assert "merge.pid_collision" in {n.kind for n in recording.notices}
