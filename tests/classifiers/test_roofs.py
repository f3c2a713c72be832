"""The kernels of a rank under the roofs of its device, as the report has them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_inputs import priced_facts, recording_with_inputs

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.rank_utilisation import utilise
from perfdiag.classifiers.reading import read_one
from perfdiag.classifiers.roofs import MOST_KERNELS, MOST_UNCOVERED, roofline_row
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.profiler.opening import ReadOptions
from perfdiag.profiler.sources.files import expand
from perfdiag.trace_schemas.devices import DevicePeaks, Peak, Source, find_device
from perfdiag.trace_schemas.report import Kernel, Roofline

SIZE = 1024
FLOPS = 2 * SIZE**3
BYTES = 3 * SIZE**2 * 2
MM = [[SIZE, SIZE], [SIZE, SIZE]]

HERE = Source("by hand", "", "2026-11")
DEVICE = DevicePeaks(
    "Device",
    "nvidia",
    "GPU",
    matrix={"bf16": Peak(100e12, 80e12, HERE, HERE)},
    memory=Peak(2e12, 1.6e12, HERE, HERE),
)


def product(b: KinetoBuilder, dur_us: float, kernel: str = GEMM) -> None:
    """2.1 GFLOP and 6.3 MB."""
    with b.op("aten::mm", 2, dims=MM):
        b.launch(kernel, dur_us)


def total(b: KinetoBuilder, dur_us: float, elements: int = 1 << 20) -> None:
    """A sum of two vectors: 6 bytes an element."""
    with b.op("aten::add", 2, dims=[[elements], [elements]]):
        b.launch(ELEMENTWISE, dur_us)


def row_of(facts: RankFacts) -> Roofline | None:
    return roofline_row(facts, utilise(facts))


def drawn(b: KinetoBuilder, peaks: DevicePeaks | None = DEVICE) -> Roofline:
    roofline = row_of(priced_facts(b, peaks))
    assert roofline is not None
    return roofline


def one_step(*lengths_us: float) -> KinetoBuilder:
    b = KinetoBuilder()
    with b.step():
        for length in lengths_us:
            product(b, length)
        b.sync()
    return b


def kernel_of(b: KinetoBuilder) -> Kernel:
    (kernel,) = drawn(b).kernels
    return kernel


def test_a_kernel_by_hand() -> None:
    """100 us of 2.1 GFLOP and 6.3 MB: 21.5 TFLOP/s of 80, 62.9 GB/s of 1,600."""
    kernel = kernel_of(one_step(100))
    assert (kernel.name, kernel.op, kernel.dtype) == (GEMM, "aten::mm", "bf16")
    assert (kernel.count, kernel.dur_ns) == (1, 100_000)
    assert (kernel.flops, kernel.bytes) == (FLOPS, BYTES)
    assert kernel.intensity == pytest.approx(FLOPS / BYTES)
    assert kernel.flops_per_s == pytest.approx(FLOPS / 100e-6)
    assert kernel.bytes_per_s == pytest.approx(BYTES / 100e-6)
    assert kernel.compute_share == pytest.approx(FLOPS / 100e-6 / 80e12)
    assert kernel.memory_share == pytest.approx(BYTES / 100e-6 / 1.6e12)
    assert (kernel.bound, kernel.at_datasheet) == ("compute", "compute")


def test_kernels_alike_are_one() -> None:
    """Rates are those of all together, shares are means over their time."""
    kernel = kernel_of(one_step(100, 300))
    assert (kernel.count, kernel.dur_ns, kernel.flops) == (2, 400_000, 2 * FLOPS)
    assert kernel.flops_per_s == pytest.approx(2 * FLOPS / 400e-6)
    assert kernel.compute_share == pytest.approx(2 * FLOPS / 400e-6 / 80e12)


def test_the_longest_kernels_come_first() -> None:
    """By name and operator, whatever order they ran in."""
    b = KinetoBuilder()
    with b.step():
        total(b, 50)
        product(b, 100)
        product(b, 400, "another_gemm")
        b.sync()
    kernels = drawn(b).kernels
    assert [(k.name, k.dur_ns) for k in kernels] == [
        ("another_gemm", 400_000),
        (GEMM, 100_000),
        (ELEMENTWISE, 50_000),
    ]


def test_not_every_kernel_is_listed() -> None:
    """The shortest are left out of the list, and counted in the shares."""
    b = KinetoBuilder()
    with b.step():
        for at in range(MOST_KERNELS + 5):
            product(b, 50 + at, f"gemm_{at}")
        b.sync()
    roofline = drawn(b)
    assert [k.dur_ns for k in roofline.kernels] == [
        1000 * (50 + at) for at in range(MOST_KERNELS + 4, 4, -1)
    ]
    assert roofline.covered == 1
    assert sum(roofline.bound.values()) == pytest.approx(1)


def test_the_roofs_are_those_of_the_types_that_occur() -> None:
    """As they were measured on an H100, and its memory's."""
    roofline = drawn(one_step(100), None)
    assert (roofline.device, roofline.basis) == ("NVIDIA H100 SXM", "achievable")
    assert roofline.peak_flops_per_s == pytest.approx({"bf16": 794.5e12})
    assert roofline.peak_bytes_per_s == pytest.approx(2903e9)


