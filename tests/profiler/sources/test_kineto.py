"""PyTorch's traces of every vendor and age, read as they were meant."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step

from perfdiag.profiler.sources import chrome_json
from perfdiag.profiler.sources.kineto import KinetoOptions, read_kineto
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT, Kind, Lane, Recording


def read(*events: Event, path: str = "trace.json", **top: Any) -> Recording:
    return read_kineto(document(*events, **top), path)


def kinds(recording: Recording) -> list[Kind]:
    return [Kind(kind) for kind in recording.slices.kind.tolist()]


def lane_of(recording: Recording, row: int) -> Lane:
    return recording.lanes[int(recording.slices.lane[row])]


def arg(recording: Recording, name: str) -> dict[int, Any]:
    column = recording.slices.args.get(name)
    return dict(zip(column.rows.tolist(), column.values.tolist(), strict=True)) if column else {}


def training(n: int = 3) -> KinetoBuilder:
    b = KinetoBuilder(rank=1, world_size=2, sync_events=True)
    for _ in range(n):
        with b.step():
            b.loader(50)
            for i in range(10):
                with b.op("aten::mm", 5, dims=[[4, 4], [4, 4]], sequence=i):
                    b.launch(GEMM, 20)
            b.collective("allreduce", 1 << 20, 80)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.copy("DtoH", 4, 2, pageable=True)
            b.sync()
    return b


# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("cpu_op", Kind.HOST_OP),
        ("Operator", Kind.HOST_OP),
        ("hpu_host_op", Kind.HOST_OP),
        ("user_annotation", Kind.ANNOTATION),
        ("python_function", Kind.PYTHON),
        ("cuda_runtime", Kind.RUNTIME),
        ("cuda_driver", Kind.RUNTIME),
        ("Runtime", Kind.RUNTIME),
        ("xpu_runtime", Kind.RUNTIME),
        ("xpu_driver", Kind.RUNTIME),
        ("mtia_runtime", Kind.RUNTIME),
        ("privateuse1_runtime", Kind.RUNTIME),
        ("privateuse1_driver", Kind.RUNTIME),
        ("kernel", Kind.KERNEL),
        ("Kernel", Kind.KERNEL),
        ("hpu_op", Kind.KERNEL),
        ("mtia_ccp_events", Kind.KERNEL),
        ("gpu_memcpy", Kind.COPY),
        ("Memcpy", Kind.COPY),
        ("gpu_memset", Kind.FILL),
        ("Memset", Kind.FILL),
        ("collective_comm", Kind.COLLECTIVE),
        ("cuda_sync", Kind.DEVICE_SYNC),
        ("xpu_sync", Kind.DEVICE_SYNC),
        ("gpu_user_annotation", Kind.DEVICE_ANNOTATION),
        ("overhead", Kind.OVERHEAD),
        ("Trace", Kind.OTHER),
        ("mtia_insight", Kind.OTHER),
    ],
)
def test_each_category_has_its_kind(category: str, kind: Kind) -> None:
    """Of CUDA, XPU, HPU, MTIA and third-party devices, today's names and those of 2021."""
    assert kinds(read(event(category, "x", 0, 1))) == [kind]


@pytest.mark.parametrize("category", [None, "", "something new", ["a list"]])
def test_an_unknown_category_is_what_its_lane_is(category: Any) -> None:
    """Among kernels it is device work, among operators an operator."""
    found = read(
        kernel(GEMM, 0, 5),
        host("aten::mm", 0, 5),
        event(category, "on device", 6, 5, pid=0, tid=7),
        event(category, "on host", 6, 5),
    )
    assert kinds(found)[2:] == [Kind.KERNEL, Kind.HOST_OP]


@pytest.mark.parametrize(
    ("pid", "names"),
    [
        (3, [("process_name", 3, 0, "python"), ("thread_name", 3, 9, "stream 9")]),
        ("GPU 3", []),
        ("xpu:3", []),
        (3, [("process_name", 3, 0, "NPU 3")]),
        (3, []),
    ],
)
def test_a_lane_without_known_events_is_known_by_its_names(
    pid: Any, names: list[tuple[str, Any, Any, str]]
) -> None:
    """By the process, by the thread, or by an ordinal that the header lists."""
    meta = [
        {"ph": "M", "name": key, "pid": p, "tid": t, "args": {"name": name}}
        for key, p, t, name in names
    ]
    devices = [{"id": 3, "name": "Device"}]
    found = read(*meta, event("new", "x", 0, 5, pid=pid, tid=9), deviceProperties=devices)
    assert kinds(found) == [Kind.KERNEL]
    assert (lane_of(found, 0).kind, lane_of(found, 0).stream) == ("stream", 9)


