"""Regions partition their step, and cost what they make the device wait for."""

from collections import defaultdict

import pytest
from generate import JOBS
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_events import Event, call, document, event, host, kernel, step
from plain_model import recording_of

from perfdiag.profiler.regions import Region, find_regions
from perfdiag.profiler.steps import Step, find_steps


def found(trace: KinetoBuilder | bytes) -> tuple[list[Step], list[Region]]:
    recording = recording_of(trace)
    steps, _ = find_steps(recording)
    return steps, find_regions(recording, steps)


def of(regions: list[Region], kind: str, number: int = 0) -> list[tuple[str, float]]:
    """Names and lengths in microseconds of the regions of one kind in one step."""
    return [(r.name, r.dur_ns / 1000) for r in regions if (r.kind, r.step) == (kind, number)]


def names(regions: list[Region], kind: str, number: int = 0) -> list[str]:
    return [name for name, _ in of(regions, kind, number)]


def backward(b: KinetoBuilder, launches: int = 1) -> None:
    with b.backward_thread():
        for _ in range(launches):
            with b.op("autograd::engine::evaluate_function: MmBackward0", 5):
                b.launch(GEMM, 50)


def forward(b: KinetoBuilder, launches: int = 1) -> None:
    for _ in range(launches):
        with b.op("aten::mm", 5):
            b.launch(GEMM, 50)


def optimizer(b: KinetoBuilder) -> None:
    with b.annotation("Optimizer.step#SGD.step", 5):
        b.launch("multi_tensor_apply_kernel", 20)


# ---------------------------------------------------------------- what holds for all


@pytest.mark.parametrize("job", sorted(JOBS))
def test_regions_of_one_kind_partition_their_step(job: str) -> None:
    """Each begins where the one before ends, the first with the step and the last with its end."""
    steps, regions = found(JOBS[job]())
    by_kind = defaultdict(list)
    for region in regions:
        by_kind[(region.kind, region.step)].append(region)
    assert {kind for kind, _ in by_kind} >= {"phase"}
    for (_, number), parts in by_kind.items():
        ends = [part.ts_ns + part.dur_ns for part in parts]
        assert [part.ts_ns for part in parts] == [steps[number].ts_ns, *ends[:-1]]
        assert ends[-1] == steps[number].end_ns
        assert all(part.dur_ns >= 0 for part in parts)


def test_a_trace_without_events_of_the_host_has_no_regions() -> None:
    """A device alone says nothing of phases."""
    assert found(document(kernel(GEMM, 0, 10)))[1] == []


def test_without_steps_there_are_no_regions() -> None:
    """Regions are parts of steps."""
    assert find_regions(recording_of(document(step(0, 0, 10), host("aten::mm", 1, 2))), []) == []


# ---------------------------------------------------------------- phases


def test_phases_of_a_training_step_come_in_order() -> None:
    """Loader, forward, backward with a hidden all-reduce, optimizer: each in its place."""
    b = KinetoBuilder(world_size=2)
    for _ in range(2):
        with b.step():
            b.loader(100)
            forward(b, 3)
            backward(b, 3)
            b.collective("allreduce", 1 << 20, 80)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            optimizer(b)
    _, regions = found(b)
    for number in range(2):
        phases = [name for name in names(regions, "phase", number) if name != "other"]
        assert phases == ["data", "forward", "backward", "optimizer"]


def test_a_phase_costs_from_completion_to_completion() -> None:
    """Forward launches 100 us, backward 200 us, long after the host has left both."""
    _, regions = found(
        document(
            step(0, 0, 100),
            host("aten::mm", 10, 5),
            call(1, 11),
            host("autograd::engine::evaluate_function: MmBackward0", 30, 5, tid=2),
            call(2, 31),
            kernel(GEMM, 20, 100, correlation=1),
            kernel(GEMM, 120, 200, correlation=2),
        )
    )
    assert of(regions, "phase") == [("other", 10), ("forward", 110), ("backward", 200)]


def test_a_phase_that_hides_behind_device_work_has_an_empty_window() -> None:
    """The loader runs for 400 us while the device works off the step before."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.loader(400)
            for _ in range(10):
                with b.op("aten::mm", 5):
                    b.launch(GEMM, 500)
            backward(b)
    _, regions = found(b)
    assert dict(of(regions, "phase", 0))["data"] == 400
    assert dict(of(regions, "phase", 1))["data"] == 0


def test_accumulating_gradients_alternates_forward_and_backward() -> None:
    """Three micro-batches in a step are three of each, not one backward around two forwards."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            for _ in range(3):
                forward(b, 2)
                backward(b, 2)
            optimizer(b)
    _, regions = found(b)
    assert names(regions, "phase", 1) == [*["forward", "backward"] * 3, "optimizer"]


