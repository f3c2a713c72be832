"""Loops with a known limit: what they claim to do, how their reports are compared, a dry run."""

import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from counter_tables import counter_table
from kineto_builder import GEMM, KinetoBuilder

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.costs import cost_of, parse_shapes
from perfdiag.profiler.counters import ClockHints
from perfdiag.profiler.counters.opening import open_counters
from perfdiag.trace_schemas.report import LEAF_LABEL, Report

torch = pytest.importorskip("torch")

from gpu_checks import (  # noqa: E402 - they need torch
    MOST_BYTES,
    Check,
    Truth,
    achieved,
    check_report,
    check_size,
    exit_code,
    expected,
    shown,
)
from gpu_loops import (  # noqa: E402
    LOOPS,
    Loop,
    attention_flops,
    convolution_flops,
    product_flops,
    training_bytes,
)
from gpu_recording import QUERY, local_offset_s, record, sampled, scrubbed, steps_in, timed  # noqa: E402
from on_gpu import main, run_all  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

CPU = torch.device("cpu")
LOOP = {loop.name: loop for loop in LOOPS}
SIZE, PRODUCT_US, PRODUCTS = 4096, 200, 5
CLOCK_S = PRODUCTS * PRODUCT_US / 1e6

COSTED = {
    "products": {"aten::mm": 2},
    "elementwise": {"aten::add": 2, "aten::mul_": 2, "aten::copy_": 2},
    "convolution": {"aten::convolution": 1, "aten::convolution_backward": 1},
    "attention": {
        "aten::_scaled_dot_product_flash_attention_for_cpu": 1,
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward": 1,
    },
    "training": {"aten::mm": 5, "aten::_fused_adamw_": 1},
}
"""Operators that do the work of one tiny step, and how often."""


@pytest.fixture(scope="module")
def dry_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("on_gpu")
    assert main(["--device", "cpu", "--out", str(out)]) == 0
    return out


