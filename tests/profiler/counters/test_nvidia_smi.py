"""`nvidia-smi --query-gpu`, and tables with fields of DCGM as columns."""

import json
from collections.abc import Callable

import pytest

from perfdiag.profiler.counters import CounterFile, Timeline
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import ABSENT

Read = Callable[..., CounterFile]
ByName = Callable[..., dict[str, Timeline]]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]

START_NS = 1_767_225_600 * 10**9

QUERY = """\
timestamp, index, uuid, pstate, power.draw [W], utilization.gpu [%], memory.used [MiB], brand new
2026/01/01 00:00:00.250, 0, GPU-a, P0, 300.50 W, 90 %, 1024 MiB, 7
2026/01/01 00:00:01.250, 0, GPU-a, P0, [N/A], 80 %, 2048 MiB, 8
"""


def test_a_query_is_read(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """Units in cells, local times, and a mark for what is missing."""
    found = read(QUERY)
    assert (found.format, found.clock) == ("nvidia-smi", "local")
    timelines = by_name(found)
    assert timelines["power"].counter.values.tolist() == [300.5]
    assert timelines["gpu_busy"].counter.values.tolist() == [0.9, 0.8]
    assert timelines["memory_used"].counter.values.tolist() == [1024.0 * 2**20, 2048.0 * 2**20]
    assert timelines["gpu_busy"].counter.ts_ns.tolist() == [
        START_NS + 250_000_000,
        START_NS + 1_250_000_000,
    ]
    assert timelines["power"].labels == {"uuid": "GPU-a"}
    assert noticed(found) == {"counter.missing": 1, "clock.unanchored": 7}


@pytest.mark.parametrize("column", ["hostname", "Hostname", "host", "node"])
def test_a_table_of_several_hosts_keeps_their_devices_apart(read: Read, column: str) -> None:
    """Two devices 0 are two timelines, which bear the names of their hosts."""
    text = f"timestamp_ns,{column},gpu_id,DCGM_FI_DEV_POWER_USAGE\n"
    text += f"{START_NS},a,0,100\n{START_NS},b,0,300\n"
    found = {t.labels[column]: t.counter.values.tolist() for t in read(text).timelines}
    assert found == {"a": [100], "b": [300]}


def test_what_is_new_is_kept(read: Read) -> None:
    """A column outside the vocabulary keeps its name; one of text is named."""
    found = read(QUERY)
    assert found.unknown == {"brand new": 2}
    assert found.text_columns == ("pstate",)


def test_the_zone_anchors_it(read: Read, by_name: ByName) -> None:
    """With the zone of the machine the times are Unix times, and no notice is left."""
    found = read(QUERY, utc_offset_s=-7200)
    assert found.clock == "given"
    assert by_name(found)["gpu_busy"].counter.ts_ns[0] == START_NS + 7200 * 10**9 + 250_000_000
    assert [n.kind for n in found.notices] == ["counter.missing"]


def test_units_may_be_stripped(read: Read, by_name: ByName) -> None:
    """With `nounits` the unit stands in the header alone."""
    header = "timestamp, index, power.draw [W], clocks.sm [MHz]\n"
    text = f"{header}2026/01/01 00:00:00.000, 3, 99.5, 1980\n"
    timelines = by_name(read(text), 3)
    assert timelines["power"].counter.values.tolist() == [99.5]
    assert timelines["sm_clock"].counter.values.tolist() == [1.98e9]
    assert timelines["sm_clock"].counter.scale == 1e6


def test_rows_of_another_length_are_invalid(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """A row that is cut short is set aside whole."""
    found = read(QUERY + "2026/01/01 00:00:02.250, 0, GPU-a, P0, 3")
    assert noticed(found)["counter.invalid"] == 1
    assert len(by_name(found)["gpu_busy"].counter.values) == 2


def test_rows_without_time_are_invalid(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """A row whose time cannot be read has no place."""
    found = read(QUERY + "garbage, 0, GPU-a, P0, 300 W, 70 %, 1 MiB, 9\n")
    assert noticed(found)["counter.invalid"] == 1
    assert len(by_name(found)["gpu_busy"].counter.values) == 2


def test_without_times_rows_are_periods_apart(read: Read, by_name: ByName) -> None:
    """A query without timestamp needs a start and a period."""
    text = "index, utilization.gpu [%]\n" + "0, 50 %\n1, 60 %\n" * 3
    found = read(text, start_unix_ns=START_NS, period_ns=10**8)
    assert found.clock == "given"
    expected = [START_NS, START_NS + 10**8, START_NS + 2 * 10**8]
    assert by_name(found, 1)["gpu_busy"].counter.ts_ns.tolist() == expected


def test_a_query_without_header_is_refused(read: Read) -> None:
    """What columns mean is not guessed."""
    with pytest.raises(InputError, match="without `noheader`"):
        read("2026/01/01 00:00:00.250, 0, 300.50 W, 90 %\n")


def test_a_partition_is_no_device(read: Read, noticed: Noticed) -> None:
    """A MIG instance is not the GPU; a share above 1 is flagged."""
    found = read("entity,DCGM_FI_PROF_SM_ACTIVE\nGPU-I 21,1.294\nGPU-I 22,0.977\n")
    (timeline,) = found.timelines
    assert (timeline.counter.device, timeline.entity) == (ABSENT, "GPU-I 22")
    assert noticed(found)["counter.out_of_range"] == 1


def test_stand_in(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """The stand-in of a query: two GPUs, one of which has no power and no clock."""
    found = read(shared("traces/synthetic/nvidia_smi_query_gpu.csv"))
    assert noticed(found)["counter.missing"] == 24
    first, second = by_name(found, 0), by_name(found, 1)
    assert first["power"].counter.values.tolist() == [690.0 + i for i in range(12)]
    assert first["sm_clock"].counter.values[-1] == 1.65e9
    assert first["throttle_reasons"].counter.values.tolist() == [4.0] * 12
    assert first["memory_used"].counter.values[0] == 70000 * 2**20
    assert "power" not in second
    assert second["gpu_busy"].counter.values.tolist() == [0.0] * 12
    assert first["power"].period_ns == 1_007_000_000


def test_missing_is_not_zero(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """Case 68: means over what is there, and the cells that are not counted."""
    case = "cases/68-counter-csv-na"
    checks = json.loads(shared(f"{case}/expected.json"))["checks"]
    found = read(shared(f"{case}/smi.csv"))
    timelines = by_name(found)
    busy = timelines["gpu_busy"].counter.values
    assert busy.mean() * 100 == pytest.approx(checks["mean_util_pct"])
    assert timelines["power"].counter.values.mean() == pytest.approx(checks["mean_power_w"])
    assert timelines["sm_clock"].counter.values.mean() / 1e6 == checks["mean_sm_mhz"]
    assert noticed(found)["counter.missing"] == checks["missing_cells"]["smi.csv"]


def test_the_field_tells_the_unit(
    read: Read, shared: Shared, by_name: ByName, noticed: Noticed
) -> None:
    """Case 69: shares of profiling fields beside percentages, and one share above 1."""
    case = "cases/69-ratio-or-percent-counters"
    checks = json.loads(shared(f"{case}/expected.json"))["checks"]
    timelines = by_name(read(shared(f"{case}/dcgm.csv")))
    for metric, key in (
        ("sm_active", "sm_active_pct_mean"),
        ("tensor_active", "tensor_active_pct"),
        ("dram_active", "dram_active_pct"),
    ):
        mean = timelines[metric].counter.values.mean()
        assert mean * 100 == pytest.approx(checks[key])
    assert timelines["gpu_busy"].counter.values.tolist() == [1.0, 1.0, 1.0]
    flagged = noticed(read(shared(f"{case}/mig.csv")))["counter.out_of_range"]
    assert flagged == checks["out_of_range"]["mig.csv"]
