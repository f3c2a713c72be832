"""Traces of simulated jobs, as text and after the whole analysis."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from tiny_jobs import ROUND

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.events import (
    Called,
    DeviceWork,
    HostRange,
    JobEvents,
    RankEvents,
    Window,
)
from perfdiag.profiler.simulator.families.convolutional import ConvolutionalSize
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import TraceOptions, kineto_json, write_job
from perfdiag.profiler.simulator.platform import Noise, Platform
from perfdiag.profiler.simulator.program import (
    Allocate,
    Batch,
    Call,
    Collective,
    Copy,
    End,
    Group,
    Host,
    Instruction,
    Job,
    Kernel,
    Launch,
    Loader,
    Range,
    RankProgram,
    Record,
    ReplayGraph,
    Synchronize,
    Tensor,
    Wait,
)
from perfdiag.profiler.simulator.spec import JobSpec
from perfdiag.trace_schemas.report import Report, Totals

Vendor = Literal["nvidia", "amd", "intel", "mtia"]

VENDORS: dict[Vendor, str] = {
    "nvidia": "NVIDIA H100 80GB HBM3",
    "amd": "AMD Instinct MI300X",
    "intel": "Intel(R) Data Center GPU Max 1550",
    "mtia": "ARTEMIS",
}
OTHER_CLOCK = TraceOptions(start_unix_ns=1_800_000_000_123_456_789, clock_offsets_ns={1: -250})
GROUPS = (Group("0", "default_pg", (0, 1)), Group("7", "mesh_pp", (0, 1)))
LINEAR = (Tensor((64, 128), "c10::BFloat16"), Tensor((256, 128), "c10::BFloat16"))
CONVOLVED = (
    Tensor((8, 64, 56, 56), "c10::Half"),
    Tensor((64, 64, 3, 3), "c10::Half"),
    Tensor((), ""),
    Tensor((), "ScalarList", "[1, 1]"),
)

Event = dict[str, Any]


def platform(vendor: Vendor = "nvidia") -> Platform:
    """One whose times are microseconds with uneven nanoseconds."""
    return replace(
        ROUND,
        vendor=vendor,
        device=VENDORS[vendor],
        flops_per_s={"bf16": 1e12, "fp32": 1e11},
        bytes_per_s=1e11,
        launch_ns=4_217.0,
        latency_ns=2_903.0,
        noise=Noise(),
        pinned_bytes_per_s=1e10,
        pageable_bytes_per_s=3e9,
    )


def kernel(family: str, size: int, detail: str = "") -> Kernel:
    return Kernel(family, "bf16", (size, 512, 64), 2.0 * size * 512 * 64, 1e3 * size, detail)


def step(rank: int) -> dict[str, tuple[Instruction, ...]]:
    """A step with a bit of everything."""
    passed = Collective("send" if rank == 0 else "recv", "7", 4096, peer=1 - rank)
    main: tuple[Instruction, ...] = (
        Range("ProfilerStep#", "annotation", 20_000),
        Range("torch/utils/data/dataloader.py(728): __next__", "frame", phase="data"),
        Batch(),
        End(),
        Copy(100_000, "HtoD", pinned=False, blocking=True),
        Range("nn.Module: Net_0", "frame", 3_000, phase="forward"),
        Range("aten::linear", "op", 2_000, LINEAR, 5),
        Range("aten::mm", "op", 3_000, LINEAR),
        Launch(kernel("gemm", 4096)),
        End(),
        End(),
        Range("aten::convolution", "op", 3_000, CONVOLVED, 6),
        Launch(kernel("convolution", 2048, "fwd")),
        End(),
        ReplayGraph((kernel("elementwise", 512), kernel("softmax", 512), kernel("norm", 512))),
        End(),
        Range("torch/_tensor.py(648): backward", "frame", 2_000, phase="backward"),
        Call("autograd"),
        End(),
        passed,
        Range("Optimizer.step#AdamW.step", "annotation", 9_000, phase="optimizer"),
        Wait("reduced", "compute"),
        Launch(kernel("optimizer", 1024, "multi_tensor_adamw")),
        Launch(kernel("fused_elementwise", 1024, "add_mul")),
        End(),
        Copy(4, "DtoH", blocking=True),
        Allocate(1 << 20),
        Host(150_000, "gc.collect", every=2),
        Synchronize(),
        End(),
    )
    backward: tuple[Instruction, ...] = (
        Range("autograd::engine::evaluate_function: MmBackward0", "op", 2_000, (), 5),
        Range("MmBackward0", "op", 2_000, LINEAR[:1], 5),
        Launch(kernel("gemm", 8192)),
        End(),
        End(),
        Record("gradients", "compute"),
        Wait("gradients", "comm"),
        Collective("all_reduce", "0", 400_000),
        Record("reduced", "comm"),
        Copy(50_000, "fill"),
    )
    return {"main": main, "autograd:synced": (), "autograd": backward}


def job(steps: int = 4) -> Job:
    loader = Loader(workers=2, load_ns=300_000)
    ranks = [RankProgram(step(rank), loader, device_speed=1 - 0.2 * rank) for rank in range(2)]
    return Job("all sorts", "dense", "ddp", ranks, GROUPS, steps)


@cache
def run(vendor: Vendor = "nvidia") -> JobEvents:
    return simulate(job(), platform(vendor), 3)


def document(vendor: Vendor = "nvidia", **options: Any) -> Event:
    """The trace of rank 0."""
    return loaded(run(vendor).ranks[0], TraceOptions(**options), vendor)


def loaded(events: RankEvents, options: TraceOptions, vendor: Vendor = "nvidia") -> Event:
    found: Event = json.loads(kineto_json(events, job(), platform(vendor), options))
    return found


def events_of(trace: Event, category: str, phase: str = "X") -> list[Event]:
    return [e for e in trace["traceEvents"] if e.get("cat") == category and e["ph"] == phase]


def named(trace: Event, name: str) -> list[Event]:
    """Events of the host by name."""
    every = [e for e in trace["traceEvents"] if e["name"] == name and e["ph"] == "X"]
    return [e for e in every if e["cat"] != "gpu_user_annotation"]


# ------------------------------------------------------------------ what the analysis makes of it

Spans = list[tuple[int, int]]


def union(spans: Iterable[tuple[int, int]]) -> Spans:
    found: list[list[int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return [(start, end) for start, end in found]


def length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in union(spans))


def spans(work: Sequence[DeviceWork], *kinds: type) -> Spans:
    return [(one.start_ns, one.end_ns) for one in work if isinstance(one.source, kinds)]


def totals(events: RankEvents) -> Totals:
    """What the totals must be, by the events alone."""
    steps = [window for window in events.windows if window.phase is None]
    window = steps[-1].completion_ns - steps[0].host_start_ns
    compute, collective, copy = (spans(events.device, k) for k in (Kernel, Collective, Copy))
    busy = length(compute + collective + copy)
    return Totals(
        window=window,
        busy=busy,
        idle=window - busy,
        compute=length(compute),
        collective=length(collective),
        exposed_collective=length(compute + collective) - length(compute),
        copy=length(copy),
        exposed_copy=busy - length(compute + collective),
    )


@pytest.fixture(scope="module", params=[*VENDORS, "nvidia stacks", "nvidia bare"])
def analysed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A job through the whole pipeline, with its events."""
    vendor, *more = request.param.split()
    options = {
        "stacks": TraceOptions(stacks=True, sync_events=True, clock_offsets_ns={1: 5_000_017}),
        "bare": TraceOptions(shapes=False, compress=False, host=""),
        "": TraceOptions(),
    }[more[0] if more else ""]
    folder = tmp_path_factory.mktemp("traces")
    paths = write_job(run(vendor), job(), platform(vendor), options, folder)
    return run(vendor), analyze([str(path) for path in paths], Options())


