"""Counters of single kernel launches, put to the launches of a trace."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder
from plain_inputs import priced_facts

from perfdiag.classifiers.counted_costs import count_kernels, counted_costs
from perfdiag.classifiers.counted_figures import bound_by_throughput, figures_of
from perfdiag.classifiers.counted_kernels import with_counted
from perfdiag.classifiers.counted_notices import FROM_CACHES, disagreement
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.diagnoses._roofs import roofs_of
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.findings import diagnose_rank
from perfdiag.classifiers.kernel_costs import KernelCosts
from perfdiag.classifiers.kernel_matching import AGREE
from perfdiag.classifiers.rank_utilisation import utilise
from perfdiag.classifiers.roofline import Bound
from perfdiag.classifiers.roofs import roofline_row
from perfdiag.classifiers.verdicts import judge_rank
from perfdiag.profiler.counters import SetAside, range_kernels, read_counters
from perfdiag.profiler.counters.kernels import KernelMetrics
from perfdiag.profiler.sources.files import Blob
from perfdiag.profiler.sources.kineto import KinetoOptions, read_kineto
from perfdiag.trace_schemas.devices import DevicePeaks, Peak, Source
from perfdiag.trace_schemas.kernel_identity import kernel_name
from perfdiag.trace_schemas.recording import ABSENT

SIZE = 1024
FLOPS, BYTES = 2 * SIZE**3, 3 * SIZE**2 * 2
MM = [[SIZE, SIZE], [SIZE, SIZE]]
LOOP = "void at::native::elementwise_kernel<128, 2, Add>(int, Add)"

HERE = Source("by hand", "", "2026-11")
DEVICE = DevicePeaks(
    "Device",
    "nvidia",
    "GPU",
    matrix={"bf16": Peak(100e12, 80e12, HERE, HERE)},
    vector={"fp32": Peak(10e12, None, HERE)},
    memory=Peak(2e12, 1.6e12, HERE, HERE),
)

Value = float | None


def kernel(
    name: str,
    read: Value = None,
    *,
    flops: Value = None,
    tensor: Value = None,
    grid: tuple[int, ...] = (),
    device: int = 0,
    launches: int = 1,
    **values: float,
) -> KernelMetrics:
    """A launch; `read` bytes are read and as many written, `flops` are of FP32."""
    told: dict[str, float] = dict(values)
    if read is not None:
        told |= {"dram_read_bytes": read, "dram_written_bytes": read}
    if flops is not None:
        told |= {"flops_fp16": 0.0, "flops_fp32": flops, "flops_fp64": 0.0}
    if tensor is not None:
        told["sm__inst_executed_pipe_tensor.sum"] = tensor
    return KernelMetrics(name, 0, device, grid, (), ABSENT, ABSENT, launches, told)


def traced(*names: str, dur_us: float = 100, priced: bool = False) -> KinetoBuilder:
    """A step with these kernels one after the other; priced as products of 1024 x 1024."""
    b = KinetoBuilder()
    with b.step():
        for name in names:
            if priced:
                with b.op("aten::mm", 2, dims=MM):
                    b.launch(name, dur_us)
            else:
                b.launch(name, dur_us)
        b.sync()
    return b


def facts_of(b: KinetoBuilder, peaks: DevicePeaks | None = DEVICE) -> RankFacts:
    return priced_facts(b, peaks)


def read_bytes(
    b: KinetoBuilder,
    kernels: Sequence[KernelMetrics],
    grids: Mapping[int, tuple[int, ...]] | None = None,
) -> list[float | None]:
    """Of each kernel in order of its start half of the bytes that were put to it."""
    facts = facts_of(b)
    counted = count_kernels(facts, kernels, grids or {})
    rows = np.flatnonzero(facts.kernels)
    rows = rows[np.argsort(facts.model.work.ts_ns[rows], kind="stable")]
    return [None if np.isnan(v) else float(v) / 2 for v in counted.bytes[rows].tolist()]


# --- who is who ------------------------------------------------------------------------------


def test_the_nth_is_the_nth() -> None:
    """As many launches of a name here as there, whatever is between them."""
    b = traced("a", "b", "a", "c")
    assert read_bytes(b, [kernel("a", 1), kernel("a", 3), kernel("b", 2)]) == [1, 2, 3, None]


@pytest.mark.parametrize(
    "name",
    [
        "elementwise_kernel",
        "at::native::elementwise_kernel",
        "void at::native::elementwise_kernel<(int)128, (int)2, Add>(int, T3)",
        "_ZN2at6native18elementwise_kernelILi128ELi2E3AddEEviT1_",
        LOOP,
    ],
)
def test_tools_write_names_their_own_way(name: str) -> None:
    """Function alone, without arguments, with casts, mangled."""
    assert read_bytes(traced(LOOP, "b"), [kernel(name, 7)]) == [7, None]


def test_mangled_names_of_traces_are_found() -> None:
    """Traces without a demangler have them."""
    mangled = "_ZN2at6native18elementwise_kernelILi128ELi2E3AddEEviT1_"
    assert read_bytes(traced(mangled, "b"), [kernel(LOOP, 7)]) == [7, None]


def test_other_template_arguments_are_another_kernel() -> None:
    """They may be another type, and other bytes."""
    b = traced("void k<float>(int)", "b")
    assert read_bytes(b, [kernel("k<c10::BFloat16>(int)", 7)]) == [None, None]


def test_other_namespaces_are_another_kernel() -> None:
    """The function alone is not enough where both tell more."""
    assert read_bytes(traced("mine::k", "b"), [kernel("theirs::k", 7)]) == [None, None]


def test_a_name_without_arguments_stands_for_all_that_have_them() -> None:
    """In the order of their launches."""
    b = traced("k<1>", "k<2>", "b", "k<1>")
    counted = [kernel("k", 1), kernel("k", 2), kernel("k", 3)]
    assert read_bytes(b, counted) == [1, 2, None, 3]


def test_order_must_fit_names() -> None:
    """Two tools that tell different parts of names: the n-th must not be known for another."""
    b = traced("k<1>", "k<2>", "b")
    assert read_bytes(b, [kernel("k", 1), kernel("k<1>", 2)]) == [None, None, None]


def test_a_name_in_two_streams_follows_its_launches() -> None:
    """The second launch starts first: streams do not tell the order, launches do."""
    b = KinetoBuilder()
    with b.step():
        b.launch("before", 500, stream=7)
        b.launch("k", 100, stream=7)
        b.launch("k", 100, stream=8)
        b.sync()
    facts = facts_of(b)
    work = facts.model.work
    counted = count_kernels(facts, [kernel("k", 1), kernel("k", 2)], {})
    rows = np.flatnonzero(counted.matched)
    by_stream = {
        work.lane[row]: counted.bytes[row] / 2 for row in rows[np.argsort(work.lane[rows])]
    }
    assert list(by_stream.values()) == [1, 2]
    starts = work.ts_ns[rows[np.argsort(work.lane[rows])]]
    assert starts[1] < starts[0]


def test_streams_without_launches_have_no_order() -> None:
    """Launches that the trace does not hold: nothing says which came first."""
    b = KinetoBuilder()
    with b.step():
        b.launch("k", 100, stream=7)
        b.launch("k", 100, stream=8)
        b.launch("other", 100, stream=8)
        b.sync()
    facts = facts_of(b)
    work = facts.model.work
    gone = np.full_like(work.launch_id, ABSENT)
    bare = replace(work, launch_id=gone, launch_ts_ns=gone, launch_end_ns=gone, launch_lane=gone)
    facts = replace(facts, model=replace(facts.model, work=bare))
    counted = count_kernels(facts, [kernel("k", 1), kernel("k", 2)], {})
    assert not counted.matched.any()
    assert counted.unmatched == ["k", "k"]


def test_one_stream_has_its_own_order() -> None:
    """Also where no launch is known: a graph is one launch, and its kernels follow one another."""
    b = KinetoBuilder()
    with b.step():
        b.graph([("k", 10), ("other", 10), ("k", 10)])
        b.sync()
    assert read_bytes(b, [kernel("k", 1), kernel("k", 2)]) == [1, None, 2]


def test_other_devices_are_left_out() -> None:
    """A file of several devices; launches without a device are taken to be of this one."""
    facts = facts_of(traced("a"))
    found, notices = with_counted(facts, [kernel("a", 1, device=1)])
    assert (found, notices) == (facts, [])
    found, _ = with_counted(facts, [kernel("a", 1, flops=1, tensor=0, device=ABSENT)])
    assert found.costs is not None
    assert found.costs.measured.tolist() == [True]


def test_grids_tell_launches_apart() -> None:
    """More launches here than there: those of one grid follow one another."""
    b = traced("k", "k", "k", "b")
    grids = {0: (8, 1, 1), 1: (16, 1, 1), 2: (16, 1, 1), 3: (1, 1, 1)}
    counted = [kernel("k", 5, grid=(16, 1, 1)), kernel("k", 6, grid=(16, 1, 1))]
    assert read_bytes(b, counted, grids) == [None, 5, 6, None]


def test_order_must_fit_grids() -> None:
    """As many of each, and not the same ones: each goes to its grid."""
    b = traced("k", "k", "b")
    grids = {0: (8, 1, 1), 1: (16, 1, 1)}
    counted = [kernel("k", 5, grid=(16, 1, 1)), kernel("k", 6, grid=(8, 1, 1))]
    assert read_bytes(b, counted, grids) == [6, 5, None]


def test_launches_alike_stand_for_all_by_their_mean() -> None:
    """Two were counted, three ran."""
    assert read_bytes(traced("k", "k", "k"), [kernel("k", 100), kernel("k", 104)]) == [102] * 3


@pytest.mark.parametrize(
    "counted",
    [
        [kernel("k", 100), kernel("k", 100 * (1 + AGREE) + 1)],
        [kernel("k", 100, compute_share=0.5), kernel("k", 100, compute_share=0.6)],
        [kernel("k", 100)],
        [kernel("k", 100, launches=2), kernel("k", 100)],
    ],
    ids=["bytes differ", "shares differ", "one alone", "a summary"],
)
def test_launches_that_may_differ_stand_for_none(counted: list[KernelMetrics]) -> None:
    """Shapes differ between launches of a name, and nobody knows which was counted."""
    assert read_bytes(traced("k", "k", "k"), counted) == [None] * 3


def test_a_mean_stands_for_one_kernel_only() -> None:
    """A name without template arguments that two kernels fit."""
    b = traced("k<1>", "k<2>", "k<2>")
    assert read_bytes(b, [kernel("k", 100), kernel("k", 100)]) == [None] * 3


def test_launches_of_other_shapes_have_no_mean() -> None:
    """By their shapes the kernels of the trace differ, though those counted are alike."""
    b = KinetoBuilder()
    with b.step():
        for size in (512, 1024, 1024):
            with b.op("aten::mm", 2, dims=[[size, 1024], [1024, 1024]]):
                b.launch(GEMM, 100)
        b.sync()
    assert read_bytes(b, [kernel(GEMM, 100), kernel(GEMM, 100)]) == [None] * 3


def test_kernels_without_a_name_go_by_order() -> None:
    """CUPTI's ranges, if there are as many as kernels, collectives among them."""
    b = KinetoBuilder(world_size=2)
    with b.step():
        b.launch("a", 100)
        b.collective("allreduce", 1 << 20, 500)
        b.launch("b", 100)
        b.sync()
    counted = [kernel("a", 1), kernel("", 9), kernel("", 2)]
    assert read_bytes(b, counted) == [1, 2]
    assert read_bytes(b, counted[:2]) == [1, None]