def test_utilisation_by_hand() -> None:
    """Two steps of two products each, over both windows, on the data sheet's 100 TFLOP/s."""
    b = KinetoBuilder()
    begin = b.now_us
    for _ in range(2):
        with b.step():
            product(b, 100)
            b.idle(500)
            product(b, 200)
            b.sync()
    roofline = drawn(b)
    expected = 4 * FLOPS / (100e12 * (b.now_us - begin) / 1e6)
    assert roofline.hfu == pytest.approx(expected, rel=1e-3)
    assert roofline.mfu == roofline.hfu
    assert (roofline.mfu_dtype, roofline.mfu_peak_flops_per_s) == ("bf16", 100e12)


def test_each_step_has_its_utilisation() -> None:
    """A step of the same work that takes longer uses less of the device."""
    b = KinetoBuilder()
    for idle_us in (100, 900):
        with b.step():
            product(b, 100)
            b.idle(idle_us)
            b.sync()
    first, second = judge_rank(priced_facts(b, DEVICE)).steps
    assert first.mfu == first.hfu == pytest.approx(FLOPS / (100e12 * first.dur_ns / 1e9))
    assert second.mfu == second.hfu == pytest.approx(FLOPS / (100e12 * second.dur_ns / 1e9))
    assert second.dur_ns > 3 * first.dur_ns


def test_a_step_above_the_peak_has_no_utilisation() -> None:
    """The other keeps its own."""
    b = KinetoBuilder()
    for length in (1, 500):
        with b.step():
            product(b, length)
            b.sync()
    first, second = judge_rank(priced_facts(b, DEVICE)).steps
    assert (first.mfu, first.hfu) == (None, None)
    assert second.mfu
    assert second.hfu


@settings(max_examples=25, deadline=None)
@given(idle_us=st.lists(st.integers(50, 5000), min_size=1, max_size=5))
def test_steps_add_up_to_the_rank(idle_us: list[int]) -> None:
    """What each step uses, weighted by its length, is what the rank uses."""
    b = KinetoBuilder()
    for length in idle_us:
        with b.step():
            product(b, 100)
            b.idle(length)
            b.sync()
    facts = priced_facts(b, DEVICE)
    steps, used = judge_rank(facts).steps, utilise(facts)
    assert used.mfu is not None
    whole = sum(step.dur_ns for step in steps)
    assert sum((step.mfu or 0) * step.dur_ns for step in steps) == pytest.approx(used.mfu * whole)


def test_utilisation_above_everything_is_not_reported() -> None:
    """A product of 2.1 GFLOP in a step of 9 us would be twice the peak."""
    roofline = drawn(one_step(1))
    assert [kernel.bound for kernel in roofline.kernels] == ["above peak"]
    assert not roofline.hfu
    assert not roofline.mfu