def test_nothing_is_wrong_with_the_traces(analysed: tuple[JobEvents, Report]) -> None:
    """The reader has nothing to complain of; what it does not know of a device it says."""
    kinds = {notice.kind for notice in analysed[1].notices if notice.severity != "info"}
    assert not kinds - {"model.disagrees"}
    assert [one.events_set_aside for one in analysed[1].inputs] == [0, 0]
    assert all(one.events_kept == one.events_read for one in analysed[1].inputs)


def test_steps_and_windows_are_those_of_the_events(analysed: tuple[JobEvents, Report]) -> None:
    """Markers are found, and each window ends with the step's completion, to the nanosecond."""
    for events, rank in zip(analysed[0].ranks, analysed[1].ranks, strict=True):
        whole = [window for window in events.windows if window.phase is None]
        assert [step.source for step in rank.steps] == ["marker"] * 4
        assert [step.name for step in rank.steps] == [f"ProfilerStep#{i}" for i in range(1, 5)]
        ends = [step.start_ns + step.dur_ns - rank.steps[0].host_start_ns for step in rank.steps]
        assert ends == [window.completion_ns - whole[0].host_start_ns for window in whole]


def test_all_work_is_linked_to_its_launch(analysed: tuple[JobEvents, Report]) -> None:
    """Every launch has its device records: of a graph's one call all of them."""
    for rank in analysed[1].ranks:
        assert [step.coverage for step in rank.steps] == [1.0] * 4