def test_a_name_that_does_not_fit_breaks_the_order() -> None:
    """As many kernels, but not these: those with names go by name."""
    counted = [kernel("", 1), kernel("a", 2)]
    assert read_bytes(traced("a", "b"), counted) == [2, None]


# --- what launches say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counted", "flops"),
    [
        (kernel(GEMM, flops=5, tensor=0), 5),
        (kernel(GEMM, flops=5, tensor=1), None),
        (kernel(GEMM, flops=5), None),
        (kernel(GEMM, flops=5, tensor_share=0.4), None),
        (kernel(ELEMENTWISE, flops=5), 5),
        (kernel("my_kernel", flops=5), None),
        (kernel("", flops=5), None),
        (kernel(GEMM, flops_fp32=5.0), None),
        (kernel(GEMM, flops=5, flops_matrix=7.0), 12),
    ],
)
def test_operations_are_known_where_matrix_units_are(
    counted: KernelMetrics, flops: float | None
) -> None:
    """Instructions of other units alone would make a product nearly free."""
    found = figures_of(counted).flops
    assert found == flops if flops is not None else np.isnan(found)


def test_traffic_is_both_directions() -> None:
    """What is read alone is no traffic: missing is not zero."""
    assert np.isnan(figures_of(kernel("k", dram_read_bytes=5.0)).bytes)
    both = figures_of(kernel("k", dram_read_bytes=5.0, dram_written_bytes=2.0))
    assert (both.bytes, both.written) == (7, 2)