def test_a_thread_that_runs_operators_is_no_stream() -> None:
    """Whatever its name is, and though its process has the number of a device."""
    meta = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "stream 1"}}
    found = read(
        meta, host("aten::mm", 0, 5, pid=0), deviceProperties=[{"id": 0, "name": "NVIDIA H100"}]
    )
    assert lane_of(found, 0).kind == "thread"


# ---------------------------------------------------------------- lanes


def test_device_and_stream_come_from_the_arguments() -> None:
    """The first event of a lane says; without arguments its ids do."""
    found = read(
        event("kernel", "a", 0, 1, pid=4, tid="stream 9", args={"device": 2, "stream": 33}),
        event("kernel", "b", 0, 1, pid=4, tid="stream 11", args={}),
        event("kernel", "c", 0, 1, pid="GPU", tid=5, args={"device": 1, "Stream Id": 6}),
    )
    lanes = [lane_of(found, row) for row in range(3)]
    assert [(lane.device, lane.stream) for lane in lanes] == [(2, 33), (4, 11), (1, 6)]


@pytest.mark.parametrize(
    ("pid", "tid"),
    [
        (1, (1 << 32) + 5),
        ((1 << 31) + 1, (1 << 63) + 7),
        ("python", "thread 1"),
        (-1, -2),
        (1.5, None),
        ([1], {"a": 2}),
    ],
)
def test_ids_of_threads_may_be_anything(pid: Any, tid: Any) -> None:
    """Above 32 and 63 bits, text, or none: two of them are two lanes, one is one."""
    found = read(*(host("a", i, 1, pid=pid, tid=tid) for i in range(2)), host("b", 5, 1))
    assert found.slices.lane.tolist() == [0, 0, 1]


def test_threads_keep_the_names_they_were_given() -> None:
    """Or are called by their id."""
    meta = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "pt_autograd_0"}}
    found = read(host("a", 0, 1), host("b", 0, 1, tid=2), meta)
    assert [lane.name for lane in found.lanes] == ["thread 1", "pt_autograd_0"]


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("written", "correlation"),
    [
        (5, 5),
        ("5", 5),
        (0, 0),
        ((1 << 53) + 1, (1 << 53) + 1),
        ((1 << 63) - 1, (1 << 63) - 1),
        ((1 << 63) + 5, (1 << 63) + 5 - (1 << 64)),
        (str((1 << 63) + 5), (1 << 63) + 5 - (1 << 64)),
        (1 << 70, ABSENT),
        (None, ABSENT),
        ("none", ABSENT),
        ([5], ABSENT),
        ({"a": 5}, ABSENT),
        (float("1e300"), ABSENT),
    ],
)
def test_correlation_ids_are_exact(written: Any, correlation: int) -> None:
    """Numbers or text of up to 64 bits; what does not fit is no id."""
    args = {"device": 0, "stream": 7, "correlation": written}
    found = read(*(event("kernel", GEMM, i, 1, pid=0, tid=7, args=args) for i in range(2)))
    assert found.slices.correlation.tolist() == [correlation] * 2


def test_ids_that_differ_in_the_last_bit_stay_apart() -> None:
    """A reader with doubles would tie a kernel to the wrong launch."""
    a, b = (1 << 60) + 1, (1 << 60) + 2
    found = read(call(a, 0), call(b, 5), kernel(GEMM, 9, 1, correlation=b))
    assert found.slices.correlation.tolist() == [a, b, b]


def test_external_ids_have_two_spellings() -> None:
    """`External id` today, `external id` in older files."""
    found = read(
        event("cpu_op", "a", 0, 1, args={"External id": 7}),
        event("cpu_op", "b", 0, 1, args={"external id": 8}),
        event("cpu_op", "c", 0, 1),
    )
    assert found.slices.external_id.tolist() == [7, 8, ABSENT]