def test_a_loop_without_an_optimizer_has_its_phases_in_every_step() -> None:
    """Forward and backward alone, as in a benchmark: step 1 is not one backward from step 0."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            forward(b)
            backward(b, 2)
    _, regions = found(b)
    assert [names(regions, "phase", n) for n in range(3)] == [["forward", "backward"]] * 3


def test_steps_that_only_name_their_optimizer_all_have_one() -> None:
    """Optimizers of two steps with nothing named between them stay two."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 50)
            b.op("aten::mul", 5)
            optimizer(b)
    _, regions = found(b)
    assert [names(regions, "phase", n)[-1] for n in range(3)] == ["optimizer"] * 3


def test_operators_of_other_threads_do_not_cut_a_phase() -> None:
    """A thread that pins memory runs operators between those of backward."""
    evaluate = "autograd::engine::evaluate_function: MmBackward0"
    _, regions = found(
        document(
            step(0, 0, 100),
            host("aten::mm", 5, 5),
            *(host(evaluate, 20 + 10 * i, 5, tid=2) for i in range(5)),
            *(host("aten::pin_memory", 26 + 10 * i, 2, tid=3) for i in range(5)),
            event("user_annotation", "Optimizer.step#SGD.step", 80, 5),
        )
    )
    assert names(regions, "phase") == ["other", "forward", "backward", "optimizer"]


def test_backward_on_the_issuing_thread_is_backward() -> None:
    """Without a device autograd runs where it is called; its operators are inside its ranges."""
    evaluate = "autograd::engine::evaluate_function: MmBackward0"
    inside = [
        part
        for i in range(4)
        for part in (host(evaluate, 20 + i * 10, 8), host("aten::mm", 21 + i * 10, 5))
    ]
    _, regions = found(document(step(0, 0, 100), host("aten::mm", 5, 10), *inside))
    assert names(regions, "phase") == ["other", "forward", "backward"]


def test_a_step_that_is_written_as_an_operator_is_no_part_of_forward() -> None:
    """Old traces have steps of category `cpu_op`: forward begins with the first true operator."""
    evaluate = "autograd::engine::evaluate_function: MmBackward0"
    ops = [host("ProfilerStep#0", 0, 100), host("aten::mm", 10, 5), host(evaluate, 30, 5, tid=2)]
    assert of(found(document(*ops))[1], "phase") == [
        ("other", 10),
        ("forward", 20),
        ("backward", 70),
    ]


def replayed(b: KinetoBuilder) -> None:
    with b.annotation("Optimizer.zero_grad#SGD.zero_grad", 5):
        b.launch("fill", 20)
    b.graph([(GEMM, 50), (GEMM, 50)])


def test_a_graph_after_zero_grad_is_the_forward_pass_of_the_backward_that_follows() -> None:
    """A replay runs no operator, and the optimizer ends with its range."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            replayed(b)
            backward(b)
            optimizer(b)
    assert names(found(b)[1], "phase", 1) == ["optimizer", "forward", "backward", "optimizer"]


def test_a_graph_of_a_whole_step_is_no_phase() -> None:
    """Nothing tells forward from backward in it; the gradients' zeroing is still the optimizer."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            replayed(b)
    assert names(found(b)[1], "phase", 1) == ["optimizer", "other"]


def test_replays_alone_make_no_phases() -> None:
    """Where no range is named and no operator recorded, nothing is known of phases."""
    b = KinetoBuilder()
    with b.step():
        b.graph([(GEMM, 50)])
    assert names(found(b)[1], "phase") == []


def test_replays_inside_an_operator_do_not_cut_a_phase() -> None:
    """The operator around a range of backward replays a graph after it: still backward."""
    evaluate = "autograd::engine::evaluate_function: MmBackward0"
    _, regions = found(
        document(
            step(0, 0, 100),
            host("aten::mm", 5, 5),
            host("my::backward_of_all", 18, 50),
            host(evaluate, 20, 10),
            call(1, 32, name="cudaGraphLaunch"),
            host(evaluate, 40, 10),
            kernel(GEMM, 60, 10, correlation=1),
        )
    )
    assert names(regions, "phase") == ["other", "forward", "backward"]


