"""Prometheus: text of exporters, and answers of its API."""

import json
from collections.abc import Callable

import pytest

from perfdiag.profiler.counters import CounterFile, Timeline, read_scrapes
from perfdiag.profiler.sources.files import Blob
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT

Read = Callable[..., CounterFile]
ByName = Callable[..., dict[str, Timeline]]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]
Blobs = Callable[..., Blob]

START_NS = 1_767_225_600 * 10**9

DCGM = """\
# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b",Hostname="n0",pod=""} 0.75
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b",GPU_I_ID="3",Hostname="n0"} 0.25
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1",UUID="GPU-b",Hostname="n0"} %d
# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="1",UUID="GPU-b",Hostname="n0"} 1e+06
"""


def test_a_scrape_is_read(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """One moment: states as they are, a total as the total, a rate that is called a counter."""
    found = read(DCGM % 5000)
    assert (found.format, found.clock) == ("prometheus", "none")
    timelines = by_name(found, 1)
    assert timelines["sm_active"].counter.values.tolist() == [0.75]
    assert timelines["sm_active"].entity == "n0 GPU 1"
    assert timelines["energy"].counter.values.tolist() == [5.0]
    assert timelines["pcie_tx"].counter.values.tolist() == [1e6]
    assert noticed(found) == {"clock.unanchored": 4}


def test_an_instance_is_no_device(read: Read, by_name: ByName) -> None:
    """What a MIG instance does is not what the device does."""
    (instance,) = by_name(read(DCGM % 5000), ABSENT).values()
    assert instance.entity == "n0 GPU 1 GPU-I 3"
    assert instance.counter.values.tolist() == [0.25]


def test_scrapes_in_a_row_are_samples(read: Read, by_name: ByName) -> None:
    """`curl` in a loop into one file: the series come again, a period apart."""
    found = read(DCGM % 0 + DCGM % 300_000 + DCGM % 600_000, period_ns=10**9)
    timelines = by_name(found, 1)
    assert timelines["sm_active"].counter.ts_ns.tolist() == [0, 10**9, 2 * 10**9]
    assert timelines["power_mean"].counter.values.tolist() == [300.0, 300.0]


def test_scrapes_named_by_time_are_anchored(blob: Blobs, by_name: ByName) -> None:
    """A folder of `<Unix time>.prom`."""
    blobs = [blob(DCGM % (k * 300_000), f"dir/{1767225600 + k}.prom") for k in (1, 0)]
    found = read_scrapes(blobs)
    assert found.clock == "exact"
    timelines = by_name(found, 1)
    assert timelines["sm_active"].counter.ts_ns.tolist() == [START_NS, START_NS + 10**9]
    assert timelines["power_mean"].counter.values.tolist() == [300.0]


@pytest.mark.parametrize("name", ["scrape.prom", "12.prom", ""])
def test_scrapes_need_times_for_names(blob: Blobs, name: str) -> None:
    """A scrape without time cannot be placed among others."""
    with pytest.raises(InputError, match="Unix time"):
        read_scrapes([blob(DCGM % 0, name)])


def test_no_scrape_is_refused() -> None:
    """An empty folder."""
    with pytest.raises(InputError, match="there is none"):
        read_scrapes([])


def test_lines_may_bear_times(read: Read, by_name: ByName) -> None:
    """Milliseconds in the text format, seconds in OpenMetrics."""
    line = 'neuroncore_utilization_ratio{neuroncore="2"} 0.5 '
    text = read(f"{line}1767225600000\n{line}1767225601000\n")
    metrics = read(f"# TYPE x gauge\n{line}1767225600.0\n{line}1767225601.0\n# EOF\n")
    for found in (text, metrics):
        assert found.clock == "exact"
        counter = by_name(found, 2)["core_busy"].counter
        assert counter.ts_ns.tolist() == [START_NS, START_NS + 10**9]


def test_escapes_and_exemplars(read: Read) -> None:
    """Quotes, backslashes and line breaks in labels; what follows ` # ` is an exemplar."""
    found = read('m_x{a="q\\"b\\\\c\\n",le="+Inf"} 3 # {trace_id="1"} 0.67\n')
    (timeline,) = found.timelines
    assert timeline.labels == {"a": 'q"b\\c\n', "le": "+Inf"}
    assert timeline.counter.values.tolist() == [3.0]


def test_what_is_no_value_is_counted(read: Read, noticed: Noticed) -> None:
    """NaN is missing, infinity is no number, and a broken line is no sample."""
    found = read("# TYPE a gauge\na 1\nb NaN\nc{ 5\nd +Inf 1 2 3\n")
    assert [t.counter.name for t in found.timelines] == ["a"]
    assert (noticed(found)["counter.missing"], noticed(found)["counter.invalid"]) == (1, 2)


def test_node_exporter_becomes_rates(read: Read) -> None:
    """Bytes and CPU seconds since boot become rates; labels tell the devices apart."""
    text = "".join(
        "# TYPE node_cpu_seconds_total counter\n"
        f'node_cpu_seconds_total{{cpu="0",mode="idle"}} {k}\n'
        f'node_network_receive_bytes_total{{device="eth0"}} {k * 1e9}\n'
        for k in (0, 1, 2)
    )
    cpu, network = read(text, period_ns=2 * 10**9).timelines
    assert (cpu.counter.name, cpu.counter.values.tolist()) == ("cpu_share", [0.5, 0.5])
    assert cpu.labels == {"cpu": "0", "mode": "idle"}
    assert (network.counter.name, network.counter.device) == ("network_rx", ABSENT)
    assert network.counter.values.tolist() == [5e8, 5e8]


def answer(**data: object) -> str:
    return json.dumps({"status": "success", "data": data})


def test_a_query_range_is_read(read: Read, by_name: ByName) -> None:
    """The form in which people can export: seconds with milliseconds, values as text."""
    row = {
        "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "Hostname": "n1"},
        "values": [[1767225600.123, "100"], [1767225615.123, "97"], [1767225630.123, "NaN"]],
    }
    found = read(answer(resultType="matrix", result=[row]))
    assert (found.format, found.clock) == ("prometheus query", "exact")
    counter = by_name(found)["gpu_busy"].counter
    assert counter.values.tolist() == [1.0, 0.97]
    assert counter.ts_ns.tolist() == [START_NS + 123_000_000, START_NS + 15_123_000_000]


def test_an_instant_query_is_read(read: Read) -> None:
    """One value a series; without a name it is called `value`."""
    row = {"metric": {"gpu": "1"}, "value": [1767225600, "42"]}
    (timeline,) = read(answer(resultType="vector", result=[row])).timelines
    assert (timeline.counter.name, timeline.counter.values.tolist()) == ("value", [42.0])


def test_an_error_of_the_api_is_told(read: Read) -> None:
    """The reason that Prometheus gives is passed on."""
    with pytest.raises(InputError, match="bad_data"):
        read('{"status":"error","errorType":"x","error":"bad_data: parse error"}')


def test_a_cut_answer_is_refused(read: Read) -> None:
    """Half an answer is no answer."""
    row = {"metric": {"gpu": "1"}, "values": [[1767225600, "42"]]}
    with pytest.raises(InputError, match="no complete answer"):
        read(answer(resultType="matrix", result=[row])[:-9])


def test_stand_in(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """The stand-in of dcgm-exporter: a blank of 64 bits is missing."""
    found = read(shared("traces/synthetic/dcgm_exporter_scrape.prom"))
    timelines = by_name(found, 0)
    values = {name: t.counter.values.tolist() for name, t in timelines.items()}
    assert values == {
        "sm_clock": [1.98e9],
        "power": [690.5],
        "tensor_active": [0.51],
        "dram_active": [0.4],
        "pcie_tx": [1234567.0],
        "energy": [123456789.012],
    }
    assert noticed(found) == {"counter.missing": 2, "clock.unanchored": 12}


DUMPS = [
    "normal/xpu_timer_metric_0",
    "hang/xpu_timer_metric_all",
    "hang/xpu_timer_metric_some",
    "xpu_timer_metric_single",
]


@pytest.mark.parametrize("name", DUMPS)
def test_real_dumps_are_read_whole(read: Read, shared: Shared, name: str) -> None:
    """Every sample of a real dump of eight ranks is there, under its own name."""
    data = shared(f"traces/prometheus/{name}")
    lines = [line for line in data.decode().splitlines() if line and line[0] != "#"]
    found = read(data)
    assert len(found.timelines) == len(lines)
    assert [n.kind for n in found.notices] == ["clock.unanchored"]
    for timeline, line in zip(found.timelines, lines, strict=True):
        assert line.startswith(timeline.source_name)
        assert timeline.counter.values.tolist() == [float(line.rsplit(" ", 1)[1])]
    assert sum(found.unknown.values()) == len(lines)


def test_a_hang_shows_in_a_real_dump(read: Read, shared: Shared) -> None:
    """The counter that says that ranks hang is kept, with the rank in its labels."""
    found = read(shared("traces/prometheus/hang/xpu_timer_metric_all"))
    hung = [t for t in found.timelines if t.counter.name == "XPU_TIMER_COMMON_HANG"]
    assert sorted(t.labels["rank"] for t in hung) == [str(rank) for rank in range(8)]
    assert {float(t.counter.values[0]) for t in hung} == {1.0}
