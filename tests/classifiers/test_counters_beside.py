"""Counters beside a trace, from the files to the report."""

from pathlib import Path

import pytest
from counter_tables import counter_table
from fleet import fleet
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.profiler.convert import convert
from perfdiag.trace_schemas.report import CounterFigure, CounterRegion, CounterTimeline, Report

ACTIVITY = "timestamp_ns,gpu,{}\n".format(
    ",".join(f"DCGM_FI_PROF_{name}" for name in ("PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE"))
)


def job(kernel: str = GEMM) -> KinetoBuilder:
    """Three steps of 100 ms."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(kernel, 100_000)
            b.sync()
    return b


def report_of(folder: Path, b: KinetoBuilder, *tables: str, **options: object) -> Report:
    paths = []
    for number, text in enumerate(tables):
        path = folder / f"gpu{number}.csv"
        path.write_text(text)
        paths.append(str(path))
    trace = str(b.write(folder / "trace.json"))
    return analyze([trace], Options(counters=paths, **options))  # type: ignore[arg-type]


def activity(tensor: float, dram: float) -> str:
    base = 1_751_328_001_000_000_000
    return ACTIVITY + "".join(f"{base + i * 10_000_000},0,{tensor},{dram}\n" for i in range(32))


def region(report: Report, kind: str, number: int = 0) -> CounterRegion:
    return [row for row in report.ranks[0].counters if row.kind == kind][number]


def figure(row: CounterRegion, metric: str) -> CounterFigure:
    return next(one for one in row.figures if one.metric == metric)


def timeline(report: Report, metric: str, entity: str = "GPU 0") -> CounterTimeline:
    lines = [line for file in report.counters for line in file.timelines]
    return next(one for one in lines if (one.metric, one.entity) == (metric, entity))


def kinds(report: Report) -> list[str]:
    return [notice.kind for notice in report.notices]


def test_figures_of_all_steps_and_of_each(tmp_path: Path) -> None:
    """Power that rises by 100 W a step has three means, and one of them all."""
    rows = [{"power.draw [W]": 300 + 100 * (i // 10)} for i in range(31)]
    report = report_of(tmp_path, job(), counter_table(10_000.6, rows))
    whole = figure(region(report, "steps"), "power")
    assert whole.mean == pytest.approx(400, rel=1e-4)
    assert (whole.p10, whole.p90, whole.coverage) == (300, 500, 1)
    steps = [figure(region(report, "step", i), "power").mean for i in range(3)]
    assert steps == pytest.approx([300, 400, 500], rel=1e-4)


def test_samples_that_are_too_far_apart_tell_nothing_of_a_step(tmp_path: Path) -> None:
    """One sample for all three steps stands in the whole and in none of them."""
    report = report_of(tmp_path, job(), counter_table(150_000, [{"power.draw [W]": 300}] * 3))
    assert [row.kind for row in report.ranks[0].counters] == ["steps"]


def test_what_was_read_is_listed(tmp_path: Path) -> None:
    """The file, its clock, and the rank that its counters stand beside."""
    report = report_of(tmp_path, job(), counter_table(10_000, [{"power.draw [W]": 300}] * 30))
    (file,) = report.counters
    assert (file.format, file.clock, file.ranks) == ("nvidia-smi", "exact", [None])
    assert timeline(report, "power").samples == 30


def test_without_counters_nothing_is_said_of_them(tmp_path: Path) -> None:
    """A trace alone has no rows."""
    report = report_of(tmp_path, job())
    assert (report.counters, report.ranks[0].counters) == ([], [])


def test_counters_that_agree_leave_no_notice(tmp_path: Path) -> None:
    """Products with busy tensor cores are bound by arithmetic."""
    report = report_of(tmp_path, job(), activity(0.85, 0.3))
    assert region(report, "steps").roof == "compute"
    assert "model.disagrees" not in kinds(report)


def test_counters_that_contradict_decide_and_are_heard(tmp_path: Path) -> None:
    """Elementwise kernels that keep tensor cores busy are not what their name says."""
    report = report_of(tmp_path, job(ELEMENTWISE), activity(0.85, 0.3))
    assert report.job.label == "compute-bound"
    assert "memory_kernel" not in report.job.budget_ns
    (notice,) = (n for n in report.notices if n.kind == "model.disagrees")
    assert notice.count == 4  # all steps, and each
    assert "arithmetic units are active for 85%" in notice.message


def mixed() -> KinetoBuilder:
    """Three steps of which products take 70 ms, elementwise kernels 20 and unknown ones 10."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            for name, us in ((GEMM, 70_000), (ELEMENTWISE, 20_000), ("zz9", 10_000)):
                b.launch(name, us)
            b.sync()
    return b