def test_what_follows_backward_before_the_optimizer_is_other() -> None:
    """Clipping gradients is neither."""
    b = KinetoBuilder()
    with b.step():
        forward(b)
        backward(b)
        with b.op("aten::clip_grad_norm_", 5):
            b.launch("clip", 30)
        optimizer(b)
    assert names(found(b)[1], "phase") == ["forward", "backward", "other", "optimizer"]


def test_inference_has_no_forward_of_its_own() -> None:
    """Operators that no backward follows are not told apart."""
    b = KinetoBuilder()
    with b.step():
        forward(b, 3)
    assert names(found(b)[1], "phase") == ["other"]


# ---------------------------------------------------------------- annotations


def test_the_outermost_annotations_divide_a_step() -> None:
    """Ranges inside others give way, the framework's own do not count, gaps are `other`."""
    b = KinetoBuilder()
    with b.step():
        b.idle(10)
        with b.annotation("encode"), b.annotation("attention"):
            b.launch(GEMM, 100)
        b.idle(10)
        with b.annotation("nccl:all_reduce"):
            b.launch(GEMM, 100)
        with b.annotation("decode"):
            b.launch(GEMM, 100)
    assert names(found(b)[1], "annotation") == ["other", "encode", "other", "decode"]


def test_an_annotation_around_many_steps_hides_none_inside() -> None:
    """`epoch` around all steps says nothing about any; `encode` in each does."""
    b = KinetoBuilder()
    with b.annotation("epoch"):
        for _ in range(3):
            with b.step(), b.annotation("encode"):
                b.launch(GEMM, 100)
    _, regions = found(b)
    assert [names(regions, "annotation", n)[0] for n in range(3)] == ["encode"] * 3


def test_annotations_cost_what_they_launched() -> None:
    """A range's window ends with the last kernel launched in it."""
    events: list[Event] = [
        event("user_annotation", "a", 10, 10),
        call(1, 11),
        event("user_annotation", "b", 20, 10),
        call(2, 21),
    ]
    kernels = [kernel(GEMM, 20, 50, correlation=1), kernel(GEMM, 70, 50, correlation=2)]
    _, regions = found(document(step(0, 0, 200), *events, *kernels))
    assert of(regions, "annotation") == [("other", 10), ("a", 60), ("b", 50), ("other", 80)]


# ---------------------------------------------------------------- modules


def modules(b: KinetoBuilder, layers: int) -> None:
    with b.frame("nn.Module: Net_0"):
        for layer in range(layers):
            with b.frame(f"nn.Module: Block_{layer}"), b.op("aten::mm", 5):
                b.launch(GEMM, 100)


def test_modules_are_named_by_their_path() -> None:
    """The level below the model, where it holds most of the model's time."""
    b = KinetoBuilder()
    with b.step():
        modules(b, 3)
    regions = [(n, us) for n, us in of(found(b)[1], "module") if n != "other"]
    assert [name for name, _ in regions] == [f"Net_0.Block_{i}" for i in range(3)]
    assert [us for _, us in regions[1:]] == [100, 100]


def test_a_step_is_not_cut_into_hundreds_of_modules() -> None:
    """With 100 layers the level above is shown."""
    b = KinetoBuilder()
    with b.step():
        modules(b, 100)
    assert "Net_0" in names(found(b)[1], "module")


def test_python_frames_that_are_no_modules_divide_nothing() -> None:
    """A trace with stacks but without modules has no regions of that kind."""
    b = KinetoBuilder()
    with b.step(), b.frame("train.py(12): main"):
        b.launch(GEMM, 10)
    assert names(found(b)[1], "module") == []


def test_backward_belongs_to_the_module_of_its_operator() -> None:
    """A node of autograd bears its operator's number: its time is the module's too."""
    b = KinetoBuilder()
    with b.step():
        with b.frame("nn.Module: Net_0"):
            for layer in range(2):
                with b.frame(f"nn.Module: Block_{layer}"), b.op("aten::mm", 5, sequence=layer):
                    b.launch(GEMM, 100)
        with b.backward_thread():
            for layer in (1, 0):
                node = "autograd::engine::evaluate_function: MmBackward0"
                with b.op(node, 5, sequence=layer):
                    b.launch(GEMM, 200)
        b.sync()
    regions = [(n, us) for n, us in of(found(b)[1], "module") if us and n != "other"]
    assert [name.removeprefix("Net_0.") for name, _ in regions] == [
        "Block_0",
        "Block_1",
        "Block_0",
    ]
    assert [us for _, us in regions[1:]] == [300, 200]