NODE = "autograd::engine::evaluate_function: "


def checkpointed() -> KinetoBuilder:
    """Forward, then backward in which the forward product runs again before the two of its own."""
    b = KinetoBuilder()
    outer, inner = "CheckpointFunctionBackward", "MmBackward0"
    with b.step():
        product(b, 100)
        with b.op(NODE + outer, 2), b.op(outer, 2):
            product(b, 100)
            with b.op(NODE + inner, 2), b.op(inner, 2):
                product(b, 100)
                product(b, 100)
        b.sync()
    return b


def layer(b: KinetoBuilder) -> None:
    """Operators that only forward has."""
    with b.op("aten::addmm", 2, dims=[[SIZE], *MM]):
        b.launch(GEMM, 100)
    with b.op("aten::gelu", 2, dims=[[8]]):
        b.launch("gelu_kernel", 1)


def recomputing() -> KinetoBuilder:
    """The same without a node of its own: hooks of the first node run forward again."""
    b = KinetoBuilder()
    with b.step():
        layer(b)
        with b.op(f"{NODE}MmBackward0", 2):
            layer(b)
            product(b, 100)
            product(b, 100)
        b.sync()
    return b


@pytest.mark.parametrize("job", [checkpointed, recomputing])
def test_recomputation_is_in_hfu_and_not_in_mfu(job: Callable[[], KinetoBuilder]) -> None:
    """Of four products one is computed again; the backward pass that follows it is not."""
    roofline = drawn(job())
    assert roofline.mfu is not None
    assert roofline.hfu is not None
    assert roofline.mfu / roofline.hfu == pytest.approx(3 / 4, rel=1e-4)


def test_recomputation_does_not_change_how_near_the_roofs_kernels_are() -> None:
    """They have computed, whatever for."""
    assert kernel_of(checkpointed()).count == 4


def test_the_type_of_most_arithmetic_is_the_denominator() -> None:
    """A small product in FP32 has no say."""
    b = KinetoBuilder()
    with b.step():
        product(b, 100)
        args = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
        with b.op("aten::mm", 2, args=args):
            b.launch("sgemm", 100)
        b.sync()
    roofline = drawn(b, None)
    assert roofline.mfu_dtype == "bf16"
    assert set(roofline.peak_flops_per_s) == {"bf16", "fp32"}


def test_no_utilisation_without_a_roof_in_the_type() -> None:
    """Whole numbers have no peak here."""
    b = KinetoBuilder()
    with (
        b.step(),
        b.op("aten::add", 2, args={"Input Dims": [[99]] * 2, "Input type": ["long"] * 2}),
    ):
        b.launch(ELEMENTWISE, 10)
    roofline = drawn(b)
    assert (roofline.mfu, roofline.hfu, roofline.mfu_dtype) == (None, None, "")
    assert roofline.mfu_peak_flops_per_s is None
    assert no_peak(b) == []


def no_peak(b: KinetoBuilder, peaks: DevicePeaks | None = DEVICE) -> list[str]:
    """What is said of peaks that are not in the table of devices."""
    notices = judge_rank(priced_facts(b, peaks)).notices
    return [notice.message for notice in notices if notice.kind == "mfu.no_peak"]


