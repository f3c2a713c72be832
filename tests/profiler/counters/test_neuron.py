"""neuron-monitor."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from perfdiag.profiler.counters import CounterFile, Timeline
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT

Read = Callable[..., CounterFile]
ByName = Callable[..., dict[str, Timeline]]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]

START_NS = 1_767_225_600 * 10**9


def report(busy: float | None, flops: str = "flops", completed: int = 10) -> dict[str, Any]:
    core = {"neuroncore_utilization": busy, flops: 5 * 10**12}
    counters = {"period": 2.0, "neuroncores_in_use": {"1": core}, "error": ""}
    latency = {"device_latency": {"p50": 0.001, "p99": None}}
    execution = {
        "period": 2.0,
        "execution_summary": {"completed": completed},
        "latency_stats": latency,
        "error": "",
    }
    groups = {"neuroncore_counters": counters, "execution_stats": execution}
    devices = [{"neuron_device_index": 3, "mem_ecc_corrected": 4}]
    system = {
        "memory_info": {"period": 2.0, "memory_used_bytes": 1024, "error": ""},
        "neuron_hw_counters": {"period": 2.0, "neuron_devices": devices},
    }
    return {
        "neuron_runtime_data": [{"pid": 7, "error": "", "report": groups}],
        "system_data": system,
        "neuron_hardware_info": {"neuron_device_count": 16, "error": ""},
    }


def lines(*reports: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in reports)


def test_reports_are_a_period_apart(read: Read, by_name: ByName) -> None:
    """The n-th report is the n-th sample; how far apart, the reports say."""
    found = read(lines(report(50.0), report(89.5)), start_unix_ns=START_NS)
    assert (found.format, found.clock) == ("neuron-monitor", "given")
    core = by_name(found, 1)
    assert core["core_busy"].counter.values.tolist() == [0.5, 0.895]
    assert core["core_busy"].counter.ts_ns.tolist() == [START_NS, START_NS + 2 * 10**9]
    assert core["flops"].counter.values.tolist() == [5e12, 5e12]
    assert core["flops"].entity == "NeuronCore 1"


def test_newer_names_are_known(read: Read, by_name: ByName) -> None:
    """Since 2.30 `flops` is called `effective_flops`."""
    found = read(lines(report(50.0, "effective_flops")))
    assert by_name(found, 1)["flops"].counter.values.tolist() == [5e12]


def test_host_and_executions(read: Read, by_name: ByName) -> None:
    """Executions of a period become a rate; memory of the host is the host's."""
    host = by_name(read(lines(report(50.0, completed=10), report(50.0, completed=30))), ABSENT)
    assert host["executions"].counter.values.tolist() == [5.0, 15.0]
    assert host["host_memory_used"].counter.values.tolist() == [1024.0, 1024.0]
    assert host["host_memory_used"].entity == "host"


def test_the_rest_is_kept_by_its_path(read: Read) -> None:
    """Latencies and memory errors are outside the vocabulary, and are there."""
    found = read(lines(report(50.0), report(50.0)))
    assert found.unknown == {
        "execution_stats.latency_stats.device_latency.p50": 2,
        "neuron_hw_counters.neuron_devices.3.mem_ecc_corrected_rate": 1,
    }


def test_null_is_missing(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """An idle core has no figure."""
    found = read(lines(report(50.0), report(None)))
    assert by_name(found, 1)["core_busy"].counter.values.tolist() == [0.5]
    assert noticed(found)["counter.missing"] == 3


def test_a_cut_line_is_counted(read: Read, noticed: Noticed) -> None:
    """The monitor was stopped while it wrote."""
    text = lines(report(50.0), report(60.0))
    assert noticed(read(text[:-30]))["counter.invalid"] == 1


def test_one_report_over_many_lines_is_read(read: Read, by_name: ByName) -> None:
    """Somebody made it legible."""
    found = read(json.dumps(report(50.0), indent=2))
    assert by_name(found, 1)["core_busy"].counter.values.tolist() == [0.5]


def test_without_a_report_it_is_refused(read: Read) -> None:
    """The names alone are no report."""
    with pytest.raises(InputError, match="no complete report"):
        read('{"neuron_runtime_data": [')


def test_stand_in(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """The stand-in: eight reports of two logical cores with two physical ones each."""
    found = read(shared("traces/synthetic/neuron_monitor.jsonl"))
    assert by_name(found, 0)["core_busy"].counter.values[:2].tolist() == [0.42, 0.43]
    assert by_name(found, 1)["flops"].counter.values.tolist() == [1234567891011.0] * 8
    physical = {t.entity for t in found.timelines if t.entity.startswith("nc_")}
    assert physical == {"nc_v3.0", "nc_v3.1", "nc_v3.2", "nc_v3.3"}
    (memory,) = (t for t in found.timelines if t.counter.name == "memory_used")
    assert memory.counter.values[0] == 12519788544.0
    assert noticed(found) == {"clock.unanchored": 160}