def test_totals_are_those_of_the_events(analysed: tuple[JobEvents, Report]) -> None:
    """Busy, compute, collective, copy and what of them is exposed, to the nanosecond."""
    for events, rank in zip(analysed[0].ranks, analysed[1].ranks, strict=True):
        assert rank.totals_ns == totals(events)


def test_collectives_meet_by_group_and_kind(analysed: tuple[JobEvents, Report]) -> None:
    """Waits that the analysis finds are those of the events, clocks of ranks apart or not."""
    for events, rank in zip(analysed[0].ranks, analysed[1].ranks, strict=True):
        rows = {row.op: row for row in analysed[1].collectives if row.rank == rank.rank}
        reduced = [
            one
            for one in events.device
            if isinstance(one.source, Collective) and one.source.op == "all_reduce"
        ]
        assert rows["all_reduce"].count == len(reduced) == 4
        assert rows["all_reduce"].bytes == 4 * 400_000
        assert rows["all_reduce"].group == "0"
        moving = sum(one.end_ns - one.moving_ns for one in reduced)
        assert rows["all_reduce"].transfer_ns == pytest.approx(moving, abs=4_000)


# ------------------------------------------------------------------ the text


def test_the_same_job_gives_the_same_bytes(tmp_path: Path) -> None:
    """Files hang on the events and options alone, and not on when they are written."""
    options = TraceOptions(dropped=0.2, seed=9, stacks=True)
    for name in ("a", "b"):
        again = simulate(job(), platform(), 3)
        write_job(again, job(), platform(), options, tmp_path / name)
    for rank in range(2):
        first, second = (tmp_path / n / f"rank{rank}.json.gz" for n in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


def test_files_hold_what_the_ranks_alone_say(tmp_path: Path) -> None:
    """Sharing texts between ranks changes nothing, compressed or not."""
    events = run()
    (first, second) = write_job(events, job(), platform(), TraceOptions(), tmp_path)
    assert (first.name, second.name) == ("rank0.json.gz", "rank1.json.gz")
    plain = write_job(events, job(), platform(), TraceOptions(compress=False), tmp_path)
    for path, text, one in zip((first, second), plain, events.ranks, strict=True):
        assert gzip.decompress(path.read_bytes()) == text.read_bytes()
        assert text.read_bytes() == kineto_json(one, job(), platform(), TraceOptions())


def test_times_are_of_the_rank_clock_and_exact() -> None:
    """Base time and decimals of microseconds give the nanosecond on the clock of the rank."""
    trace = loaded(run().ranks[1], OTHER_CLOCK)
    work = run().ranks[1].device[0]
    event = next(e for e in events_of(trace, "gpu_memcpy") if e["args"]["correlation"] == 1)
    start = trace["baseTimeNanoseconds"] + round(event["ts"] * 1000)
    assert start == 1_800_000_000_123_456_789 - 250 + work.start_ns
    assert round(event["dur"] * 1000) == work.end_ns - work.start_ns


def test_only_what_a_profiler_sees_is_written() -> None:
    """Neither costs nor phases nor the time from which data move are in the text."""
    text = json.dumps(document())
    assert not any(word in text for word in ("flops", "phase", "moving", "speed"))


def test_inputs_of_operators() -> None:
    """Sizes, types, strides and numbers, as PyTorch records them, and only if it does."""
    (first, *_) = named(document(), "aten::convolution")
    assert first["args"]["Input Dims"] == [[8, 64, 56, 56], [64, 64, 3, 3], [], []]
    assert first["args"]["Input Strides"][0] == [64 * 56 * 56, 56 * 56, 56, 1]
    assert first["args"]["Input type"] == ["c10::Half", "c10::Half", "", "ScalarList"]
    assert first["args"]["Concrete Inputs"] == ["", "", "", "[1, 1]"]
    (bare, *_) = named(document(shapes=False), "aten::convolution")
    assert not [key for key in bare["args"] if key.startswith(("Input", "Concrete"))]


def test_work_bears_the_id_of_its_operator() -> None:
    """External ids lead from a kernel and its call to the innermost operator around the call."""
    trace = document()
    mm = named(trace, "aten::mm")
    ids = [e["args"]["External id"] for e in mm]
    kernels = [e for e in events_of(trace, "kernel") if e["args"].get("External id") in ids]
    launches = [e for e in named(trace, "cudaLaunchKernel") if e["args"].get("External id") in ids]
    assert [e["args"]["External id"] for e in launches] == ids
    assert len(kernels) == 4
    for op, call in zip(mm, launches, strict=True):
        assert op["ts"] <= call["ts"] <= call["ts"] + call["dur"] <= op["ts"] + op["dur"] + 1e-3


def test_arrows_lead_from_calls_to_work_and_forward_to_backward() -> None:
    """Each starts and ends with an event, at its start."""
    trace = document()
    starts = {e["id"]: e for e in events_of(trace, "ac2g", "s")}
    ends = events_of(trace, "ac2g", "f")
    assert {e["id"] for e in ends} == set(starts)
    assert len(ends) == len(run().ranks[0].device)
    forward, backward = events_of(trace, "fwdbwd", "s"), events_of(trace, "fwdbwd", "f")
    assert [e["ts"] for e in forward] == [e["ts"] for e in named(trace, "aten::linear")]
    assert [e["ts"] for e in backward] == [e["ts"] for e in named(trace, "MmBackward0")]


def test_autograd_numbers_go_on_from_step_to_step() -> None:
    """No number comes twice in the forward pass of a run; the backward says whose it is."""
    trace = document()
    numbers = [e["args"]["Sequence number"] for e in named(trace, "aten::linear")]
    assert len(set(numbers)) == 4
    backward = named(trace, "MmBackward0")
    assert [e["args"]["Sequence number"] for e in backward] == numbers
    assert {e["args"]["Fwd thread id"] for e in backward} == {1}
    assert {e["tid"] for e in backward} != {e["tid"] for e in named(trace, "aten::linear")}


def test_tasks_of_one_thread_share_its_number() -> None:
    """What follows a colon in a thread's name tells tasks apart, and not threads."""
    two = [
        HostRange(name, Range("aten::mm"), start, start + 5, 0)
        for start, name in enumerate(["main", "autograd", "autograd:synced"])
    ]
    events = RankEvents(0, two, [], [], [Window(0, None, 0, 9, 9)])
    trace = loaded(events, TraceOptions())
    main, first, second = (e["tid"] for e in named(trace, "aten::mm"))
    assert first == second != main


def test_collectives_are_described() -> None:
    """By an operator around the launch, and on the kernel: with elements, group and number."""
    trace = document()
    described = named(trace, "record_param_comms")
    reduced = [e for e in described if e["args"]["Collective name"] == "allreduce"]
    assert [e["args"]["Seq"] for e in reduced] == [1, 2, 3, 4]
    assert {e["args"]["In msg nelems"] for e in reduced} == {200_000}
    sent = [e for e in described if e["args"]["Collective name"] == "send"]
    assert {(e["args"]["Src Rank"], e["args"]["Dst Rank"]) for e in sent} == {(0, 1)}
    kernels = [e for e in events_of(trace, "kernel") if "Collective name" in e["args"]]
    assert [e["args"]["Process Group Name"] for e in kernels] == ["0", "7"] * 4
    ids = {e["args"]["External id"] for e in described}
    assert {e["args"]["External id"] for e in kernels} == ids
    assert len(named(trace, "nccl:all_reduce")) == 4


@pytest.mark.parametrize(
    ("op", "given", "got"),
    [("all_gather", 500, 1000), ("reduce_scatter", 1000, 500), ("all_to_all", 1000, 1000)],
)
def test_elements_that_go_in_and_come_out(op: Any, given: int, got: int) -> None:
    """A gather's message is its output, a scatter's its input."""
    collective = Collective(op, "0", 2000)
    calls = [Called("main", collective, 10, 20, 1)]
    device = [DeviceWork("comm", collective, 30, 40, 1, 30, 0, "other")]
    events = RankEvents(0, [], calls, device, [Window(0, None, 0, 50, 50)])
    trace = loaded(events, TraceOptions())
    (event,) = events_of(trace, "kernel")
    assert (event["args"]["In msg nelems"], event["args"]["Out msg nelems"]) == (given, got)


def test_a_description_that_a_program_writes_is_used() -> None:
    """No second operator is put around a launch that has one."""
    collective = Collective("all_reduce", "0", 2000)
    host = [HostRange("main", Range("record_param_comms"), 5, 25, 0)]
    calls = [Called("main", collective, 10, 20, 1)]
    events = RankEvents(0, host, calls, [], [Window(0, None, 0, 50, 50)])
    trace = loaded(events, TraceOptions())
    (described,) = named(trace, "record_param_comms")
    assert described["args"]["Collective name"] == "allreduce"
    assert described["dur"] == 0.02


def test_graphs_share_one_launch() -> None:
    """Kernels of a graph have its call's correlation, and a place in it."""
    trace = document()
    calls = named(trace, "cudaGraphLaunch")
    assert len(calls) == 4
    for call in calls:
        number = call["args"]["correlation"]
        kernels = [e for e in events_of(trace, "kernel") if e["args"]["correlation"] == number]
        assert len(kernels) == 3
        assert len({e["args"]["graph node id"] for e in kernels}) == 3
        assert {e["args"]["graph id"] for e in kernels} == {1}
    amd = [e for e in events_of(document("amd"), "kernel") if e["args"]["kind"] == "Dispatch Task"]
    assert len(amd) == 12
    assert not any("grid" in e["args"] for e in amd)


def test_stacks_are_frames_with_callers() -> None:
    """Frames are there with stacks alone; each but the script's has the one that called it."""
    assert not events_of(document(), "python_function")
    frames = events_of(document(stacks=True), "python_function")
    by_id = {e["args"]["Python id"]: e for e in frames}
    assert len(by_id) == len(frames) == 2 + 3 * 4
    roots = [e for e in frames if e["args"]["Python parent id"] is None]
    assert [e["name"] for e in roots] == ["train.py(214): <module>"]
    for frame in frames:
        caller = by_id.get(frame["args"]["Python parent id"])
        assert caller is None or caller["ts"] <= frame["ts"]
    modules = [e for e in frames if e["name"] == "nn.Module: Net_0"]
    assert {e["args"]["Python module id"] for e in modules} == {0}


def test_waits_are_recorded_when_asked_for() -> None:
    """A stream's wait names the record that it waits for; the host's has no stream."""
    assert not events_of(document(), "cuda_sync")
    assert not events_of(document("amd", sync_events=True), "cuda_sync")
    trace = document(sync_events=True)
    waits = [e for e in events_of(trace, "cuda_sync") if e["name"] == "Stream Wait Event"]
    records = {e["args"]["correlation"] for e in named(trace, "cudaEventRecord")}
    assert len(waits) == 8
    assert {e["args"]["wait_on_cuda_event_record_corr_id"] for e in waits} <= records
    assert {(e["args"]["wait_on_stream"], e["tid"]) for e in waits} == {(7, 20), (20, 7)}
    assert {e["tid"] for e in events_of(trace, "cuda_sync") if e["name"] == "Context Sync"} == {-1}


def test_copies_that_block() -> None:
    """CUDA waits in the copy from pageable memory, and after the one from pinned memory."""
    pageable, pinned = [
        e for e in named(document(), "cudaMemcpyAsync") if e["args"]["correlation"] < 100
    ][:2]
    waits = named(document(), "cudaStreamSynchronize")
    assert pageable["dur"] > 30
    after = [w for w in waits if abs(w["ts"] - pinned["ts"] - pinned["dur"]) < 0.01]
    assert len(after) == 1
    assert after[0]["dur"] > pinned["dur"]
    assert len(named(document("amd"), "hipMemcpyWithStream")) == 8
    assert not named(document("amd"), "hipStreamSynchronize")


def test_lost_records_have_calls_still() -> None:
    """A share of the device records is not there, nor an arrow to them; all calls are."""
    whole, lossy = document(), document(dropped=0.3, seed=4)
    device = ("kernel", "gpu_memcpy", "gpu_memset")
    there, kept = (sum(len(events_of(t, c)) for c in device) for t in (whole, lossy))
    assert 0.5 * there < kept < 0.9 * there
    assert len(events_of(lossy, "ac2g", "f")) == kept
    assert len(events_of(lossy, "ac2g", "s")) == len(events_of(whole, "ac2g", "s"))
    other = document(dropped=0.3, seed=5)
    assert events_of(other, "kernel") != events_of(lossy, "kernel")


def test_steps_that_are_not_recorded() -> None:
    """Nothing of steps that are waited for is left; numbers of steps and collectives go on."""
    trace = document(skipped_steps=2)
    steps = [e["name"] for e in events_of(trace, "user_annotation") if "Profiler" in e["name"]]
    assert steps == ["ProfilerStep#3", "ProfilerStep#4"]
    begin = min(e["ts"] for e in named(trace, "ProfilerStep#3"))
    assert all(e["ts"] >= begin for e in trace["traceEvents"] if e["ph"] == "X")
    described = named(trace, "record_param_comms")
    assert sorted(e["args"]["Seq"] for e in described) == [3, 3, 4, 4]
    assert len(events_of(trace, "kernel")) == len(events_of(document(), "kernel")) // 2


def ahead(rank: int) -> RankProgram:
    """A host that launches a long kernel, a graph and a collective, and waits for nothing."""
    reduced = Collective("all_reduce", "0", 400_000)
    main: tuple[Instruction, ...] = (
        Range("ProfilerStep#", "annotation", 20_000),
        Launch(kernel("gemm", 65_536)),
        ReplayGraph((kernel("elementwise", 2048), kernel("softmax", 2048))),
        Record("done", "compute"),
        Wait("done", "comm"),
        reduced,
        End(),
    )
    return RankProgram({"main": main}, Loader(workers=2, load_ns=1_000))


@cache
def queued() -> tuple[Job, RankEvents, Event]:
    """A job whose host works ahead, and the trace of its last steps."""
    made = Job("ahead", "dense", "ddp", [ahead(rank) for rank in range(2)], GROUPS, 4)
    events = simulate(made, platform(), 3).ranks[0]
    options = TraceOptions(skipped_steps=2)
    return made, events, json.loads(kineto_json(events, made, platform(), options))


def test_work_of_skipped_steps_that_begins_later_is_recorded() -> None:
    """All that begins from the first recorded step on, whoever launched it; nothing before."""
    _, events, trace = queued()
    began = min(window.host_start_ns for window in events.windows if window.step == 2)
    late = [one for one in events.device if one.start_ns >= began]
    assert {one.step for one in late} > {2, 3}
    assert {one.step for one in events.device} > {one.step for one in late if one.step < 2} > set()
    recorded = [*events_of(trace, "kernel"), *events_of(trace, "gpu_memcpy")]
    assert sorted(e["args"]["correlation"] for e in recorded) == sorted(
        one.correlation for one in late
    )


def test_records_of_skipped_steps_have_no_launch() -> None:
    """No call has their number, no arrow ends at them, and a collective does not say its group."""
    _, events, trace = queued()
    calls = {e["args"]["correlation"] for e in events_of(trace, "cuda_runtime")}
    early = {one.correlation for one in events.device if one.step < 2}
    kernels = events_of(trace, "kernel")
    orphans = [e for e in kernels if e["args"]["correlation"] in early]
    assert orphans
    assert not calls & early
    assert all(e["args"]["correlation"] in calls for e in kernels if e not in orphans)
    begins, ends = ([e["id"] for e in events_of(trace, "ac2g", phase)] for phase in ("s", "f"))
    assert set(ends) <= set(begins)
    assert not set(ends) & early
    assert [e for e in orphans if "nccl" in e["name"]]
    assert not any("Process Group Name" in e["args"] for e in orphans)


def test_the_analysis_knows_what_was_launched_before_the_trace(tmp_path: Path) -> None:
    """A notice says for each rank how long its first step works off what came before."""
    made, _, _ = queued()
    options = TraceOptions(skipped_steps=2)
    paths = write_job(simulate(made, platform(), 3), made, platform(), options, tmp_path)
    notices = analyze([str(path) for path in paths], Options()).notices
    told = [one.message for one in notices if one.kind == "link.no_launch"]
    assert told
    assert all("launched before the trace began" in message for message in told)


def test_the_header_names_rank_devices_and_groups() -> None:
    """As PyTorch writes it, for each vendor; a job of one rank has no groups."""
    trace = loaded(run().ranks[1], TraceOptions())
    info = trace["distributedInfo"]
    assert (info["rank"], info["world_size"], info["backend"]) == (1, 2, "nccl")
    assert [group["pg_desc"] for group in info["pg_config"]] == ["default_pg", "mesh_pp"]
    assert [device["name"] for device in trace["deviceProperties"]] == [VENDORS["nvidia"]] * 2
    assert trace["host_name"] == "node0"
    assert trace["schemaVersion"] == 1
    alone = Job("one", "dense", "single", job().ranks[:1], (), 1)
    text = kineto_json(RankEvents(0, [], [], [], []), alone, platform(), TraceOptions())
    assert "distributedInfo" not in json.loads(text)


def test_vendors_have_calls_and_categories_of_their_own() -> None:
    """No call of another vendor's runtime is in a trace."""
    prefixes: dict[Vendor, tuple[str, ...]] = {
        "nvidia": ("cuda", "cu"),
        "amd": ("hip",),
        "intel": ("ur",),
    }
    for vendor, starts in prefixes.items():
        calls = [
            e["name"]
            for e in document(vendor)["traceEvents"]
            if e.get("cat") in ("cuda_runtime", "cuda_driver", "xpu_runtime")
        ]
        assert calls
        assert all(name.startswith(starts) for name in calls)
    mtia = Counter(e.get("cat") for e in document("mtia")["traceEvents"])
    assert mtia["mtia_ccp_events"] == len(run("mtia").ranks[0].device)
    assert not mtia["kernel"]


def test_operators_are_those_of_the_vendors_library() -> None:
    """PyTorch calls MIOpen on AMD, forward and backward; autograd's node says so too."""
    spec = JobSpec(ConvolutionalSize(1, side=32, width=8), steps=1)
    convolutional = build_job(spec)
    found = {}
    for vendor in ("nvidia", "amd"):
        there = platform(vendor)
        (events,) = simulate(convolutional, there, 3).ranks
        trace = json.loads(kineto_json(events, convolutional, there, TraceOptions()))
        names = Counter(e["name"] for e in events_of(trace, "cpu_op"))
        found[vendor] = {n: c for n, c in names.items() if re.search("(?i)cudnn|miopen", n)}
    engine = "autograd::engine::evaluate_function: "
    assert set(found["amd"]) == {
        "aten::miopen_convolution",
        "aten::miopen_batch_norm",
        "aten::miopen_batch_norm_backward",
        "MiopenBatchNormBackward0",
        f"{engine}MiopenBatchNormBackward0",
    }
    renamed = {re.sub("miopen", "cudnn", name): count for name, count in found["amd"].items()}
    assert found["nvidia"] == {re.sub("Miopen", "Cudnn", n): c for n, c in renamed.items()}


def test_annotations_are_drawn_on_streams() -> None:
    """From 1 ns before the first work that one launched there, to 2 ns after the last."""
    trace = document()
    (first, *_) = [
        e for e in events_of(trace, "gpu_user_annotation") if e["name"].startswith("Optimizer")
    ]
    calls = named(trace, "cudaLaunchKernel") + named(trace, "cuLaunchKernel")
    (host, *_) = named(trace, first["name"])
    mine = {
        e["args"]["correlation"]
        for e in calls
        if host["ts"] <= e["ts"] < host["ts"] + host["dur"] and e["tid"] == host["tid"]
    }
    work = [e for e in events_of(trace, "kernel") if e["args"]["correlation"] in mine]
    assert len(work) == 2
    assert first["ts"] == pytest.approx(min(e["ts"] for e in work) - 0.001, abs=6e-4)
    end = max(e["ts"] + e["dur"] for e in work) + 0.002
    assert first["ts"] + first["dur"] == pytest.approx(end, abs=1e-3)


def test_loaders_without_workers_load_in_the_main_thread() -> None:
    """PyTorch's iterator says which kind of loader it is."""
    events = RankEvents(0, [HostRange("main", Batch(), 1, 2, 0)], [], [], [])
    for workers, kind in ((0, "SingleProcess"), (2, "MultiProcessing")):
        program = RankProgram({"main": ()}, Loader(workers, 1))
        alone = Job("one", "dense", "single", [program], (), 1)
        trace = json.loads(kineto_json(events, alone, platform(), TraceOptions()))
        (batch,) = events_of(trace, "user_annotation")
        assert batch["name"] == f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__"


def test_unknown_names_show_in_the_trace() -> None:
    """With all names unknown no kernel but the collectives has one of a library."""
    names = {
        e["name"]
        for e in events_of(document(unknown_names=1.0), "kernel")
        if "Collective name" not in e["args"]
    }
    assert names
    assert not any("gemm" in name or "nvjet" in name or "at::" in name for name in names)
