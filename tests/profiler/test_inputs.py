"""What operators were called with."""

import json
from pathlib import Path

import numpy as np
import pytest
from kineto_builder import GEMM, KinetoBuilder
from plain_inputs import inputs_of, recording_with_inputs
from plain_model import model_of, recording_of

from perfdiag.profiler.convert import convert
from perfdiag.profiler.inputs import recorded_grids, recorded_inputs
from perfdiag.profiler.model import Model, Work, read_model
from perfdiag.profiler.opening import ReadOptions, open_model, read_blob
from perfdiag.profiler.sources.files import expand
from perfdiag.trace_schemas.recording import Recording

DIMS = "Input Dims"


def job() -> KinetoBuilder:
    """Nested operators, one without inputs, an annotation and a frame."""
    b = KinetoBuilder()
    with b.step():
        with b.op("aten::linear", 2, dims=[[8, 16], [4, 16], [4]]):
            b.op("aten::t", 1)
            with b.op("aten::addmm", 2, dims=[[4], [8, 16], [16, 4]]):
                b.launch(GEMM, 100)
        with b.backward_thread(), b.op("aten::mm", 2, dims=[[8, 4], [4, 16]]):
            b.launch(GEMM, 100)
        b.frame("a.py(3): f", 2)
        b.sync()
    return b


def dims(model: Model, inputs: dict[int, bytes]) -> dict[str, object]:
    """Sizes of the inputs, by operator."""
    names = model.hosts.name.take(np.array(list(inputs), np.int64))
    return {n: json.loads(text)[DIMS] for n, text in zip(names, inputs.values(), strict=True)}


EXPECTED = {
    "aten::linear": [[8, 16], [4, 16], [4]],
    "aten::addmm": [[4], [8, 16], [16, 4]],
    "aten::mm": [[8, 4], [4, 16]],
}


def test_every_operator_has_its_own() -> None:
    """Of all threads, whatever encloses it; those that recorded none have none."""
    assert dims(*inputs_of(job())) == EXPECTED


def test_the_engine_counts_otherwise(tmp_path: Path) -> None:
    """Ids of the engine's slices are its own, and the inputs still find their rows."""
    (blob,) = expand([str(job().write(tmp_path / "trace.json"))])
    recording = read_blob(blob, ReadOptions(), keep_args="inputs")
    with open_model(recording, ReadOptions()) as opened:
        model = read_model(opened.session)
        assert dims(model, recorded_inputs(opened.recording, model.hosts)) == EXPECTED


def test_the_text_is_that_of_the_trace() -> None:
    """All arguments are there, as they were written."""
    model, inputs = inputs_of(job())
    (row,) = (row for row in inputs if model.hosts.name.take(np.array([row])) == ["aten::mm"])
    assert json.loads(inputs[row])["Input type"] == ["c10::BFloat16"] * 2


def test_of_calls_alike_each_has_its_own() -> None:
    """The same operator with other sizes later has those."""
    b = KinetoBuilder()
    with b.step():
        for size in (8, 16, 32):
            b.op("aten::relu", 3, dims=[[size]])
        with b.op("aten::relu", 3, dims=[[64]]):
            b.launch(GEMM, 10)
    model, inputs = inputs_of(b)
    assert [json.loads(inputs[row])[DIMS] for row in sorted(inputs)] == [
        [[8]],
        [[16]],
        [[32]],
        [[64]],
    ]
    assert model.hosts.name.take(np.array(sorted(inputs))) == ["aten::relu"] * 4


def test_threads_at_the_same_time_are_told_apart() -> None:
    """Two operators that start and end together on two threads."""
    b = KinetoBuilder()
    with b.step():
        b.op("aten::mm", 5, dims=[[1, 2], [2, 3]])
        b.clock.now -= 5_000
        with b.backward_thread():
            b.op("aten::add", 5, dims=[[7], [7]])
        b.launch(GEMM, 10)
    assert dims(*inputs_of(b)) == {"aten::mm": [[1, 2], [2, 3]], "aten::add": [[7], [7]]}