def test_the_type_of_most_operations_is_theirs() -> None:
    """Where no operand tells it."""
    half = kernel(ELEMENTWISE, flops_fp16=3.0, flops_fp32=1.0, flops_fp64=0.0)
    assert figures_of(half).dtype == "fp16"
    matrix = replace(half, values=dict(half.values) | {"flops_matrix": 9.0})
    assert figures_of(matrix).dtype == ""
    assert figures_of(kernel(ELEMENTWISE, flops=0)).dtype == ""


# --- costs -----------------------------------------------------------------------------------


def costs_with(b: KinetoBuilder, *kernels: KernelMetrics) -> KernelCosts:
    facts, _ = with_counted(facts_of(b), kernels)
    assert facts.costs is not None
    return facts.costs


def test_counters_replace_what_shapes_say() -> None:
    """The type stays that of the operands, and the other kernels stay as they were."""
    b = traced(GEMM, "another_gemm", priced=True)
    costs = costs_with(b, kernel(GEMM, 4e6, flops=3e9, tensor=0))
    assert costs.flops.tolist() == [3e9, FLOPS]
    assert costs.bytes.tolist() == [8e6, BYTES]
    assert costs.written.tolist()[0] == 4e6
    assert costs.measured.tolist() == [True, False]
    assert [costs.dtypes[code] for code in costs.dtype] == ["bf16", "bf16"]


