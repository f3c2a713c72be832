"""Ids of slices in the complete trace, without writing it."""

from pathlib import Path

import numpy as np
import pytest
from generate import JOBS
from kineto_builder import GEMM, KinetoBuilder

from perfdiag.profiler.facts_in_trace import facts_in_trace
from perfdiag.profiler.opening import ReadOptions, find_structure, read_blob
from perfdiag.profiler.querying import open_trace
from perfdiag.profiler.slice_ids import slice_ids
from perfdiag.profiler.sources.files import expand
from perfdiag.trace_schemas.recording import Int64s, Kind, Recording

SHARED = Path(__file__).parents[2] / "../shared"
REAL = (
    "nvidia/h100_bert_small",
    "amd/mi300_vllm_hipgraph_decode",
    "nvidia/a100_cuda_sync_multi_stream",
    "nvidia/b200_eager",
)


def numbered(path: Path, every: int) -> tuple[Recording, Int64s, Int64s]:
    """A recording, rows of it, and what `slice_ids` says of them."""
    options = ReadOptions()
    recording = read_blob(next(iter(expand([str(path)]))), options, keep_args=True)
    recording, steps, regions = find_structure(recording, options)
    slices, meta = recording.slices, facts_in_trace(recording, steps, regions)
    shown = np.isin(slices.kind, (Kind.DEVICE_ANNOTATION, Kind.DEVICE_SYNC, Kind.INSTANT))
    rows = np.flatnonzero(~shown)[::every]
    bounds = (slices.ts_ns[rows], slices.end_ns[rows])
    return recording, rows, slice_ids(recording, meta, slices.lane[rows].astype(np.int64), bounds)


def check(path: Path, every: int = 1) -> None:
    """Each id leads to a slice with the same lane and times."""
    recording, rows, ids = numbered(path, every)
    with open_trace(str(path)) as session:
        table = session.query(
            "SELECT slice.id, ts, dur, lane_id FROM slice JOIN perfdiag_lane USING (track_id)"
        )
    columns = [table.ints(name).tolist() for name in ("ts", "dur", "lane_id")]
    known = dict(zip(table.ints("id").tolist(), zip(*columns, strict=True), strict=True))
    slices = recording.slices
    wanted = zip(
        slices.ts_ns[rows].tolist(),
        slices.dur_ns[rows].tolist(),
        slices.lane[rows].tolist(),
        strict=True,
    )
    assert [known[number] for number in ids.tolist()] == list(wanted)


@pytest.mark.parametrize("job", sorted(JOBS))
def test_ids_of_generated_jobs(job: str, tmp_path: Path) -> None:
    """Steps, collectives, graphs, several threads and streams."""
    check(JOBS[job]().write(tmp_path / "trace.json"))


def test_slices_that_start_together_and_cross(tmp_path: Path) -> None:
    """At one time the outer one comes first, and what crosses lies on a track of its own."""
    b = KinetoBuilder()
    with b.step():
        for _ in range(3):
            b.op("aten::mm", 5)
            b.launch(GEMM, 50)
    for event in [e for e in b.clock.events if e["name"] == "aten::mm"]:
        b.clock.events.append({**event, "name": "same", "dur": event["dur"] - 1000})
        crossing = {**event, "name": "crossing", "ts": event["ts"] + 2000}
        b.clock.events += [crossing, {**crossing, "name": "twin"}]
    check(b.write(tmp_path / "trace.json"))


@pytest.mark.parametrize("name", REAL)
def test_ids_in_real_traces(name: str) -> None:
    """Of several vendors, with stacks, crossing slices and graphs."""
    path = SHARED / f"traces/kineto/{name}.json.gz"
    if not path.exists():
        pytest.skip("the shared traces are not here")
    check(path, every=23)


def test_a_slice_that_is_not_there_has_none(tmp_path: Path) -> None:
    """A time at which nothing starts is no slice."""
    b = KinetoBuilder()
    with b.step():
        b.launch(GEMM, 50)
    recording, _, _ = numbered(b.write(tmp_path / "trace.json"), 1)
    nowhere = np.array([10**12])
    assert slice_ids(recording, [], np.array([0]), (nowhere, nowhere)).tolist() == [-1]
