"""Counters of simulated devices tell what the kernels truly did."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_jobs import ROUND, job, kernel, launch, rank

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.profiler.counters import ClockHints, read_counters
from perfdiag.profiler.simulator.counters import CounterOptions, dcgm_csv, samples
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.events import DeviceWork, RankEvents
from perfdiag.profiler.simulator.kineto import TraceOptions, kineto_json
from perfdiag.profiler.simulator.program import (
    Collective,
    Copy,
    End,
    Kernel,
    Range,
    Synchronize,
)
from perfdiag.profiler.sources.files import Blob

PERIOD = CounterOptions(period_ns=1_000)


def events(*work: DeviceWork, of: int = 0) -> RankEvents:
    return RankEvents(of, [], [], list(work), [])


def ran(source: Kernel | Collective | Copy, start: int, end: int, moving: int = 0) -> DeviceWork:
    return DeviceWork("compute", source, start, end, 1, moving or start, 0, "other")


def values(metric: str, *work: DeviceWork, options: CounterOptions = PERIOD) -> list[float]:
    return [round(value, 9) for value in samples(events(*work), ROUND, options)[1][metric]]


def test_tensor_pipes_are_as_active_as_a_product_needs_them() -> None:
    """1,000 operations at 1 a ns take half of 2,000 ns, spread evenly over three periods."""
    work = ran(Kernel("gemm", "bf16", (128, 128, 64), 1_000.0, 0.0), 500, 2_500)
    assert values("tensor_active", work)[:3] == [0.25, 0.5, 0.25]
    assert not any(values("fp32_active", work))


def test_what_no_tensor_pipe_computes_is_fp32() -> None:
    """Pointwise operations, and products in full precision."""
    single = ran(Kernel("gemm", "fp32", (128, 128, 64), 500.0, 0.0), 0, 1_000)
    assert values("fp32_active", single)[0] == 0.5
    assert values("fp32_active", ran(kernel(250.0), 0, 1_000))[0] == 0.25
    assert not any(values("tensor_active", single))


def test_memory_moves_what_kernels_and_copies_do() -> None:
    """Bytes over bandwidth; a copy within the device reads and writes."""
    work = ran(Kernel("elementwise", "bf16", (1,), 0.0, 300.0), 0, 1_000)
    copies = [ran(Copy(100, direction), 1_000, 2_000) for direction in ("HtoD", "DtoD")]
    assert values("dram_active", work, copies[0])[:2] == [0.3, 0.1]
    assert values("dram_active", work, copies[1])[:2] == [0.3, 0.2]


def test_a_collective_moves_nothing_while_it_waits() -> None:
    """Its kernel is resident from the start all the same, on a few multiprocessors."""
    work = ran(Collective("all_reduce", "dp", 200), 0, 2_000, 1_000)
    assert values("dram_active", work)[:2] == [0.0, 0.4]
    assert values("gpu_busy", work)[:2] == [100.0, 100.0]
    assert values("sm_active", work)[:2] == [0.24, 0.24]


def test_small_grids_leave_multiprocessors_idle() -> None:
    """25 blocks of 1,024 elements occupy 25 of 100 multiprocessors, copies none of them."""
    work = ran(Kernel("elementwise", "bf16", (25 * 1024,), 0.0, 0.0), 0, 500)
    copy = ran(Copy(100, "HtoD"), 500, 1_000)
    assert values("sm_active", work, copy)[0] == 0.125
    assert values("gpu_busy", work, copy)[0] == 100.0


def test_time_in_which_anything_runs_counts_once() -> None:
    """Two streams at the same time are one busy device."""
    both = ran(kernel(1.0), 0, 600), ran(kernel(1.0), 200, 800)
    assert values("gpu_busy", *both)[:2] == [80.0, 0.0]


def test_a_device_that_does_nothing() -> None:
    """All shares are 0; the clock stands, and it takes little power."""
    times, idle = samples(events(), ROUND, PERIOD)
    assert times.tolist() == [1_000]
    assert idle["gpu_busy"].tolist() == idle["dram_active"].tolist() == [0.0]
    assert 0 < idle["power"][0] < 0.3 * PERIOD.power_w


def test_a_capped_clock_shows() -> None:
    """A rank whose device is slower has a lower clock, the others the usual one."""
    options = replace(PERIOD, speeds={0: 0.8}, clock_mhz=1_500.0)
    assert set(values("sm_clock", ran(kernel(1.0), 0, 10), options=options)) == {1_200.0}
    assert set(values("sm_clock", ran(kernel(1.0), 0, 10))) == {PERIOD.clock_mhz}


def test_power_follows_work() -> None:
    """A device that computes takes more than an idle one, and less than its limit."""
    busy = ran(Kernel("gemm", "bf16", (2048, 2048, 64), 1_000.0, 500.0), 0, 1_000)
    power = values("power", busy)
    assert power[1] < power[0] <= PERIOD.power_w


def test_the_table_is_read_on_the_clock_of_the_rank() -> None:
    """Times are Unix times, values come back as they were, and ordinals tell devices apart."""
    trace = TraceOptions(clock_offsets_ns={1: 17})
    options = CounterOptions(period_ns=1_000_000, trace=trace)
    of = [events(ran(kernel(1e6), 0, 4_000_000), of=number) for number in (0, 1)]
    text = dcgm_csv(of, ROUND, options)
    found = read_counters(Blob("x.csv", text.encode(), "unknown", len(text), ""), ClockHints())
    assert found.format == "dcgm table"
    lines = {(t.counter.device, t.counter.name): t for t in found.timelines}
    times, told = samples(of[1], ROUND, options)
    line = lines[1, "fp32_active"].counter
    assert line.ts_ns.tolist() == (times + trace.start_unix_ns + 17).tolist()
    assert line.values == pytest.approx(told["fp32_active"], abs=1e-6)
    assert lines[0, "gpu_busy"].counter.values.max() == 1.0
    assert {name for _, name in lines} == set(told)


def test_the_analysis_finds_what_the_kernels_did(tmp_path: Path) -> None:
    """Beside the trace of the job the counters give the share of peak that its products reach."""
    program = rank(
        Range("ProfilerStep#", "annotation"),
        *(launch(1e6) for _ in range(4)),
        Synchronize(),
        End(),
    )
    platform = replace(ROUND, efficiency={"default": 0.5}, host_speed=1.0)
    small = job(program, steps=5)
    (one,) = simulate(small, platform, 1).ranks
    (tmp_path / "rank0.json").write_bytes(kineto_json(one, small, platform, TraceOptions()))
    options = CounterOptions(period_ns=500_000)
    (tmp_path / "gpu.csv").write_text(dcgm_csv([one], platform, options))
    paths = [str(tmp_path / "rank0.json")]
    report = analyze(paths, Options(counters=[str(tmp_path / "gpu.csv")]))
    (row, *_) = [r for r in report.ranks[0].counters if r.kind == "steps"]
    figures = {figure.metric: figure.mean for figure in row.figures}
    assert figures["fp32_active"] == pytest.approx(0.5, abs=0.01)
    assert figures["gpu_busy"] == pytest.approx(1.0, abs=0.01)


def test_shares_never_exceed_one() -> None:
    """Overlapping kernels that would together do more than the device can are cut off there."""
    work = [ran(Kernel("gemm", "bf16", (64, 64, 64), 900.0, 900.0), 0, 1_000)] * 2
    _, told = samples(events(*work), ROUND, PERIOD)
    assert np.max([told[name] for name in ("tensor_active", "dram_active", "sm_active")]) == 1.0
