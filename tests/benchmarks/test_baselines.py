"""The rules of other tools, on small traces of which the answer follows by hand."""

import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from baselines import BASELINES, fit_majority, with_majority
from baselines.gpu_idle import Measured, leading_cause
from baselines.gpu_idle_itself import gpu_idle_label
from baselines.hta_itself import hta_labels
from baselines.spans import Cover, Spans, layers
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.counters import RankCounters, Track
from perfdiag.classifiers.facts import RankFacts, derive_facts
from perfdiag.profiler.inputs import recorded_inputs
from perfdiag.profiler.model import read_model
from perfdiag.profiler.opening import ReadOptions, open_model, read_blob
from perfdiag.profiler.sources.files import expand
from perfdiag.trace_schemas.report import LABELS, Label

BATCH = [[4096, 4096], [4096, 4096]]
SQUARE_US, ADD_US = 200, 40  # at about 70 % of an H100's peak, and of its bandwidth

FactsOf = Callable[[KinetoBuilder], RankFacts]


@pytest.fixture
def facts_of(tmp_path: Path) -> FactsOf:
    """Write a built trace, read it back and derive its facts."""

    def look(builder: KinetoBuilder) -> RankFacts:
        path = builder.write(tmp_path / "trace.json")
        recording = read_blob(next(iter(expand([str(path)]))), ReadOptions(), keep_args="inputs")
        with open_model(recording, ReadOptions()) as opened:
            model = read_model(opened.session)
            inputs = recorded_inputs(opened.recording, model.hosts)
            return derive_facts(opened.recording, model, inputs)

    return look


def verdict(rule: str, facts: RankFacts) -> Label:
    """Of a rule, on all steps."""
    return BASELINES[rule].label(facts, *facts.span_ns)


def spans(*bounds: tuple[int, int]) -> Spans:
    pairs = np.array(bounds, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


# ------------------------------------------------------------------ the common ground


def test_the_first_layer_takes_what_several_cover() -> None:
    """Of 0-100, 10-40 is the first part's, 40-60 what the second adds, the rest of none."""
    found = layers([spans((10, 40)), spans((30, 60))], spans((0, 100), (35, 50)))
    assert found.T.tolist() == [[30, 20, 50], [5, 10, 0]]


def test_an_extent_reaches_from_the_first_to_the_last_covered_moment() -> None:
    """Windows are cut at their own bounds; one without any cover has no extent."""
    cover = Cover.of(spans((10, 20), (50, 70)))
    assert cover.extent(spans((0, 100), (15, 60), (20, 50), (80, 90))).tolist() == [60, 45, 0, 0]


def test_the_majority_class_is_the_most_frequent_one_of_training() -> None:
    """Whatever is asked for."""
    facts = None
    rule = fit_majority(["host-bound", "memory-bound", "host-bound"])
    assert rule.labels(facts, [(0, 1), (5, 9)]) == ["host-bound"] * 2  # type: ignore[arg-type]


def test_no_training_labels_have_no_majority() -> None:
    """An empty training set is the caller's mistake."""
    with pytest.raises(ValueError, match="no labels"):
        fit_majority([])


def test_all_rules_label_many_windows_as_they_do_one_by_one(facts_of: FactsOf) -> None:
    """Overlapping windows, too, and one before and one behind all work."""
    facts = facts_of(_exposed(COLLECTIVE))
    first, last = facts.span_ns
    some = (last - first) // 3
    windows = [(first, last), (first, first + some), (first + some, last), (last, last + some)]
    windows.append((first - some, first))
    for rule in with_majority(["host-bound"]).values():
        one_by_one = [rule.label(facts, *window) for window in windows]
        assert rule.labels(facts, windows) == one_by_one
        assert set(one_by_one) <= set(LABELS)


# ------------------------------------------------------------------ traces

COLLECTIVE = "nccl"


def _exposed(kernel: str) -> KinetoBuilder:
    """200 us of a product, then 900 us of communication that nothing hides, twice."""
    b = KinetoBuilder(world_size=2)
    for _ in range(2):
        with b.step():
            with b.op("aten::mm", 6, dims=BATCH):
                b.launch(GEMM, SQUARE_US)
            if kernel == COLLECTIVE:
                b.collective("allreduce", 1 << 24, 900)
            else:
                b.launch(kernel, 900)
            b.sync()
    return b


def _loader(wait_us: float, products: int, *, as_op: bool = False) -> KinetoBuilder:
    """The host waits for a batch, then queues products; two steps."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            if as_op:
                b.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", wait_us)
            else:
                b.loader(wait_us)
            for _ in range(products):
                with b.op("aten::mm", 6, dims=BATCH):
                    b.launch(GEMM, SQUARE_US)
            b.sync()
    return b


def _kernels(name: str, op: str, dur_us: float) -> KinetoBuilder:
    """Twenty kernels of one kind, queued ahead."""
    b = KinetoBuilder()
    with b.step():
        for _ in range(20):
            with b.op(op, 6, dims=BATCH):
                b.launch(name, dur_us)
        b.sync()
    return b


def _copies(to: str, each_us: float) -> KinetoBuilder:
    """A copy that nothing hides, then a product."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.copy(to, 1 << 26, each_us)
            with b.op("aten::mm", 6, dims=BATCH):
                b.launch(GEMM, SQUARE_US)
            b.sync()
    return b


# ------------------------------------------------------------------ gpu-idle


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        (Measured(busy=0.80, loader=0.9, kernel_us=5, copies=0.5), ""),
        (Measured(busy=0.33, loader=0.92, kernel_us=214, copies=0), "dataloader"),
        (Measured(busy=0.33, loader=0.006, kernel_us=11.8, copies=0), "smallbatch"),
        # Loader 20 % of the window explains less than half of 60 %: small kernels are surer.
        (Measured(busy=0.40, loader=0.20, kernel_us=20, copies=0), "smallbatch"),
        # It explains half, so that small kernels are not looked at.
        (Measured(busy=0.60, loader=0.20, kernel_us=20, copies=0), "dataloader"),
        (Measured(busy=0.40, loader=0.25, kernel_us=60, copies=0.2), "h2d_copy"),
        (Measured(busy=0.40, loader=0.19, kernel_us=60, copies=0.09), "unattributed"),
    ],
)
def test_the_surest_cause_leads(found: Measured, cause: str) -> None:
    """As the tool sorts its findings: by confidence."""
    assert leading_cause(found) == cause