def test_what_was_not_counted_is_the_models() -> None:
    """Traffic was counted, operations of tensor cores are not."""
    costs = costs_with(traced(GEMM, priced=True), kernel(GEMM, 4e6, flops=10, tensor=5))
    assert (costs.flops.tolist(), costs.bytes.tolist()) == ([FLOPS], [8e6])
    assert costs.measured.tolist() == [True]


def test_half_a_cost_is_none() -> None:
    """Without shapes traffic alone would put any kernel under the memory's roof."""
    facts = facts_of(traced("a", "b"))
    found, _ = with_counted(facts, [kernel("a", 40e6)])
    assert (found.costs, found.roofline) == (None, None)


def test_counters_alone_are_enough() -> None:
    """80 MB in 100 us are half of 1.6 TB/s, 0.1 GFLOP of FP32 a tenth of 10 TFLOP/s."""
    facts, _ = with_counted(facts_of(traced("a")), [kernel("a", 40e6, flops=0.1e9, tensor=0)])
    assert facts.roofline is not None
    assert facts.costs is not None
    assert facts.roofline.memory_share.tolist() == pytest.approx([0.5])
    assert facts.roofline.compute_share.tolist() == pytest.approx([0.1])
    assert (facts.costs.dtypes, facts.costs.owner.tolist()) == (("fp32",), [ABSENT])
    assert judge_rank(facts).budget_ns["memory_kernel"] == 100_000


def test_the_budget_follows_counters() -> None:
    """By its shapes the product computes; by its counters it waits for memory."""
    facts = facts_of(traced(GEMM, priced=True))
    assert judge_rank(facts).budget_ns["compute_kernel"] == 100_000
    found, _ = with_counted(facts, [kernel(GEMM, 60e6)])
    budget = judge_rank(found).budget_ns
    assert (budget["memory_kernel"], budget.get("compute_kernel", 0)) == (100_000, 0)
    assert found.length_ns.tolist() == facts.length_ns.tolist()


