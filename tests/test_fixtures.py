"""The fixtures can be remade, stay small, and say what they claim."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from generate import JOBS, build_all, straggler
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder

FIXTURES = Path(__file__).parents[1] / "fixtures"
MEGABYTE = 1_000_000
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME = ("cuda_runtime", "cuda_driver")

Event = dict[str, Any]


def data_files() -> list[Path]:
    return [
        path
        for path in FIXTURES.rglob("*")
        if path.is_file() and path.parent != FIXTURES and path.suffix not in (".py", ".pyc")
    ]


def of(builder: KinetoBuilder, *categories: str) -> list[Event]:
    return [event for event in builder.clock.events if event.get("cat") in categories]


def end(event: Event) -> int:
    ns: int = event["ts"] + event["dur"]
    return ns


def union_ns(events: Iterable[Event]) -> int:
    covered, reached = 0, 0
    for event in sorted(events, key=lambda event: int(event["ts"])):
        covered += max(0, end(event) - max(reached, event["ts"]))
        reached = max(reached, end(event))
    return covered


def exposed_collective_share(builder: KinetoBuilder) -> float:
    kernels = of(builder, "kernel")
    compute = [kernel for kernel in kernels if "nccl" not in kernel["name"]]
    window = max(map(end, kernels)) - of(builder, "user_annotation")[0]["ts"]
    return float((union_ns(kernels) - union_ns(compute)) / window)


@pytest.fixture(scope="module")
def made() -> dict[str, KinetoBuilder]:
    return dict(build_all())


def test_every_folder_is_documented_with_its_script() -> None:
    """A folder of traces is in the README's table beside a script that exists."""
    rows = re.findall(r"^\| `(\w+)/` \| `(\w+\.py)` \|", (FIXTURES / "README.md").read_text(), re.M)
    assert {path.parent.name for path in data_files()} == {folder for folder, _ in rows}
    assert all((FIXTURES / script).is_file() for _, script in rows)


def test_fixtures_stay_small() -> None:
    """No file reaches 1 MB, and all together stay under 3 MB."""
    sizes = [path.stat().st_size for path in data_files()]
    assert max(sizes) < MEGABYTE
    assert sum(sizes) < 3 * MEGABYTE


def test_generated_traces_are_those_in_the_folder(made: dict[str, KinetoBuilder]) -> None:
    """`generate.py` yields the text of every file; the compressor may differ by machine."""
    stored = {
        path.name: gzip.decompress(path.read_bytes()) for path in (FIXTURES / "gpu_like").iterdir()
    }
    assert {name: builder.json() for name, builder in made.items()} == stored


def test_written_files_hold_no_time_stamp(tmp_path: Path) -> None:
    """Two writes of one job are equal byte for byte."""
    first = JOBS["cuda_graph"]().write(tmp_path / "a.json.gz").read_bytes()
    assert first == JOBS["cuda_graph"]().write(tmp_path / "b.json.gz").read_bytes()


def test_work_never_overlaps_on_a_stream(made: dict[str, KinetoBuilder]) -> None:
    """On each stream of each job, work starts after the work before it."""
    for builder in made.values():
        streams = defaultdict(list)
        for event in of(builder, *DEVICE_WORK):
            streams[event["tid"]].append((event["ts"], end(event)))
        for spans in streams.values():
            assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))


def test_every_launch_precedes_its_work(made: dict[str, KinetoBuilder]) -> None:
    """Device work starts after the start of the call with its correlation."""
    for builder in made.values():
        calls = {event["args"]["correlation"]: event for event in of(builder, *RUNTIME)}
        for event in of(builder, *DEVICE_WORK):
            assert calls[event["args"]["correlation"]]["ts"] < event["ts"]


def test_work_may_be_placed_where_it_cannot_be() -> None:
    """`at_us` makes a kernel overlap the one before it."""
    b = KinetoBuilder()
    first = b.launch(GEMM, 100)
    assert b.launch(GEMM, 100, at_us=first.start_us + 50).start_us < first.end_us


def test_times_are_exact_decimals_of_the_base_time() -> None:
    """Each `ts` and `dur` is written with three digits and means whole nanoseconds."""
    b = KinetoBuilder(rank=1, world_size=2)
    b.launch(GEMM, 0.1 + 0.2)
    text = b.json().decode()
    times = re.findall(r'"(?:ts|dur)":([^,}]+)', text)
    assert all(re.fullmatch(r"\d+\.\d{3}", time) for time in times)
    assert "0.300" in times
    assert json.loads(text)["distributedInfo"]["rank"] == 1


def test_collective_waits_for_compute_and_compute_for_its_event() -> None:
    """A collective starts after queued compute; after `wait_event`, compute after it."""
    b = KinetoBuilder(world_size=2)
    gemm = b.launch(GEMM, 500)
    reduce = b.collective("allreduce", 1 << 20, 80)
    beside = b.launch(GEMM, 10)
    b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
    after = b.launch(GEMM, 10)
    assert (reduce.start_us, beside.start_us) == (gemm.end_us, gemm.end_us)
    assert after.start_us == reduce.end_us