def test_gpu_idle_calls_a_device_healthy_that_waits_in_a_collective(facts_of: FactsOf) -> None:
    """Busy for 1100 us of about 1180 a step, 900 of them in an all-reduce."""
    assert verdict("gpu-idle", facts_of(_exposed(COLLECTIVE))) == "compute-bound"


def test_gpu_idle_finds_the_loader(facts_of: FactsOf) -> None:
    """600 us of about 1,020 a step; 400 us of kernels."""
    assert verdict("gpu-idle", facts_of(_loader(600, 2))) == "host-bound"


def test_gpu_idle_finds_copies(facts_of: FactsOf) -> None:
    """300 us of 520 a step are a copy; kernels are long, and there is no loader."""
    assert verdict("gpu-idle", facts_of(_copies("HtoD", 300))) == "memory-bound"


# ------------------------------------------------------------------ torch-tb-profiler


def test_tb_plugin_does_not_see_the_loader_of_todays_traces(facts_of: FactsOf) -> None:
    """300 us of loader beside 1,000 of kernels: it is an annotation, so no tip is given."""
    assert verdict("torch-tb-profiler", facts_of(_loader(300, 5))) == "compute-bound"


def test_tb_plugin_sees_the_loader_where_it_is_an_operator(facts_of: FactsOf) -> None:
    """As PyTorch wrote it once: the same 300 us are 23 % of a step."""
    facts = facts_of(_loader(300, 5, as_op=True))
    assert verdict("torch-tb-profiler", facts) == "host-bound"


def test_tb_plugin_takes_the_kernels_of_collectives_for_compute(facts_of: FactsOf) -> None:
    """900 of 1,100 us of kernels are an all-reduce; on the host its range takes 1 us."""
    assert verdict("torch-tb-profiler", facts_of(_exposed(COLLECTIVE))) == "compute-bound"


