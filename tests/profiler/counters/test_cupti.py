"""Counters of CUPTI inside PyTorch's traces."""

import gzip
import json
from collections.abc import Callable
from typing import Any

from perfdiag.profiler.counters import SetAside, range_kernels
from perfdiag.profiler.sources.kineto import KinetoOptions, read_kineto
from perfdiag.trace_schemas.recording import Recording

Shared = Callable[[str], bytes]

FADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
FMUL = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


def recorded(events: list[dict[str, Any]], *, keep_args: bool = True) -> Recording:
    data = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    return read_kineto(data, "trace.json", KinetoOptions(keep_args=keep_args))


def ranged(name: str, ts: int, **args: Any) -> dict[str, Any]:
    about = {"ph": "X", "cat": "cuda_profiler_range", "pid": 2, "tid": 0, "dur": 10}
    return {**about, "name": name, "ts": ts, "args": args}


def test_ranges_become_kernels() -> None:
    """In order of time, with the operations that follow from the instructions."""
    counts = {FADD: 1, FMUL: 2, FFMA: 10}
    recording = recorded([ranged("b", 200, **{"other.sum": "n/a"}), ranged("a", 100, **counts)])
    aside = SetAside()
    kernels, units = range_kernels(recording, aside)
    assert [(k.name, k.device, k.ordinal) for k in kernels] == [("a", 2, 0), ("b", 2, 0)]
    assert kernels[0].values == {FADD: 1.0, FMUL: 2.0, FFMA: 10.0, "flops_fp32": 23.0}
    assert units["flops_fp32"] == "FLOP"
    assert aside.missing == {"other.sum": 1}


def test_other_traces_have_none() -> None:
    """Nothing without such slices, or without their arguments."""
    plain = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    assert range_kernels(recorded([plain]), SetAside()) == ([], {})
    recording = recorded([ranged("a", 100, **{FADD: 1})], keep_args=False)
    assert range_kernels(recording, SetAside()) == ([], {})


def test_a_real_trace(shared: Shared) -> None:
    """77 kernels of a real A100 trace; a name that Kineto did not learn is empty."""
    data = gzip.decompress(shared("traces/kineto/nvidia/a100_cupti_range_profiler.json.gz"))
    recording = read_kineto(data, "trace.json", KinetoOptions(keep_args=True))
    aside = SetAside()
    kernels, _ = range_kernels(recording, aside)
    assert len(kernels) == 77
    assert {k.device for k in kernels} == {0}
    assert kernels[1].name == ""
    assert kernels[1].values["flops_fp32"] == 2 * 9119334400 + 24780800
    assert not any((aside.missing, aside.invalid, aside.out_of_range))