def test_sync_blocks_the_host_until_the_device_is_drained() -> None:
    """After `sync` the host clock is at the end of the last kernel."""
    b = KinetoBuilder()
    span = b.launch(GEMM, 1000)
    assert b.now_us < span.start_us
    b.sync()
    assert b.now_us == span.end_us


def test_only_a_pageable_copy_blocks_the_host() -> None:
    """A pinned copy returns at once, a pageable one when it is done."""
    b = KinetoBuilder()
    assert b.copy("HtoD", 1 << 20, 100).end_us > b.now_us
    assert b.copy("HtoD", 1 << 20, 100, pageable=True).end_us == b.now_us


def test_a_full_queue_blocks_the_next_launch() -> None:
    """The 1025th launch ahead of the device waits until one kernel has ended."""
    b = KinetoBuilder()
    first = b.launch(GEMM, 100_000)
    for _ in range(1023):
        b.launch(GEMM, 1)
    assert b.now_us < first.end_us
    b.launch(GEMM, 1)
    assert b.now_us == first.end_us


def test_kernels_of_a_graph_share_their_launch() -> None:
    """A graph is one call, whose correlation all its kernels have."""
    b = KinetoBuilder()
    b.graph([(GEMM, 5), (GEMM, 6)])
    (call,) = of(b, *RUNTIME)
    assert {k["args"]["correlation"] for k in of(b, "kernel")} == {call["args"]["correlation"]}
    assert [k["args"]["graph node id"] for k in of(b, "kernel")] == [100, 101]


def test_a_launch_belongs_to_the_innermost_op() -> None:
    """Call and kernel carry the external id of the op around them."""
    b = KinetoBuilder()
    with b.op("aten::linear"), b.op("aten::addmm"):
        b.launch(GEMM, 10)
    inner = of(b, "cpu_op")[1]["args"]["External id"]
    assert [e["args"]["External id"] for e in of(b, "cuda_runtime", "kernel")] == [inner, inner]


def test_backward_ops_are_linked_to_forward_ops() -> None:
    """Ops of one sequence number are joined by a flow from the main to autograd's thread."""
    b = KinetoBuilder()
    b.op("aten::addmm", sequence=4)
    with b.backward_thread():
        b.op("autograd::engine::evaluate_function: AddmmBackward0", sequence=4)
    start, finish = of(b, "fwdbwd")
    assert (start["id"], start["tid"]) == (finish["id"], b.clock.pid)
    assert finish["tid"] != b.clock.pid


def test_annotations_are_projected_onto_streams_as_kineto_does() -> None:
    """A range's projection starts 1 ns before its first kernel and ends 2 ns after its last."""
    b = KinetoBuilder()
    with b.annotation("forward"):
        first, last = b.launch(GEMM, 10), b.launch(GEMM, 10)
    (projected,) = of(b, "gpu_user_annotation")
    assert projected["ts"] == round(first.start_us * 1000) - 1
    assert projected["ts"] + projected["dur"] == round(last.end_us * 1000) + 2


def test_ranks_of_the_straggler_leave_their_all_reduces_together() -> None:
    """Both ranks end each all-reduce at once, and only the early one waits in it."""
    waiting, late = (
        [kernel for kernel in of(rank, "kernel") if "nccl" in kernel["name"]]
        for rank in straggler()
    )
    assert [end(kernel) for kernel in waiting] == [end(kernel) for kernel in late]
    assert all(w["dur"] > 10 * k["dur"] for w, k in zip(waiting, late, strict=True))


def test_overlap_is_hidden_or_exposed_as_named() -> None:
    """Collectives hide where the job is called healthy, and nowhere else."""
    assert exposed_collective_share(JOBS["healthy_overlap"]()) < 0.02
    assert exposed_collective_share(JOBS["exposed_all_reduce"]()) > 0.5
    assert exposed_collective_share(JOBS["collective_on_compute_stream"]()) > 0.5


@pytest.mark.parametrize("rank", [0, 1])
def test_recorded_ranks_hold_three_steps_and_no_path(rank: int) -> None:
    """The recording knows its rank, three steps, and nothing of the machine's folders."""
    text = gzip.decompress((FIXTURES / f"ddp_cpu/rank{rank}.json.gz").read_bytes()).decode()
    trace = json.loads(text)
    names = [event["name"] for event in trace["traceEvents"]]
    assert (trace["distributedInfo"]["rank"], trace["host_name"]) == (rank, "host")
    assert sum(name.startswith("ProfilerStep#") for name in names) == 3
    assert not re.search(r"site-packages|/home/|/root/|/tmp/", text)