@pytest.mark.parametrize("args", [None, [1, 2], "text", 5, {}])
def test_arguments_that_are_no_object_hide_none_beside_them(args: Any) -> None:
    """One such event costs its own arguments only."""
    found = read(event("cuda_runtime", "a", 0, 1, args=args), call(7, 5))
    assert found.slices.correlation.tolist() == [ABSENT, 7]


def test_what_describes_a_collective_is_kept() -> None:
    """Elements (not bytes), type, group and order, on the kernel and on `record_param_comms`."""
    b = KinetoBuilder(world_size=8)
    b.collective("allreduce", 1 << 20, 300)
    found = read_kineto(b.json(), "trace.json")
    rows = [row for row in arg(found, "collective_name") if kinds(found)[row] != Kind.ANNOTATION]
    assert len(rows) == 2
    for row in rows:
        assert arg(found, "collective_name")[row] == "allreduce"
        assert arg(found, "in_elements")[row] == 1 << 20
        assert arg(found, "dtype")[row] == "BFloat16"
        assert (arg(found, "group_name")[row], arg(found, "group_size")[row]) == ("0", 8)
        assert arg(found, "collective_seq")[row] == 1


def test_sequence_numbers_and_copied_bytes_are_kept() -> None:
    """What ties backward to forward, and what a copy moved."""
    found = read(
        event("cpu_op", "a", 0, 1, args={"Sequence number": 12, "Fwd thread id": 1}),
        event("gpu_memcpy", "Memcpy HtoD", 0, 1, pid=0, tid=7, args={"bytes": "4096 bytes"}),
    )
    assert arg(found, "sequence_number") == {0: 12}
    assert arg(found, "fwd_thread") == {0: 1}
    assert arg(found, "bytes") == {1: 4096}


def test_original_arguments_are_kept_on_demand() -> None:
    """As they stand in the file, and not at all unless asked for."""
    data = b'[{"ph":"X","ts":0,"dur":1,"args":{"a": [1,  2]}},{"ph":"X","ts":1,"dur":1,"args":{}}]'
    kept = read_kineto(data, "trace.json", KinetoOptions(keep_args=True))
    assert kept.slices.raw_args == [b'{"a": [1,  2]}', None]
    assert read_kineto(data, "trace.json").slices.raw_args is None


# ---------------------------------------------------------------- times


def test_events_may_stand_out_of_order() -> None:
    """The order of the file is kept; nothing is lost by it."""
    found = read(host("c", 20, 5), host("a", 0, 50), host("b", 10, 5))
    assert found.slices.ts_ns.tolist() == [20_000, 0, 10_000]


def test_begin_end_pairs_instants_and_counters_are_there() -> None:
    """Other phases than `X` become slices, points and timelines."""
    side = {"name": "s", "pid": 1, "tid": 1, "cat": "cpu_op"}
    found = read(
        side | {"ph": "B", "ts": 5},
        side | {"ph": "E", "ts": 9},
        side | {"ph": "b", "ts": 6, "id": 1},
        side | {"ph": "e", "ts": 8, "id": 1},
        side | {"ph": "i", "ts": 7},
        {"ph": "C", "name": "memory", "pid": 0, "ts": 5, "args": {"bytes": 12}},
        host("x", 0, 20),
    )
    assert found.slices.dur_ns.tolist() == [20_000, 4000, 2000, 0]
    assert kinds(found)[1:] == [Kind.HOST_OP, Kind.HOST_OP, Kind.INSTANT]
    (counter,) = found.counters
    assert (counter.name, counter.device, counter.values.tolist()) == ("memory bytes", 0, [12.0])
    assert (found.events_read, found.events_skipped) == (7, 0)


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_the_unit_of_times_may_be_told(unit: str) -> None:
    """The same step in all three units."""
    scale = {"ns": 1_000_000, "us": 1_000, "ms": 1}[unit]
    options = KinetoOptions(unit)
    found = read_kineto(document(step(0, scale, 5 * scale)), "trace.json", options)
    assert (found.slices.ts_ns[0], found.slices.dur_ns[0]) == (1_000_000, 5_000_000)