def test_where_counters_agree_the_finer_split_stays(tmp_path: Path) -> None:
    """They only place the kernels of which nothing else was known."""
    alone, beside = (report_of(tmp_path, mixed(), *t) for t in ((), (activity(0.8, 0.3),)))
    before, after = alone.job.budget_ns, beside.job.budget_ns
    assert before["kernel_unclassified"] == pytest.approx(30e6, rel=1e-3)
    assert "kernel_unclassified" not in after
    assert after["memory_kernel"] == before["memory_kernel"]
    assert after["compute_kernel"] == before["compute_kernel"] + before["kernel_unclassified"]


def test_counters_that_tell_of_all_steps_decide_only_where_steps_have_none(tmp_path: Path) -> None:
    """Two steps that are busy with arithmetic do not lend it to one that moves memory."""
    base = 1_751_328_001_000_000_000
    rows = "".join(
        f"{base + i * 10_000_000},0,{tensor},{dram}\n"
        for i in range(32)
        for tensor, dram in ((0.95, 0.1) if i < 21 else (0.1, 0.95),)
    )
    report = report_of(tmp_path, job(ELEMENTWISE), ACTIVITY + rows)
    labels = [step.label for step in report.ranks[0].steps]
    assert labels == ["compute-bound", "compute-bound", "memory-bound"]


SPEED_OF_LIGHT = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Kernel Time",'
    '"Device","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def test_nsight_compute_tells_of_kernels_without_a_known_name(tmp_path: Path) -> None:
    """Memory at 71 % and multiprocessors at 33 % of their peaks: traffic holds the kernel up."""
    row = '"{}","7","python3","h","zz9","1","7","12:00","0","GPU Speed Of Light","{}","%","{}"\n'
    named = (("Compute (SM) Throughput", 33), ("Memory Throughput", 71))
    rows = "".join(row.format(i, name, share) for i in range(3) for name, share in named)
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch("zz9", 100_000)
            b.sync()
    alone, beside = (report_of(tmp_path, b, *t) for t in ((), (SPEED_OF_LIGHT + rows,)))
    assert alone.job.label == "unknown"
    assert beside.job.label == "memory-bound"


@pytest.mark.parametrize("converted", [False, True])
def test_ranges_of_cupti_in_the_trace_price_its_kernels(tmp_path: Path, converted: bool) -> None:
    """Instructions and traffic that were counted stand before what shapes say."""
    counts = {f"smsp__sass_thread_inst_executed_op_f{op}_pred_on.sum": 0.0 for op in ("add", "mul")}
    counts |= {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 5e9}
    for width in "hd":
        ops = (f"{width}{op}" for op in ("add", "mul", "fma"))
        counts |= {f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": 0 for op in ops}
    counts |= {"dram__bytes_read.sum": 3e9, "dram__bytes_write.sum": 1e9}
    counts |= {"sm__inst_executed_pipe_tensor.sum": 0}
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 6, dims=[[4096, 4096], [4096, 4096]]):
        b.launch(GEMM, 3000)
    kernel = next(event for event in b.clock.events if event.get("cat") == "kernel")
    about = {"ph": "X", "cat": "cuda_profiler_range", "pid": 0, "tid": 0, "dur": 1, "args": counts}
    b.clock.events.append({**about, "name": GEMM, "ts": kernel["ts"]})
    path = b.write(tmp_path / "trace.json")
    if converted:
        convert(str(path), path := tmp_path / "trace.pftrace")
    roofline = analyze([str(path)], Options()).ranks[0].roofline
    assert roofline is not None
    (found,) = roofline.kernels
    assert (found.source, found.flops, found.bytes) == ("counters", 1e10, 4e9)
    assert found.bound == "memory"


def test_a_device_that_is_busy_with_waiting_is_bound_by_neither(tmp_path: Path) -> None:
    """Tensor 1 %, memory 2 %: that a kernel is resident all the time does not count."""
    report = report_of(tmp_path, job(), activity(0.01, 0.02))
    assert region(report, "steps").roof == "neither"
    assert "model.disagrees" in kinds(report)