def test_a_kernel_that_counters_put_under_no_roof_goes_by_its_name() -> None:
    """Not by what shapes had made of it."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 2, dims=[[1, 8192], [8192, 8192]]):
        b.launch(GEMM, 100)
    facts = facts_of(b)
    assert judge_rank(facts).budget_ns["memory_kernel"] == 100_000
    found, _ = with_counted(facts, [kernel(GEMM, 1e6, flops=1, tensor=0)])
    assert judge_rank(found).budget_ns["compute_kernel"] == 100_000


def test_a_second_file_adds_to_the_first() -> None:
    """What the first one counted stays counted."""
    b = traced(GEMM, "another_gemm", priced=True)
    first, _ = with_counted(facts_of(b), [kernel(GEMM, 60e6)])
    second, notices = with_counted(first, [kernel("another_gemm", 4e6)])
    assert second.costs is not None
    assert second.costs.bytes.tolist() == [120e6, 8e6]
    assert second.costs.measured.tolist() == [True, True]
    assert second.model.work.bound.take(np.arange(2)) == ["memory", "compute"]
    assert notices == []


COUNTS = st.lists(st.integers(0, 10**12), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(counts=COUNTS, names=st.data())
def test_counted_bytes_appear_unchanged(counts: list[int], names: st.DataObject) -> None:
    """Of every launch, whatever names are mixed, in the order of the launches."""
    kernels = names.draw(
        st.lists(st.sampled_from(["a", "b<1>", "b<2>"]), min_size=len(counts), max_size=len(counts))
    )
    told = [kernel(name, float(count)) for name, count in zip(kernels, counts, strict=True)]
    assert read_bytes(traced(*kernels, "last"), told) == [*map(float, counts), None]


# --- throughput ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "memory", "bound"),
    [
        (0.59, 0.3, Bound.UNDERFILLED),
        (0.72, 0.5, Bound.COMPUTE),
        (0.33, 0.6, Bound.MEMORY),
        (0.7, 0.65, Bound.UNKNOWN),
        (0.85, 0.83, Bound.COMPUTE),
        (0.9, 0.9, Bound.UNKNOWN),
        (np.nan, 0.9, Bound.UNKNOWN),
    ],
)
def test_the_rule_of_nsight_compute(compute: float, memory: float, bound: Bound) -> None:
    """Below 60 % latency, else the larger share if it is ahead."""
    assert bound_by_throughput(np.array([compute]), np.array([memory])).tolist() == [bound]


def test_shares_decide_without_roofs() -> None:
    """No shapes, and a device that is in no table."""
    facts = replace(facts_of(traced("a", "b")), peaks=None)
    shares = kernel("a", compute_share=0.3, memory_share=0.7)
    found, _ = with_counted(facts, [shares])
    assert judge_rank(facts).budget_ns["kernel_unclassified"] == 200_000
    budget = judge_rank(found).budget_ns
    assert (budget["memory_kernel"], budget["kernel_unclassified"]) == (100_000, 100_000)


def test_roofs_are_before_shares() -> None:
    """Shapes say what the kernel computes; shares are of another run's clocks."""
    facts = facts_of(traced(GEMM, priced=True))
    found, _ = with_counted(facts, [kernel(GEMM, compute_share=0.3, memory_share=0.7)])
    assert judge_rank(found).budget_ns["compute_kernel"] == 100_000


# --- what is made of it ----------------------------------------------------------------------


def test_the_report_says_where_figures_are_from() -> None:
    """Launches alike are apart where only some were counted."""
    b = KinetoBuilder()
    with b.step():
        for stream in (7, 8):
            with b.op("aten::mm", 2, dims=MM):
                b.launch(GEMM, 100 * stream, stream=stream)
        with b.op("mine::op", 2):
            b.launch("a", 100)
        b.sync()
    kernels = [kernel("a", 40e6, flops=1e8, tensor=0), kernel(GEMM, 4e6), kernel(GEMM)]
    facts, _ = with_counted(facts_of(b), kernels)
    row = roofline_row(facts, utilise(facts))
    assert row is not None
    assert [(k.name, k.op, k.source, k.bytes) for k in row.kernels] == [
        (GEMM, "aten::mm", "shapes", BYTES),
        (GEMM, "aten::mm", "counters", 8e6),
        ("a", "mine::op", "counters", 80e6),
    ]


def test_diagnoses_do_without_inputs_of_counted_kernels() -> None:
    """A kernel of an operator that told nothing is in no diagnosis that asks for inputs."""
    b = traced(*["a"] * 40, dur_us=1000)
    counted = [kernel("a", 400e6, flops=1e8, tensor=0)] * 40
    facts, _ = with_counted(facts_of(b), counted)
    roofs = roofs_of(facts)
    assert roofs is not None
    assert not roofs.usable.any()
    findings = diagnose_rank(facts, all_diagnoses(), judge_rank(facts).unknown).findings
    assert [found.diagnosis.id for found in findings if found.status == "failed"] == []


# --- what must be known ----------------------------------------------------------------------


