"""`nvidia-smi dmon` and `dcgmi dmon`."""

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

DMON = """\
# gpu    pwr  gtemp  mtemp     sm    mem   rxpci  txpci     fb  tviol
# Idx      W      C      C      %      %    MB/s   MB/s     MB   bool
    0    300     55      -     90     40      12      3   2847      0
    1      -     54      -      0      0       0      0      4      1
# gpu    pwr  gtemp  mtemp     sm    mem   rxpci  txpci     fb  tviol
# Idx      W      C      C      %      %    MB/s   MB/s     MB   bool
    0    301     56      -     91     41      13      4   2848      0
"""

DCGMI = """\
#Entity   SMACT        TENSO        POWER
ID
GPU 0     N/A          N/A          N/A
GPU-I 1   0.500        0.250        100.5
GPU 0     0.900        0.500        397.637
"""


def test_dmon_is_read(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """Headers that come again, dashes, and MB that are MiB."""
    found = read(DMON)
    assert (found.format, found.clock) == ("nvidia-smi dmon", "none")
    first = by_name(found, 0)
    assert first["gpu_busy"].counter.values.tolist() == [0.90, 0.91]
    assert first["memory_used"].counter.values.tolist() == [2847.0 * 2**20, 2848.0 * 2**20]
    assert first["pcie_rx"].counter.values.tolist() == [12e6, 13e6]
    assert first["power"].counter.ts_ns.tolist() == [0, 10**9]
    assert by_name(found, 1)["throttled"].counter.values.tolist() == [1.0]
    assert noticed(found) == {"counter.missing": 4, "clock.unanchored": 23}


def test_dmon_as_csv_is_read(read: Read, by_name: ByName) -> None:
    """`--format csv` has the same header and rows, with commas."""
    text = "\n".join(",".join(line.split()) for line in DMON.replace("# ", "#").splitlines())
    found, plain = read(text), read(DMON)
    assert [t.counter.name for t in found.timelines] == [t.counter.name for t in plain.timelines]
    assert by_name(found)["power"].counter.values.tolist() == [300.0, 301.0]


def test_performance_metrics_are_percentages(read: Read, by_name: ByName) -> None:
    """Columns of `--gpm-metrics`: activity in percent, traffic in MiB a second."""
    text = "#gpu smutil mmaact nvltx\n#Idx % % MB\n 0 50 12.5 100\n"
    timelines = by_name(read(text))
    assert timelines["sm_active"].counter.values.tolist() == [0.5]
    assert timelines["tensor_active"].counter.values.tolist() == [0.125]
    assert timelines["nvlink_tx"].counter.values.tolist() == [100.0 * 2**20]


def test_times_of_day_go_from_the_first_sample(read: Read, by_name: ByName) -> None:
    """`-o T` has no date: the start comes from the user, midnight is passed."""
    text = "#Time gpu sm\n#HH:MM:SS Idx %\n 23:59:59 0 10\n 00:00:01 0 20\n"
    assert by_name(read(text))["gpu_busy"].counter.ts_ns.tolist() == [0, 2 * 10**9]
    found = read(text, start_unix_ns=START_NS)
    assert found.clock == "given"
    assert by_name(found)["gpu_busy"].counter.ts_ns.tolist() == [START_NS, START_NS + 2 * 10**9]


def test_dcgmi_is_read(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """The n-th row of an entity is its n-th sample; an instance is no device."""
    found = read(DCGMI, start_unix_ns=START_NS, period_ns=100 * 10**6)
    assert (found.format, found.clock) == ("dcgmi dmon", "given")
    timelines = by_name(found)
    assert timelines["sm_active"].counter.ts_ns.tolist() == [START_NS + 100 * 10**6]
    assert timelines["power"].counter.values.tolist() == [397.637]
    assert {t.entity for t in found.timelines if t.counter.device == ABSENT} == {"GPU-I 1"}
    assert noticed(found) == {"counter.missing": 3}


def test_values_run_together_set_the_row_aside(
    read: Read, by_name: ByName, noticed: Noticed
) -> None:
    """Where two columns have become one, nothing tells which cell is which."""
    found = read(DCGMI + "GPU 0     0.900        0.500397.637\n")
    assert noticed(found)["counter.invalid"] == 1
    assert len(by_name(found)["sm_active"].counter.values) == 1


def test_two_recordings_in_one_file_are_refused(read: Read) -> None:
    """Columns that change on the way are not mixed."""
    with pytest.raises(InputError, match="two different headers"):
        read(DCGMI + DCGMI.replace("TENSO", "DRAMA"))


def test_dmon_stand_in(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """The stand-in with date and time: the clock falls in the ninth second."""
    found = read(shared("traces/synthetic/nvidia_smi_dmon_s_puc_o_DT.txt"), utc_offset_s=0)
    assert (found.format, found.clock) == ("nvidia-smi dmon", "given")
    clock = by_name(found)["sm_clock"].counter
    assert clock.values.tolist() == [1.98e9] * 8 + [1.41e9] * (len(clock.values) - 8)
    assert clock.ts_ns.tolist() == [START_NS + i * 10**9 for i in range(len(clock.values))]
    assert noticed(found) == {"counter.missing": 6 * len(clock.values)}


def test_dcgmi_stand_in(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """The stand-in of dcgmi: 30 samples of two GPUs; NVLink starts two samples late."""
    name = "dcgmi_dmon_e1001_1002_1004_1005_1009_1010_1011_1012.txt"
    found = read(shared(f"traces/synthetic/{name}"))
    for device in (0, 1):
        timelines = by_name(found, device)
        assert {len(t.counter.values) for t in timelines.values()} == {28, 30}
        assert timelines["sm_active"].counter.values[:3].tolist() == [0.9, 0.89, 0.88]
        assert timelines["nvlink_tx"].counter.ts_ns[0] == 2 * 10**9
        assert timelines["pcie_tx"].counter.values[0] == 12345678.0
    assert noticed(found) == {"counter.missing": 8, "clock.unanchored": 472}


def test_a_damaged_cell_is_no_number(
    read: Read, shared: Shared, by_name: ByName, noticed: Noticed
) -> None:
    """Case 68: `N/A161262243332996445` is damage, not a traffic of 1.6e17."""
    case = "cases/68-counter-csv-na"
    checks = json.loads(shared(f"{case}/expected.json"))["checks"]
    found = read(shared(f"{case}/dmon.txt"))
    assert noticed(found)["counter.invalid"] == checks["invalid_cells"]["dmon.txt"]
    assert by_name(found)["pcie_tx"].counter.values.tolist() == [1024.0]
    assert by_name(found)["gpu_busy"].counter.values.tolist() == [0.55, 0.57]