def test_tb_plugin_wants_a_larger_batch_when_the_loader_is_slow(facts_of: FactsOf) -> None:
    """Kernels run for less than half of the step: host-bound, for another reason."""
    assert verdict("torch-tb-profiler", facts_of(_loader(600, 2))) == "host-bound"


# ------------------------------------------------------------------ TraceLens


@pytest.mark.parametrize(
    ("built", "label"),
    [
        (_kernels(GEMM, "aten::mm", SQUARE_US), "compute-bound"),
        (_kernels(ELEMENTWISE, "aten::add", ADD_US), "memory-bound"),
        (_exposed(COLLECTIVE), "collective-bound"),
        (_copies("HtoD", 300), "memory-bound"),
        (_exposed("deep_ep::internode::dispatch"), "compute-bound"),
    ],
    ids=["products", "additions", "all-reduce", "copies", "unknown-communication"],
)
def test_tracelens_answers_the_largest_part(
    facts_of: FactsOf, built: KinetoBuilder, label: Label
) -> None:
    """Communication that is not called nccl is computation."""
    assert verdict("TraceLens", facts_of(built)) == label


def test_tracelens_does_not_see_what_lies_before_the_first_kernel(facts_of: FactsOf) -> None:
    """One step: the loader takes 5 ms, and then 400 us of kernels are all of its timeline."""
    b = KinetoBuilder()
    with b.step():
        b.loader(5_000)
        for _ in range(2):
            b.launch(GEMM, SQUARE_US)
        b.sync()
    assert verdict("TraceLens", facts_of(b)) == "compute-bound"


def test_tracelens_has_no_answer_where_no_kernel_is_linked(facts_of: FactsOf) -> None:
    """The flows are another kind of arrow: all kernels are left out."""
    facts = facts_of(_kernels(GEMM, "aten::mm", SQUARE_US))
    work = facts.model.work
    unlinked = replace(work, launch_id=np.full(len(work.id), -1))
    facts = replace(facts, model=replace(facts.model, work=unlinked))
    assert verdict("TraceLens", facts) == "unknown"


# ------------------------------------------------------------------ nsys-ai


def test_nsys_ai_gives_exposed_communication_its_own_class(facts_of: FactsOf) -> None:
    """900 of about 1,180 us a step."""
    assert verdict("nsys-ai", facts_of(_exposed(COLLECTIVE))) == "collective-bound"


def test_nsys_ai_takes_copies_for_the_hosts_time(facts_of: FactsOf) -> None:
    """1,000 us of copies beside 200 of a kernel: no kernel runs, so the host is waited for."""
    assert verdict("nsys-ai", facts_of(_copies("HtoD", 1_000))) == "host-bound"


def test_nsys_ai_calls_a_near_tie_mixed(facts_of: FactsOf) -> None:
    """1,000 us of kernels beside about 1,020 of waiting."""
    assert verdict("nsys-ai", facts_of(_loader(1_000, 5))) == "unknown"


def test_nsys_ai_withholds_on_a_path_below_a_millisecond(facts_of: FactsOf) -> None:
    """A window of 0.9 ms within kernels that are all compute, and one of 1.1 ms."""
    facts = facts_of(_kernels(GEMM, "aten::mm", 100))
    start = int(facts.model.work.ts_ns[0])
    windows = [(start, start + 900_000), (start, start + 1_100_000)]
    assert BASELINES["nsys-ai"].labels(facts, windows) == ["unknown", "compute-bound"]


# ------------------------------------------------------------------ HTA


def test_hta_takes_every_kernel_that_begins_with_hip_for_communication(facts_of: FactsOf) -> None:
    """900 of 1,100 us are a product of hipBLASLt's."""
    assert verdict("HTA breakdown", facts_of(_exposed("hipblaslt_gemm"))) == "collective-bound"
    assert verdict("HTA bound-by", facts_of(_exposed("hipblaslt_gemm"))) == "collective-bound"


def test_hta_takes_unknown_communication_for_compute(facts_of: FactsOf) -> None:
    """DeepEP, for one."""
    facts = facts_of(_exposed("deep_ep::internode::dispatch"))
    assert verdict("HTA breakdown", facts) == "compute-bound"