def events_of(trace: Path) -> list[dict[str, Any]]:
    return list(json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"])


def test_dry_run_has_a_report_of_every_loop(dry_run: Path) -> None:
    """All parts work together, and nothing is asserted of a CPU."""
    found = json.loads((dry_run / "results.json").read_text())
    assert [loop["name"] for loop in found["loops"]] == [loop.name for loop in LOOPS]
    for loop in found["loops"]:
        assert loop["step_s"] > 0
        assert {"label", "leaf", "mfu", "size"} <= {check["what"] for check in loop["checks"]}
        assert {check["passed"] for check in loop["checks"]} == {None}


@pytest.mark.parametrize("name", LOOP)
def test_traces_hold_the_steps_that_were_asked_for(dry_run: Path, name: str) -> None:
    """Marked by the profiler, in a file that is small and names no machine."""
    trace = dry_run / f"{name}.json.gz"
    marked = {e["name"] for e in events_of(trace) if e["name"].startswith("ProfilerStep#")}
    assert len(marked) == LOOP[name].active
    assert trace.stat().st_size < MOST_BYTES
    assert os.uname().nodename not in gzip.decompress(trace.read_bytes()).decode()


def costs_in(trace: Path, ops: dict[str, int], *, flops: bool) -> Iterator[int]:
    """FLOPs or bytes of all calls of some operators, by the models that rooflines rest on."""
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    for event in events_of(trace):
        # A number that becomes a tensor on a CPU has no dimensions.
        if event.get("name") in ops and event["args"].get("Input Dims", [[]])[0]:
            shapes = parse_shapes(event["name"], *(event["args"].get(key) for key in keys))
            cost = cost_of(shapes, "c10::BFloat16")
            assert cost is not None
            yield cost.flops if flops else cost.bytes


@pytest.mark.parametrize("name", COSTED)
def test_claims_are_what_the_operators_of_the_trace_come_to(dry_run: Path, name: str) -> None:
    """A formula and the models of single operators say the same, to the last byte."""
    loop, ops = LOOP[name], COSTED[name]
    trace = dry_run / f"{name}.json.gz"
    calls = Counter(event["name"] for event in events_of(trace))
    assert all(calls[op] >= count * loop.active for op, count in ops.items())
    whole = sum(costs_in(trace, ops, flops=loop.truth.quantity == "FLOP/s"))
    numbers = 8 * calls["aten::mul_"]  # the number that `mul_` scales by is an input of 8 bytes
    assert whole - numbers == loop.active * loop.prepare(CPU, True).amount


@pytest.mark.parametrize("name", ["products", "convolution"])
def test_claims_are_what_torch_counts(name: str) -> None:
    """PyTorch's own counter knows nothing of our models."""
    prepared = LOOP[name].prepare(CPU, True)
    with FlopCounterMode(display=False) as counter:
        prepared.step()
    assert counter.get_total_flops() == prepared.amount


def test_formulas() -> None:
    """By hand, small enough to count."""
    assert product_flops(2, 3, 4) == 48
    assert attention_flops(1, 1, 3, 2) == 7 * 2 * 2 * 6  # 1 + 2 + 3 pairs
    assert convolution_flops((1, 2, 3, 3), 4, 3) == 3 * 2 * 9 * 4 * 2 * 9
    # One layer of 2 by 2 and one token: y = x W, dW = x' dy; then AdamW over 4 parameters.
    assert training_bytes(1, 2, 1) == 2 * (2 * (2 + 4 + 2) + 7 * 4)


def test_every_loop_claims_what_agrees() -> None:
    """The leaf speaks for the label; so do kernels where they fill the step."""
    for loop in LOOPS:
        assert LEAF_LABEL[loop.truth.leaf] == loop.truth.label
        if loop.truth.leaf in ("compute_kernel", "memory_kernel"):
            assert loop.truth.label == f"{loop.truth.bound}-bound"
            assert loop.truth.quantity is not None


def test_time_is_that_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps fill the time; the first, which compiles, does not count."""
    now, lengths_s = [0.0], iter([5.0, 0.25, *[0.125, 0.375] * 4])
    monkeypatch.setattr("gpu_recording.time.perf_counter", lambda: now[0])
    step_s = timed(lambda: now.append(now.pop() + next(lengths_s)), CPU, 2.0)
    assert step_s == 0.25
    assert list(lengths_s) == []


@pytest.mark.parametrize(
    ("seconds", "step_s", "count"),
    [(1.0, 0.1, 10), (1.0, 0.15, 7), (0.1, 1.0, 2), (1.0, 0.0, 5000)],
)
def test_steps_that_fill_a_time(seconds: float, step_s: float, count: int) -> None:
    """Rounded up, never fewer than two, and never without end."""
    assert steps_in(seconds, step_s) == count


def test_only_the_steps_in_the_middle_are_recorded(tmp_path: Path) -> None:
    """Steps before and after run, unseen."""
    calls: list[int] = []

    def step() -> None:
        calls.append(len(calls))
        with torch.profiler.record_function(f"step {calls[-1]}"):
            pass

    record(step, CPU, 2, 3, tmp_path / "trace.json.gz")
    named = {e["name"] for e in events_of(tmp_path / "trace.json.gz")}
    assert {name for name in named if name.startswith("step ")} == {"step 4", "step 5"}
    assert len(calls) == 3 + 1 + 2 + 3


def test_traces_name_no_machine() -> None:
    """Nor folders, and every event has one line."""
    text = (
        '{\n  "traceEvents": [\n  {\n    "ph": "X",\n    "ts": 1\n  }],\n  "host_name": "node7",'
        '\n  "traceName": "/tmp/a/trace.json"\n}'
    )
    found = scrubbed(text, "products")
    assert json.loads(found) == {
        "traceEvents": [{"ph": "X", "ts": 1}],
        "host_name": "host",
        "traceName": "products",
    }
    assert '"ph": "X", "ts": 1' in found


HEAD = (
    "timestamp, index, utilization.gpu [%], utilization.memory [%], clocks.current.sm [MHz], "
    "clocks.current.memory [MHz], power.draw [W], temperature.gpu, memory.used [MiB]"
)
ROW = "0, 100 %, 40 %, 1980 MHz, 3201 MHz, 650.1 W, 51, 900 MiB"


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool of that name, which writes samples until it is ended."""
    path = tmp_path / "bin/nvidia-smi"
    path.parent.mkdir()
    loop = f'while date "+%Y/%m/%d %H:%M:%S.%3N, {ROW}"; do sleep 0.01; done'
    path.write_text(f"#!/bin/sh\necho '{HEAD}'\n{loop.replace(' %,', ' %%,')}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)


@pytest.mark.usefixtures("nvidia_smi")
def test_samples_beside_a_loop_can_be_read(tmp_path: Path) -> None:
    """Every column that is asked for, by the clock of the loop; the tool ends with the loop."""
    samples, began_ns = tmp_path / "samples.csv", time.time_ns()
    with sampled(samples):
        while not samples.exists() or len(samples.read_bytes().splitlines()) < 5:
            time.sleep(0.01)
    ended_ns, size = time.time_ns(), samples.stat().st_size
    hints = ClockHints(utc_offset_s=local_offset_s())
    (opened,) = open_counters([str(samples)], hints)
    found = {one.counter.name: one.counter for one in opened.found.timelines}
    assert len(found) == len(QUERY.split(",")) - 2
    assert set(found["sm_clock"].values.tolist()) == {1980e6}
    times = found["sm_clock"].ts_ns
    assert began_ns - 1_000_000 <= times.min() <= times.max() <= ended_ns
    assert samples.stat().st_size == size


@pytest.mark.usefixtures("nvidia_smi")
def test_samples_go_into_the_analysis(tmp_path: Path) -> None:
    """They are read beside the trace; in that of a CPU the GPU that they are of is not there."""
    (only,) = run_all([LOOP["loading"]], CPU, 0.1, tmp_path)
    assert [c.found for c in only.checks if c.what == "counters"] == ["not placed"]


def test_without_the_tool_there_are_no_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing fails, and nothing is written."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with sampled(tmp_path / "samples.csv"):
        pass
    assert not (tmp_path / "samples.csv").exists()


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Four steps of five products of 137 GFLOP in 200 us: 687 TFLOP/s on an H100."""
    folder = tmp_path_factory.mktemp("products")
    b = KinetoBuilder()
    for _ in range(4):
        with b.step():
            for _ in range(PRODUCTS):
                with b.op("aten::mm", 2, dims=[[SIZE, SIZE], [SIZE, SIZE]]):
                    b.launch(GEMM, PRODUCT_US)
            b.sync()
    (folder / "samples.csv").write_text(counter_table(100, [{"utilization.gpu [%]": 100}] * 40))
    trace = b.write(folder / "products.json")
    return analyze([str(trace)], Options(counters=[str(folder / "samples.csv")]))


def passed(report: Report, truth: Truth, by_clock: float | None) -> dict[str, bool | None]:
    return {c.what: c.passed for c in check_report(report, truth, by_clock, counters=False)}


AMOUNT = PRODUCTS * product_flops(SIZE, SIZE, SIZE)
COMPUTE = Truth("compute-bound", "compute_kernel", "compute", "FLOP/s")


def test_a_report_that_is_right_passes(products: Report) -> None:
    """Label, leaf, utilisation, bound and figure."""
    by_clock = expected("FLOP/s", AMOUNT, CLOCK_S)
    assert achieved(products, "FLOP/s") == pytest.approx(by_clock)
    assert set(passed(products, COMPUTE, by_clock).values()) == {True}


def test_what_is_wrong_in_a_report_fails(products: Report) -> None:
    """Each by itself."""
    other = Truth("memory-bound", "copy", "memory", "FLOP/s")
    by_clock = expected("FLOP/s", AMOUNT, CLOCK_S)
    assert passed(products, other, by_clock / 1.2) == {
        "label": False,
        "leaf": False,
        "mfu": True,
        "bound": False,
        "figure": False,
    }


@pytest.mark.parametrize(
    ("factor", "right"), [(0.88, True), (0.86, False), (1.17, True), (1.18, False)]
)
def test_figures_agree_within_15_percent(products: Report, factor: float, right: bool) -> None:
    """Of what the clock says."""
    by_clock = factor * expected("FLOP/s", AMOUNT, CLOCK_S)
    assert passed(products, COMPUTE, by_clock)["figure"] is right


def test_bytes_and_times_are_compared_alike(products: Report) -> None:
    """Traffic by three matrices a product; steps by their median, which has gaps."""
    amount = PRODUCTS * 3 * SIZE * SIZE * 2
    assert achieved(products, "byte/s") == pytest.approx(expected("byte/s", amount, CLOCK_S))
    median = products.job.step_time_ns.median
    assert median is not None
    assert achieved(products, "s/step") == median / 1e9
    assert expected("s/step", 0, CLOCK_S) == CLOCK_S


def test_without_a_roofline_nothing_can_be_said_of_it(tmp_path: Path) -> None:
    """What cannot be told is not wrong."""
    b = KinetoBuilder()
    with b.step():
        with b.op("aten::mm", 2):
            b.launch(GEMM, 900)
        b.sync()
    report = analyze([str(b.write(tmp_path / "products.json"))], Options())
    assert passed(report, COMPUTE, 1e12) == {
        "label": True,
        "leaf": True,
        "mfu": None,
        "bound": None,
        "figure": None,
    }


def test_samples_must_have_found_their_place(products: Report) -> None:
    """On the clock of the trace; a report without them is wrong where there were some."""
    without = msgspec.structs.replace(products, counters=[])
    for report, right in ((products, True), (without, False)):
        checks = check_report(report, COMPUTE, None, counters=True)
        assert [c.passed for c in checks if c.what == "counters"] == [right]


def test_a_trace_may_be_too_large(tmp_path: Path) -> None:
    """Then it is no fixture."""
    (tmp_path / "large").write_bytes(bytes(MOST_BYTES + 1))
    (tmp_path / "small").write_bytes(bytes(MOST_BYTES))
    assert check_size(tmp_path / "large").passed is False
    assert check_size(tmp_path / "small").passed is True


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [((True, True), 0), ((True, None), 2), ((None, False), 1), ((True, False), 1), ((), 2)],
)
def test_exit_code(outcomes: tuple[bool | None, ...], code: int) -> None:
    """What is wrong counts before what could not be told."""
    assert exit_code(Check("label", "", "", one) for one in outcomes) == code


def test_the_table_marks_what_is_wrong() -> None:
    """And what could not be compared."""
    checks = [Check("a", "1", "1", True), Check("b", "1", "2", False), Check("c", "1", "3", None)]
    assert [shown(checks, what) for what in "abcd"] == ["1", "2 !", "3 ?", ""]


def test_a_loop_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    """It has a check that says why, and the next one runs."""

    def broken(device: object, tiny: bool) -> Any:
        msg = "CUDA out of memory\nand more"
        raise RuntimeError(msg)

    loops = [Loop("broken", COMPUTE, 1, broken), LOOP["products"]]
    first, second = run_all(loops, CPU, 0.01, tmp_path)
    assert [(c.what, c.found, c.passed) for c in first.checks] == [
        ("run", "RuntimeError: CUDA out of memory", False)
    ]
    assert second.step_s > 0


def test_loops_that_come_too_late_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is inconclusive then."""
    monkeypatch.setattr("on_gpu.LIMIT_S", -1.0)
    (only,) = run_all([LOOP["products"]], CPU, 0.01, tmp_path)
    assert exit_code(only.checks) == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_is_inconclusive(tmp_path: Path) -> None:
    """And says so, rather than fall back to the CPU."""
    assert main(["--out", str(tmp_path)]) == 2


def test_a_loop_that_is_not_there_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named in the message."""
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "--loops", "products,nothing"])
    assert "nothing" in capsys.readouterr().err