def test_nothing_recorded_nothing_found() -> None:
    """A trace without shapes."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2):
        b.launch(GEMM, 100)
    assert inputs_of(b)[1] == {}


def test_arguments_that_were_not_kept() -> None:
    """The recording may have been read without them."""
    recording = recording_of(job())
    assert recording.slices.raw_args is None
    assert recorded_inputs(recording, model_of(recording, [], []).hosts) == {}


@pytest.mark.parametrize("extra", [0, 1])
def test_operators_that_start_and_end_together_have_inputs_each(extra: float) -> None:
    """In traces of whole microseconds an operator may last as long as the one that encloses it."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::linear", extra, dims=[[8, 16], [4, 16]]):  # noqa: SIM117
        with b.op("aten::mm", 0, dims=[[8, 16], [16, 4]]):
            b.launch(GEMM, 100)
    expected = {"aten::linear": [[8, 16], [4, 16]], "aten::mm": [[8, 16], [16, 4]]}
    assert dims(*inputs_of(b)) == expected


def test_recordings_say_what_they_keep() -> None:
    """Of other slices than operators with inputs, and kernels whose grid tells, nothing is kept."""
    raw = recording_with_inputs(job()).slices.raw_args
    assert raw is not None
    assert sum(text is not None for text in raw) == 3


PRODUCT = "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_TN_transOut_clmp_dynBatch_sm100f"


def experts() -> KinetoBuilder:
    """Two launches of a kernel whose grid tells, and one of another."""
    b = KinetoBuilder()
    with b.step(), b.op("vllm::moe_forward", 2, dims=[[8, 16], [8, 4]]):
        b.launch(PRODUCT, 100, args={"grid": [8, 342, 1]})
        b.launch(GEMM, 50, args={"grid": [3, 3, 1]})
        b.launch(PRODUCT, 100, args={"grid": [24, 342, 1]})
    return b


GRIDS = [(PRODUCT, (8, 342, 1)), (PRODUCT, (24, 342, 1))]


def grids(recording: Recording, work: Work) -> list[tuple[str, tuple[int, ...]]]:
    found = recorded_grids(recording, work)
    names = work.name.take(np.array(list(found), np.int64))
    return list(zip(names, found.values(), strict=True))


def test_grids_are_those_of_the_kernels_that_they_tell_of() -> None:
    """Each launch has its own; others have none."""
    recording = recording_with_inputs(experts())
    assert grids(recording, inputs_of(recording)[0].work) == GRIDS


@pytest.mark.parametrize("converted", [False, True])
def test_the_engine_has_the_same_grids(tmp_path: Path, converted: bool) -> None:
    """Read from the trace, or from what it was converted to."""
    path = experts().write(tmp_path / "trace.json")
    if converted:
        source, path = path, tmp_path / "trace.pftrace"
        convert(str(source), path)
    (blob,) = expand([str(path)])
    recording = read_blob(blob, ReadOptions(), keep_args="inputs")
    with open_model(recording, ReadOptions()) as opened:
        assert grids(recording, read_model(opened.session).work) == GRIDS


@pytest.mark.parametrize("grid", [None, "8 by 342", [8.5], {"x": 8}])
def test_damaged_grids_are_none(grid: object) -> None:
    """The kernel is there all the same."""
    b = KinetoBuilder()
    with b.step(), b.op("vllm::moe_forward", 2, dims=[[8, 16], [8, 4]]):
        b.launch(PRODUCT, 100)
    (kernel,) = (event for event in b.clock.events if event.get("cat") == "kernel")
    kernel["args"]["grid"] = grid
    recording = recording_with_inputs(b)
    assert recorded_grids(recording, inputs_of(recording)[0].work) == {}


def test_without_arguments_there_are_no_grids() -> None:
    """The recording may have been read without them."""
    recording = recording_of(experts())
    assert recorded_grids(recording, model_of(recording, [], []).work) == {}
