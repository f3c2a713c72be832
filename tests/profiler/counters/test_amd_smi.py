"""`amd-smi` and `rocm-smi`."""

from collections.abc import Callable

from perfdiag.profiler.counters import CounterFile, Timeline

Read = Callable[..., CounterFile]
ByName = Callable[..., dict[str, Timeline]]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]

START_NS = 1_767_225_600 * 10**9

# Header as AMDSMI 26.2 prints it on an MI355X.
METRIC = """\
timestamp,gpu,gfx_activity,umc_activity,mm_activity,vcn_activity,socket_power,throttle_status,gfx_0_clk,mem_0_clk,edge,hotspot,mem
1767225600,0,95,80,N/A,"['1', 'N/A', '3']",1180,UNTHROTTLED,1980,901,38,72,65
1767225601,0,88,75,N/A,"['2', 'N/A', '4']",1300,THROTTLED,1990,901,N/A,73,65
"""

MONITOR = """\
timestamp,gpu,xcp,power_usage,hotspot_temperature,memory_temperature,gfx_clk,gfx,mem,mem_clock,vram_used,vram_total
1767225600,0,0,650 W,60 C,45 C,2100 MHz,95 %,50 %,1300 MHz,1024 MB,196592 MB
"""

ROCM_HEADER = (
    "device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),GPU use (%),"
    "GPU Memory Allocated (VRAM%),VRAM Total Memory (B),VRAM Total Used Memory (B),"
    "sclk clock speed:"
)
ROCM = f"""\

WARNING: AMD GPU device(s) is/are in a low-power state.

{ROCM_HEADER}
card0,31.0,19.0,73,12,25753026560,27947008,(2100Mhz)
card1,28.0,N/A (Secondary die),0,0,25753026560,27947008,(132Mhz)
{ROCM_HEADER}
card0,32.0,20.0,74,12,25753026560,27947008,(2100Mhz)
"""


def test_metric_is_read(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """Unix seconds, words for throttling, one cell for several streams."""
    found = read(METRIC)
    assert (found.format, found.clock) == ("amd-smi", "exact")
    timelines = by_name(found)
    assert timelines["gpu_busy"].counter.values.tolist() == [0.95, 0.88]
    assert timelines["gpu_busy"].counter.ts_ns.tolist() == [START_NS, START_NS + 10**9]
    assert timelines["throttled"].counter.values.tolist() == [0.0, 1.0]
    assert timelines["memory_temperature"].counter.values.tolist() == [65.0, 65.0]
    assert timelines["vcn_activity[2]"].counter.values.tolist() == [3.0, 4.0]
    assert "vcn_activity[1]" not in timelines
    assert noticed(found) == {"counter.missing": 5}


def test_monitor_is_read(read: Read, by_name: ByName) -> None:
    """Other names, units in cells, and MB that are MiB."""
    timelines = by_name(read(MONITOR))
    assert timelines["power"].counter.values.tolist() == [650.0]
    assert timelines["gpu_busy"].counter.values.tolist() == [0.95]
    assert timelines["memory_used"].counter.values.tolist() == [1024.0 * 2**20]
    assert timelines["mem"].counter.values.tolist() == [0.5]


def test_rocm_smi_is_read(read: Read, by_name: ByName, noticed: Noticed) -> None:
    """Warnings above, units in names, the header again at each call."""
    found = read(ROCM, start_unix_ns=START_NS, period_ns=2 * 10**9)
    timelines = by_name(found)
    assert timelines["gpu_busy"].counter.values.tolist() == [0.73, 0.74]
    assert timelines["gpu_busy"].counter.ts_ns.tolist() == [START_NS, START_NS + 2 * 10**9]
    assert timelines["memory_used"].counter.values.tolist() == [27947008.0] * 2
    assert timelines["memory_used_share"].counter.values.tolist() == [0.12, 0.12]
    assert timelines["sm_clock"].counter.values.tolist() == [2.1e9, 2.1e9]
    assert "power" not in by_name(found, 1)
    assert noticed(found) == {"counter.missing": 1}


def test_stand_in(read: Read, shared: Shared, by_name: ByName, noticed: Noticed) -> None:
    """The stand-in: two devices, eight seconds, the clock falling by 50 MHz a second."""
    found = read(shared("traces/synthetic/amd_smi_metric_w1.csv"))
    assert found.clock == "exact"
    for device in (0, 1):
        timelines = by_name(found, device)
        falling = [2.1e9 - i * 50e6 for i in range(8)]
        assert timelines["sm_clock"].counter.values.tolist() == falling
        assert timelines["hotspot_temperature"].counter.values.tolist() == [*range(60, 68)]
        assert timelines["memory_temperature"].counter.values.tolist() == [45.0] * 8
    assert noticed(found) == {"counter.missing": 80}
    assert found.text_columns == ("power_management",)