def test_bits_have_no_mean(tmp_path: Path) -> None:
    """Reasons for low clocks become the share of the time in which one slows the device down."""
    column = "clocks_event_reasons.active"
    rows = [{column: "0x0000000000000004"}] * 15 + [{column: "0x0000000000000000"}] * 16
    report = report_of(tmp_path, job(), counter_table(10_000, rows))
    (found,) = region(report, "steps").figures
    assert found.metric == "throttled"
    assert found.mean == pytest.approx(0.5, abs=0.01)


def test_peaks_that_a_user_names_reach_the_roofline(tmp_path: Path) -> None:
    """The same product is under the roof of another device."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 6, dims=[[4096, 4096], [4096, 4096]]):
        b.launch(GEMM, 1000)
    report = report_of(tmp_path, b, device="NVIDIA A100 SXM 80GB")
    roofline = report.ranks[0].roofline
    assert roofline is not None
    assert roofline.device == "NVIDIA A100 SXM 80GB"


@pytest.mark.parametrize(("device", "one_way"), [(None, 450e9), ("NVIDIA A100 SXM 80GB", 300e9)])
def test_peaks_that_a_user_names_reach_the_links(
    tmp_path: Path, device: str | None, one_way: float
) -> None:
    """The same transfers are a share of the links of another device."""
    paths = [str(b.write(tmp_path / f"{n}.json")) for n, b in enumerate(fleet(2, seed=None))]
    rows = analyze(paths, Options(device=device)).collectives
    shares = [(row.link_share, row.bus_bandwidth) for row in rows if row.link_share]
    assert shares
    assert all(share * one_way == pytest.approx(bandwidth) for share, bandwidth in shares)


def test_more_arithmetic_than_the_device_can_do_is_refused(tmp_path: Path) -> None:
    """A product of 137 GFLOP in 100 us is no measurement: no MFU, and a reason."""
    b = KinetoBuilder()
    with b.step(), b.op("aten::mm", 6, dims=[[4096, 4096], [4096, 4096]]):
        b.launch(GEMM, 100)
    report = report_of(tmp_path, b)
    roofline = report.ranks[0].roofline
    assert roofline is not None
    assert (roofline.mfu, roofline.hfu) == (None, None)
    assert "mfu.impossible" in kinds(report)


CASES = Path(__file__).parents[2] / "../shared/cases"


@pytest.mark.skipif(not CASES.exists(), reason="needs the collection of cases")
class TestCases:
    """Counters from public bug reports, beside a trace of ours."""

    def test_missing_is_not_zero(self, tmp_path: Path) -> None:
        """Means are over what was sampled; a cell of two values run together is none."""
        paths = [str(CASES / "68-counter-csv-na" / name) for name in ("smi.csv", "dmon.txt")]
        trace = str(job().write(tmp_path / "trace.json"))
        report = analyze([trace], Options(counters=paths))
        figures = [timeline(report, name) for name in ("gpu_busy", "power", "sm_clock")]
        assert [one.samples for one in figures] == [3, 2, 3]
        assert [one.mean for one in figures] == pytest.approx([0.8, 300.3, 1405e6])
        count = {n.kind: n.count for n in report.notices if n.kind.startswith("counter.")}
        assert count == {"counter.missing": 4, "counter.invalid": 1}

    def test_ratios_are_not_percent_and_busy_is_no_evidence(self, tmp_path: Path) -> None:
        """SM 98 %, tensor 1 %, memory 2 %, 100 % busy: never bound by arithmetic."""
        path = str(CASES / "69-ratio-or-percent-counters/dcgm.csv")
        b = KinetoBuilder()
        for _ in range(3):
            with b.step():
                b.launch(GEMM, 1_000_000)
                b.sync()
        trace = str(b.write(tmp_path / "trace.json"))
        report = analyze([trace], Options(counters=[path], counters_offset_ns=10**9))
        row = region(report, "steps")
        means = [figure(row, f"{name}_active").mean for name in ("sm", "tensor", "dram")]
        assert means == pytest.approx([0.98, 0.01, 0.02], rel=5e-3)
        assert figure(row, "gpu_busy").mean == 1
        assert row.roof == "neither"

    def test_a_share_above_one_is_set_aside(self, tmp_path: Path) -> None:
        """1.294 is neither believed nor made 1."""
        path = str(CASES / "69-ratio-or-percent-counters/mig.csv")
        report = analyze([str(job().write(tmp_path / "t.json"))], Options(counters=[path]))
        assert timeline(report, "sm_active", "GPU-I 22").mean == 0.977
        count = {n.kind: n.count for n in report.notices if n.kind.startswith("counter.")}
        assert count == {"counter.out_of_range": 1}