def test_launches_without_a_kernel_are_counted() -> None:
    """Some, or all of them."""
    facts = facts_of(traced("a", "c"))
    _, (notice,) = with_counted(facts, [kernel("a", 1), kernel("b", 1)])
    assert (notice.kind, notice.severity, notice.count) == ("counter.unmatched", "info", 1)
    found, (notice,) = with_counted(facts, [kernel("b", 1)])
    assert (found, notice.severity) == (facts, "warning")
    assert "(b)" in notice.message


def test_less_traffic_than_the_least_is_told() -> None:
    """The worst kernel, with both figures."""
    b = traced(GEMM, "another_gemm", priced=True)
    half = BYTES / FROM_CACHES / 2
    counted = [kernel(GEMM, half * 0.9), kernel("another_gemm", half * 0.5)]
    _, (notice,) = with_counted(facts_of(b), counted)
    assert (notice.kind, notice.severity, notice.count) == ("model.disagrees", "info", 2)
    assert "another_gemm" in notice.message
    assert "1.57e+06 bytes were counted, the shapes make 6.29e+06" in notice.message


@pytest.mark.parametrize(("share", "told"), [(0.94, True), (0.96, False), (1.06, True), (1, False)])
def test_other_operations_of_products_are_told(share: float, told: bool) -> None:
    """More or less than a twentieth."""
    facts = facts_of(traced(GEMM, priced=True))
    assert facts.costs is not None
    one = kernel(GEMM, flops=FLOPS * share, tensor=0)
    counted = count_kernels(facts, [one], {})
    found = disagreement(facts.costs, counted, facts.model.work)
    assert (found is not None) == told
    assert found is None or (found.what, found.modelled) == ("FLOPs", FLOPS)


def test_more_traffic_than_the_least_is_usual() -> None:
    """Caches do not hold everything."""
    facts = facts_of(traced(GEMM, priced=True))
    assert facts.costs is not None
    counted = count_kernels(facts, [kernel(GEMM, 10 * BYTES)], {})
    assert disagreement(facts.costs, counted, facts.model.work) is None
    assert counted_costs(facts.costs, counted).bytes.tolist() == [20 * BYTES]


# --- names and files -------------------------------------------------------------------------


def test_lambdas_and_suffixes_are_written_alike() -> None:
    """As `ncu` and as Kineto writes them."""
    ours = "void k<4, true, {lambda(int)#1}, at::Array<char*, 3ul> >(int)"
    ncu = "k<(int)4, (bool)1, [lambda(int) (instance 1)], at::Array<char *, (unsigned long)3>>(T)"
    assert kernel_name(ours).arguments == kernel_name(ncu).arguments
    assert kernel_name(ours).fits(kernel_name(ncu))


SHARED = Path(__file__).parents[2] / "../shared/traces"


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared traces")
def test_a_real_trace_with_ranges_has_no_kernels() -> None:
    """The range profiler of 2023 took the place of kernel records: none of 77 launches is found."""
    packed = (SHARED / "kineto/nvidia/a100_cupti_range_profiler.json.gz").read_bytes()
    data = gzip.decompress(packed)
    recording = read_kineto(data, "trace.json", KinetoOptions(keep_args=True))
    kernels, _ = range_kernels(recording, SetAside())
    facts = facts_of(traced("mine"))
    found, (notice,) = with_counted(facts, kernels)
    assert (found, notice.count, notice.severity) == (facts, 77, "warning")


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared traces")
@pytest.mark.parametrize(("page", "measured"), [("raw", 0), ("details", 0)])
def test_stand_ins_of_nsight_compute(page: str, measured: int) -> None:
    """Both launches are found; neither page has what a cost takes, the details page has shares."""
    path = SHARED / f"synthetic/ncu_page_{page}.csv"
    data = path.read_bytes()
    kernels = read_counters(Blob(str(path), data, "unknown", len(data), "")).kernels
    facts = facts_of(
        traced("gemm_kernel(float*, float*, int)", "b", "gemm_kernel(float*, float*, int)")
    )
    counted = count_kernels(facts, kernels, {})
    assert counted.matched.tolist() == [True, False, True]
    assert int((~np.isnan(counted.bytes)).sum()) == measured
    found, notices = with_counted(facts, kernels)
    assert notices == []
    assert found.model.work.bound.take(np.array([0, 2])) == ["memory", "memory"]