def test_hta_breakdown_cannot_tell_arithmetic_from_memory(facts_of: FactsOf) -> None:
    """Additions are compute."""
    facts = facts_of(_kernels(ELEMENTWISE, "aten::add", ADD_US))
    assert verdict("HTA breakdown", facts) == "compute-bound"


def _gaps(gap_us: float) -> KinetoBuilder:
    """Ten kernels of 20 us, all launched in the first 50 us, the others so far behind each."""
    b = KinetoBuilder()
    with b.step():
        start = b.now_us + 100
        for i in range(10):
            b.launch(GEMM, 20, at_us=start + i * (20 + gap_us))
        b.idle(100 + 10 * (20 + gap_us))
    return b


@pytest.mark.parametrize(
    ("gap_us", "label"), [(25, "host-bound"), (35, "unknown"), (15, "compute-bound")]
)
def test_hta_calls_gaps_below_thirty_microseconds_overhead_of_launches(
    facts_of: FactsOf, gap_us: float, label: Label
) -> None:
    """Nine gaps between ten kernels of 20 us that were launched long before."""
    assert verdict("HTA breakdown", facts_of(_gaps(gap_us))) == label


def test_hta_breakdown_waits_for_the_host_between_steps(facts_of: FactsOf) -> None:
    """Two steps, 600 us of the loader between their kernels of 200 us each."""
    assert verdict("HTA breakdown", facts_of(_loader(1_000, 1))) == "host-bound"


def test_hta_critical_path_holds_nothing_of_an_annotation(facts_of: FactsOf) -> None:
    """1 ms of the loader a step weighs nothing; 200 us of a kernel do."""
    assert verdict("HTA bound-by", facts_of(_loader(1_000, 1))) == "compute-bound"


def test_hta_critical_path_holds_operators_of_the_host(facts_of: FactsOf) -> None:
    """The same millisecond as an operator is on the path."""
    assert verdict("HTA bound-by", facts_of(_loader(1_000, 1, as_op=True))) == "host-bound"


def test_hta_critical_path_holds_one_kernel_of_a_graph(facts_of: FactsOf) -> None:
    """The last of each graph is an addition of 10 us; 300 us of operators outweigh it."""
    b = KinetoBuilder()
    for _ in range(2):
        with b.step():
            b.op("aten::copy_", 300)
            b.graph([(GEMM, 400)] * 5 + [(ELEMENTWISE, 10)])
            b.sync()
    assert verdict("HTA bound-by", facts_of(b)) == "host-bound"


# ------------------------------------------------------------------ XProf


def test_xprof_puts_collectives_above_a_sixth_of_the_step_first(facts_of: FactsOf) -> None:
    """900 of about 1,180 us a step."""
    assert verdict("XProf thresholds", facts_of(_exposed(COLLECTIVE))) == "collective-bound"


@pytest.mark.parametrize(("wait_us", "label"), [(100, "compute-bound"), (350, "host-bound")])
def test_xprof_calls_input_high_from_a_fifth_of_the_step_on(
    facts_of: FactsOf, wait_us: float, label: Label
) -> None:
    """Beside 1,000 us of products the loader takes 9 or 26 % of a step."""
    assert verdict("XProf thresholds", facts_of(_loader(wait_us, 5))) == label


def test_xprof_takes_copies_to_the_device_for_input(facts_of: FactsOf) -> None:
    """The wait for a copy is a runtime call's time, which comes before the copy: still the host."""
    assert verdict("XProf thresholds", facts_of(_copies("HtoD", 300))) == "host-bound"


def test_xprof_gives_output_the_place_of_copies(facts_of: FactsOf) -> None:
    """300 us of copies to the host beside 200 of a product: 55 % of a step."""
    assert verdict("XProf thresholds", facts_of(_copies("DtoH", 300))) == "memory-bound"


def test_xprof_tells_memory_by_all_flops_and_bytes(facts_of: FactsOf) -> None:
    """Additions have a 3,000th of the FLOPs for each byte."""
    facts = facts_of(_kernels(ELEMENTWISE, "aten::add", ADD_US))
    assert verdict("XProf thresholds", facts) == "memory-bound"