@pytest.mark.parametrize(("dtype", "said"), [("c10::BFloat16", []), ("double", ["fp64"])])
def test_the_type_without_a_peak_is_named(dtype: str, said: list[str]) -> None:
    """The table knows this device in BF16 alone."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2, args={"Input Dims": MM, "Input type": [dtype] * 2}):
        b.launch(GEMM, 100)
    assert no_peak(b) == [
        f"No peak of Device in {d} is known: no utilisation is given." for d in said
    ]


@pytest.mark.parametrize("dims", [None, [[8], [8]]])
def test_where_nothing_is_computed_no_peak_is_missed(dims: list[list[int]] | None) -> None:
    """Traces without shapes, and those that only move whole numbers."""
    b = KinetoBuilder()
    args = {"Input Dims": dims, "Input type": ["long"] * 2} if dims else {}
    with b.step(), b.op("aten::copy_", 2, args=args):
        b.launch(ELEMENTWISE, 10)
    assert no_peak(b) == []


def test_what_is_not_covered_is_named() -> None:
    """By the operator, the longest first; whether or not it recorded what it was called with."""
    b = KinetoBuilder()
    with b.step():
        product(b, 100)
        with b.op("quiet::op", 2):
            b.launch("other_kernel", 25)
        with b.op("mine::op", 2, dims=[[8]]):
            b.launch("some_kernel", 125)
        b.sync()
    roofline = drawn(b)
    assert roofline.covered == pytest.approx(0.4)
    assert roofline.uncovered == ["mine::op", "quiet::op"]
    assert roofline.unlinked == 0
    assert roofline.bound == pytest.approx({"compute": 0.4, "unknown": 0.6})


def test_kernels_of_no_operator_are_apart() -> None:
    """No model could price them: they are in all shares by bound, and not in what is covered."""
    b = KinetoBuilder()
    with b.step():
        product(b, 100)
        with b.op("mine::op", 2, dims=[[8]]):
            b.launch("some_kernel", 100)
        b.launch("nobodys_kernel", 50)
        b.sync()
    roofline = drawn(b)
    assert roofline.unlinked == pytest.approx(0.2)
    assert roofline.covered == pytest.approx(0.5)
    assert roofline.uncovered == ["mine::op"]
    assert roofline.bound == pytest.approx({"compute": 0.4, "unknown": 0.6})


def test_kernels_that_were_launched_before_the_trace_are_of_no_operator() -> None:
    """The device still works on what was queued, and the call is not recorded."""
    b = KinetoBuilder()
    with b.step():
        product(b, 300)
        product(b, 100)
        b.sync()
    first = next(e["args"]["correlation"] for e in b.clock.events if e.get("cat") == "cuda_runtime")
    b.clock.events[:] = [
        e
        for e in b.clock.events
        if e.get("cat") != "cuda_runtime" or e["args"].get("correlation") != first
    ]
    roofline = drawn(b)
    assert roofline.unlinked == pytest.approx(0.75)
    assert (roofline.covered, roofline.uncovered) == (1.0, [])


def test_few_of_the_uncovered_are_named() -> None:
    """Those that take longest."""
    b = KinetoBuilder()
    with b.step():
        product(b, 100)
        for at in range(MOST_UNCOVERED + 3):
            with b.op(f"mine::op_{at:02}", 2):
                b.launch("kernel", 10 + at)
        b.sync()
    names = [f"mine::op_{at:02}" for at in range(MOST_UNCOVERED + 2, 2, -1)]
    assert drawn(b).uncovered == names


def test_only_steps_count() -> None:
    """What runs before the first step is in no figure."""
    b = KinetoBuilder()
    product(b, 700)
    b.sync()
    b.idle(50)
    for _ in range(2):
        with b.step():
            product(b, 100)
            b.sync()
    assert kernel_of(b).count == 2


def test_copies_and_collectives_are_no_kernels() -> None:
    """They neither count as covered nor as not."""
    b = KinetoBuilder(world_size=2)
    with b.step():
        product(b, 100)
        b.copy("HtoD", 1 << 20, 500)
        b.collective("allreduce", 1 << 20, 500)
        b.sync()
    roofline = drawn(b)
    assert roofline.covered == 1
    assert roofline.uncovered == []


def test_unknown_devices_have_no_roofline() -> None:
    """And a notice says so."""
    recording = recording_with_inputs(one_step(100))
    unknown = [replace(device, name="Some Accelerator") for device in recording.devices]
    facts = priced_facts(replace(recording, devices=tuple(unknown)))
    assert (facts.roofline, facts.costs, row_of(facts)) == (None, None, None)
    assert [n.severity for n in facts.notices if n.kind == "peak.unknown"] == ["info"]


def test_a_slice_of_a_device_is_not_that_device() -> None:
    """It bears the name of the whole and has a part of its roofs."""
    recording = recording_with_inputs(one_step(100))
    part = [replace(device, sm_count=60) for device in recording.devices]
    facts = priced_facts(replace(recording, devices=tuple(part)))
    assert facts.roofline is None
    assert "peak.unknown" in {notice.kind for notice in facts.notices}


def test_the_user_may_say_which_device_it_is() -> None:
    """Then nothing is looked up, and there is nothing to notice."""
    recording = replace(recording_with_inputs(one_step(100)), devices=())
    facts = priced_facts(recording, find_device("NVIDIA A100-SXM4-80GB"))
    roofline = row_of(facts)
    assert roofline is not None
    assert "A100" in roofline.device
    assert "peak.unknown" not in {notice.kind for notice in facts.notices}


def test_traces_without_inputs_are_not_about_rooflines() -> None:
    """No roofline, and no notice of a device that nobody asks for."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2):
        b.launch(GEMM, 100)
    facts = priced_facts(replace(recording_with_inputs(b), devices=()))
    assert row_of(facts) is None
    assert "peak.unknown" not in {notice.kind for notice in facts.notices}