def test_nanoseconds_since_1970_that_are_read_as_microseconds_are_refused_with_advice() -> None:
    """No clock shows the year 55000; the message says which option helps."""
    with pytest.raises(InputError, match="--time-unit ns"):
        read(step(0, 1_751_328_000_000_000_000, 5))


def test_a_time_range_keeps_what_lies_in_it() -> None:
    """Counted from the first event; what crosses its ends is left out."""
    options = KinetoOptions(time_range_ns=(10_000, 30_000))
    events = [host(f"{ts}", 1000 + ts, 10) for ts in (0, 5, 10, 20, 25)]
    found = read_kineto(document(*events), "trace.json", options)
    assert [found.strings[n] for n in found.slices.name] == ["10", "20"]


def test_a_document_without_usable_events_is_refused() -> None:
    """It is a trace, but there is nothing to analyse."""
    with pytest.raises(InputError, match="nothing to analyse"):
        read({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}})


# ---------------------------------------------------------------- pieces and damage


def same(a: Recording, b: Recording) -> bool:
    """Whether two recordings hold the same events."""

    def rows(r: Recording) -> list[Any]:
        texts = [r.strings[n] for n in r.slices.name], [r.strings[n] for n in r.slices.category]
        lanes = [r.lanes[n] for n in r.slices.lane.tolist()]
        s = r.slices
        columns = [c.tolist() for c in (s.ts_ns, s.dur_ns, s.kind, s.correlation, s.external_id)]
        return [*texts, lanes, *columns, {name: arg(r, name) for name in s.args}]

    return rows(a) == rows(b) and (a.events_read, a.metadata) == (b.events_read, b.metadata)


@pytest.mark.parametrize("size", [1, 500, 20_000])
def test_pieces_of_any_size_make_one_recording(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Lanes, names and arguments are numbered through, however the document is cut."""
    data = training().json()
    whole = read_kineto(data, "trace.json")
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", size)
    assert same(whole, read_kineto(data, "trace.json"))


NESTED = b"[" * 100_000 + b"]" * 100_000


def test_arguments_nested_too_deeply_cost_no_other_event() -> None:
    """What no reader can descend into is left out; everything beside it is read."""
    deep = b',{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"deep","args":{"a":%s}}]}' % NESTED
    data = document(host("a", 0, 5), host("b", 10, 5)).removesuffix(b"]}") + deep
    assert len(read_kineto(data, "trace.json").slices) == 2


def test_metadata_nested_too_deeply_cost_no_event() -> None:
    """A key beside the events that no reader can descend into does not hide them."""
    data = b'{"deep":%s,' % NESTED + document(host("a", 0, 5), host("b", 10, 5)).removeprefix(b"{")
    assert len(read_kineto(data, "trace.json").slices) == 2


def test_a_damaged_piece_sends_the_whole_document_to_salvage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All events but the damaged one are there once, also those of pieces already read."""
    data = training().json()
    whole = read_kineto(data, "trace.json")
    lines = data.split(b"\n")
    at = next(i for i, line in enumerate(lines) if i > 60 and b'"ph":"X","cat":"kernel"' in line)
    lines[at] = lines[at].replace(b'"ts":', b'"ts":]')
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", 2000)
    found = read_kineto(b"\n".join(lines), "trace.json")
    assert len(found.slices) == len(whole.slices) - 1
    assert found.events_read == whole.events_read
    assert {"event.skipped", "input.corrupt"} & {n.kind for n in found.notices}


def test_a_bare_list_is_a_trace() -> None:
    """Old versions of autograd's profiler wrote no object around the events."""
    events = [host("aten::mm", 0, 5), kernel(GEMM, 10, 5)]
    assert same(
        read_kineto(json.dumps(events).encode(), "trace.json"),
        read_kineto(document(*events), "trace.json"),
    )


# ---------------------------------------------------------------- header


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("trace_rank3.json", 3),
        ("rank-12.pt.trace.json.gz", 12),
        ("job/RANK_07.json", 7),
        ("archive.tar.gz!a/b/rank.5.json", 5),
        ("r2.json", 2),
        ("DeepSeek-R1_rank6.json", 6),
        ("mi300_8rank_resnet.json", None),
        ("frank3.json", None),
        ("rank3/trace.json", None),
        ("host_4242.1751328000.pt.trace.json", None),
    ],
)
def test_a_file_may_give_its_rank_in_its_name(path: str, rank: int | None) -> None:
    """Only where the header does not, and the reader is told either way."""
    found = read(host("a", 0, 1), path=path)
    assert found.rank == rank
    (notice,) = [n for n in found.notices if n.kind == "rank.missing"]
    assert ("inferred" in notice.message) == (rank is not None)