def _counted(facts: RankFacts, matrix: float, memory: float) -> RankFacts:
    """The same with counters at these shares, a sample in all of the steps."""
    begin, until = (np.array([time_ns]) for time_ns in facts.span_ns)
    values = {"tensor_active": matrix, "dram_active": memory}
    tracks = {
        name: Track(name, "ratio", "counters", 1, begin, until, np.array([value]))
        for name, value in values.items()
    }
    return replace(facts, counters=RankCounters(tracks))


@pytest.mark.parametrize(
    ("matrix", "memory", "label"),
    [
        (0.71, 0.49, "compute-bound"),
        (0.49, 0.71, "memory-bound"),
        (0.49, 0.49, "unknown"),
        (0.60, 0.60, "compute-bound"),  # by its FLOPs and bytes
    ],
)
def test_xprof_suggests_by_matrix_units_and_memory(
    facts_of: FactsOf, matrix: float, memory: float, label: Label
) -> None:
    """70 % and 50 %, whatever kernels are called."""
    facts = _counted(facts_of(_kernels(GEMM, "aten::mm", SQUARE_US)), matrix, memory)
    assert verdict("XProf thresholds", facts) == label


# ------------------------------------------------------------------ Nsight Compute


@pytest.mark.parametrize(
    ("matrix", "memory", "label"),
    [
        (0.50, 0.55, "unknown"),  # latency
        (0.75, 0.60, "compute-bound"),
        (0.70, 0.65, "unknown"),  # balanced
        (0.85, 0.90, "memory-bound"),  # at the roof
    ],
)
def test_nsight_compute_names_the_larger_speed_of_light(
    facts_of: FactsOf, matrix: float, memory: float, label: Label
) -> None:
    """60, 80 and 10 %, of a device on which kernels run nearly all of the time."""
    facts = _counted(facts_of(_kernels(GEMM, "aten::mm", SQUARE_US)), matrix, memory)
    assert verdict("Nsight Compute SOL", facts) == label


def test_nsight_compute_abstains_without_counters(facts_of: FactsOf) -> None:
    """A trace alone tells it nothing."""
    facts = facts_of(_kernels(GEMM, "aten::mm", SQUARE_US))
    assert verdict("Nsight Compute SOL", facts) == "unknown"


# ------------------------------------------------------------------ the tools themselves


def _python(folder: Path, lines: Sequence[str]) -> Path:
    """A stand-in for an interpreter with a tool."""
    path = folder / "python"
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_gpu_idle_itself_is_read_by_its_first_finding(tmp_path: Path) -> None:
    """It is given the trace without gzip: the stand-in looks for its first bytes."""
    trace = _kernels(GEMM, "aten::mm", 20).write(tmp_path / "trace.json.gz")
    printed = '{"findings": [{"cause": "h2d_copy"}, {"cause": "smallbatch"}]}'
    python = _python(tmp_path, [f"grep -q schemaVersion \"$3\" && echo '{printed}'"])
    assert gpu_idle_label(trace, python) == "memory-bound"


def test_gpu_idle_itself_abstains_where_it_fails(tmp_path: Path) -> None:
    """It refuses traces without steps by an exception."""
    trace = _kernels(GEMM, "aten::mm", 20).write(tmp_path / "trace.json")
    assert gpu_idle_label(trace, _python(tmp_path, ["exit 1"])) == "unknown"


def test_hta_itself_gives_a_label_for_each_analysis(tmp_path: Path) -> None:
    """One that HTA fails at is unknown, the other stands."""
    trace = _kernels(GEMM, "aten::mm", 20).write(tmp_path / "trace.json")
    shares = '{"idle_time": 7, "compute_time": 2, "non_compute_time": 1}'
    printed = f'{{"breakdown": {{"shares": {shares}}}, "bound_by": {{"shares": null}}}}'
    python = _python(tmp_path, [f"echo '{printed}'"])
    assert hta_labels(trace, python) == {"breakdown": "host-bound", "bound_by": "unknown"}