def test_costs_decide_what_budgets_say() -> None:
    """A product with a vector is memory-bound, whatever the name of its kernel says."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2, dims=[[1, 8192], [8192, 8192]]):
        b.launch(GEMM, 100)
    assert kernel_of(b).bound == "memory"
    budget = judge_rank(priced_facts(b, DEVICE)).budget_ns
    assert (budget["memory_kernel"], budget.get("compute_kernel", 0)) == (100_000, 0)


def test_names_decide_where_costs_are_not_known() -> None:
    """The same kernel of an operator without recorded inputs."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2):
        b.launch(GEMM, 100)
    budget = judge_rank(priced_facts(b, DEVICE)).budget_ns
    assert budget["compute_kernel"] == 100_000


def test_the_engine_gives_the_same(tmp_path: Path) -> None:
    """The way that `perfdiag analyze` goes."""
    b = checkpointed()
    (blob,) = expand([str(b.write(tmp_path / "trace.json.gz"))])
    read = read_one(blob, ReadOptions(), lambda *_: None, lambda: None)
    assert row_of(read.facts) == row_of(priced_facts(b))


LENGTHS = st.lists(st.integers(1, 2000), min_size=1, max_size=4)


@settings(max_examples=25, deadline=None)
@given(lengths=LENGTHS, times=st.integers(2, 9))
def test_achieved_figures_go_inversely_with_time(lengths: list[int], times: int) -> None:
    """The same work in several times the time, whether it is believed or not."""
    quick = drawn(one_step(*lengths)).kernels
    slow = drawn(one_step(*(length * times for length in lengths))).kernels
    assert sum(k.flops for k in slow) == sum(k.flops for k in quick)
    assert sum(k.bytes for k in slow) == sum(k.bytes for k in quick)
    assert sum(k.dur_ns for k in slow) == times * sum(k.dur_ns for k in quick)
    for kernel in (*quick, *slow):
        assert kernel.flops_per_s * kernel.dur_ns == pytest.approx(kernel.flops * 1e9)
        assert kernel.bytes_per_s * kernel.dur_ns == pytest.approx(kernel.bytes * 1e9)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(60, 140), min_size=2, max_size=4))
def test_nothing_above_the_data_sheet_is_reported_as_a_fact(lengths: list[int]) -> None:
    """Also where calls that are impossible and calls that are not share name and operator.

    201 MB in less than 100.7 us are more than 2 TB/s.
    """
    b = KinetoBuilder()
    with b.step():
        for length in lengths:
            total(b, length, 1 << 25)
        b.sync()
    for kernel in drawn(b).kernels:
        assert kernel.bound == "above peak" or kernel.bytes_per_s <= 2e12 * (1 + 1e-9)