def test_the_header_is_believed_before_the_name() -> None:
    """`distributedInfo` says rank and world size."""
    info = {"backend": "nccl", "rank": 5, "world_size": 8}
    found = read(host("a", 0, 1), path="rank3.json", distributedInfo=info)
    assert (found.rank, found.world_size) == (5, 8)
    assert not found.notices


@pytest.mark.parametrize("as_text", [False, True])
def test_process_groups_are_a_list_or_its_text(as_text: bool) -> None:
    """On-demand traces hold `pg_config` as JSON text."""
    config: Any = [
        {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [0, 1]},
        {"pg_name": "7", "pg_desc": "tp", "pg_size": 4, "ranks": []},
    ]
    info = {"rank": 0, "world_size": 8, "pg_config": json.dumps(config) if as_text else config}
    groups = read(host("a", 0, 1), distributedInfo=info).groups
    assert [(g.name, g.description, g.size, g.ranks) for g in groups] == [
        ("0", "default_pg", 2, (0, 1)),
        ("7", "tp", 4, ()),
    ]


@pytest.mark.parametrize(
    "junk", [None, 5, "text", [1], {"rank": "x", "pg_config": "{"}, {"rank": []}]
)
def test_a_damaged_header_counts_as_missing(junk: Any) -> None:
    """Whatever stands where an object belongs."""
    found = read(host("a", 0, 1), distributedInfo=junk, deviceProperties=junk, host_name=junk)
    assert (found.rank, found.groups, found.devices) == (None, (), ())


def test_devices_are_named_with_their_vendor() -> None:
    """By the product name; by the runtime's version where ROCm writes no name."""
    properties = [
        {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85_028_372_480},
        {"id": 1, "name": ""},
    ]
    devices = read(host("a", 0, 1), deviceProperties=properties, hip_runtime_version=6).devices
    assert [(d.ordinal, d.vendor, d.sm_count, d.memory_bytes) for d in devices] == [
        (0, "nvidia", 132, 85_028_372_480),
        (1, "amd", 0, 0),
    ]


def test_the_base_time_anchors_the_clock() -> None:
    """Times count from `baseTimeNanoseconds`; a file without one has no anchor."""
    anchored = read(host("a", 5, 1), baseTimeNanoseconds=1_751_328_000_000_000_000).clock
    assert (anchored.unix_ns, anchored.quality) == (1_751_328_000_000_000_000, "exact")
    assert read(host("a", 5, 1)).clock.quality == "none"


def test_what_else_a_file_says_of_itself_is_kept() -> None:
    """Small values beside the events, as JSON text."""
    found = read(host("a", 0, 1), traceName="x.json", record_shapes=1, with_stack=True, big=[1])
    assert found.metadata == {"traceName": '"x.json"', "record_shapes": "1", "with_stack": "true"}


# ---------------------------------------------------------------- a recording by PyTorch itself


@pytest.mark.parametrize("rank", [0, 1])
def test_a_recording_by_pytorch_is_read_whole(rank: int) -> None:
    """Every complete event of the file is a slice with the times of the file."""
    path = Path(__file__).parents[3] / f"fixtures/ddp_cpu/rank{rank}.json.gz"
    data = gzip.decompress(path.read_bytes())
    complete = [e for e in json.loads(data)["traceEvents"] if e["ph"] == "X"]
    found = read_kineto(data, path.name)
    assert len(found.slices) - sum(k == Kind.INSTANT for k in kinds(found)) == len(complete)
    ns = np.array([round(e["ts"] * 1000) for e in complete])
    assert found.slices.ts_ns[: len(complete)].tolist() == ns.tolist()
    assert (found.rank, found.world_size, found.events_skipped) == (rank, 2, 0)
