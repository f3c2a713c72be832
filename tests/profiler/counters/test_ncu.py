"""Nsight Compute's pages."""

from collections.abc import Callable

import pytest

from perfdiag.profiler.counters import CounterFile
from perfdiag.trace_schemas.errors import InputError

Read = Callable[..., CounterFile]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]

ABOUT = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream"'
RAW = f"""\
==PROF== Connected to process 7 (/usr/bin/python3)
==WARNING== something, with a comma
{ABOUT},"Block Size","Grid Size","Device","CC","gpu__time_duration.sum","dram__bytes_read.sum",\
"launch__registers_per_thread","smsp__inst_executed.sum","sm__warps_active.avg.pct_of_peak_\
sustained_active"
"","","","","","","","","","","","us","Mbyte","register/thread","Kinst","%"
"0","7","python3","h","k<1, 2>(int)","1","7","(256, 1, 1)","(8, 2, 1)","0","9.0","1,705.25","2.5",\
"168","3.5","12.5"
"1","7","python3","h","k<1, 2>(int)","1","7","(256, 1, 1)","(8, 2, 1)","0","9.0","700","n/a","168",\
"3.5","112.5"
"""
DETAILS = f"""\
{ABOUT},"Kernel Time","Device","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","python3","h","k","1","7","12:00","0","GPU Speed Of Light","Memory Throughput","%","71.2"
"0","7","python3","h","k","1","7","12:00","0","Memory Workload","Memory Throughput",\
"Gbyte/second","2.5"
"0","7","python3","h","k","1","7","12:00","0","GPU Speed Of Light","Duration","msecond","1.5"
"0","7","python3","h","k","1","7","12:00","0","GPU Speed Of Light","","",""
"3","7","python3","h","other","1","7","12:00","0","Occupancy","Achieved Occupancy","%","50"
"""
SUMMARY = """\
"Process ID","Process Name","Host Name","Kernel Name","Invocations","Section Name","Metric Name",\
"Metric Unit","Minimum","Maximum","Average"
"7","python3","h","k","40","GPU Speed Of Light","Duration","usecond","1","3","2"
"""


def test_the_raw_page_is_read(read: Read, noticed: Noticed) -> None:
    """Units below the header, prefixes, separators, and two launches of one kernel."""
    found = read(RAW)
    assert (found.format, found.timelines) == ("nsight compute", ())
    first, second = found.kernels
    assert (first.name, first.ordinal, second.ordinal) == ("k<1, 2>(int)", 0, 1)
    assert (first.grid, first.block, first.device) == ((8, 2, 1), (256, 1, 1), 0)
    assert first.values == {
        "duration": 0.00170525,
        "dram_read_bytes": 2.5e6,
        "registers_per_thread": 168.0,
        "smsp__inst_executed.sum": 3500.0,
        "occupancy": 0.125,
    }
    assert found.kernel_units["duration"] == "s"
    assert found.kernel_units["smsp__inst_executed.sum"] == "inst"
    assert second.values.keys() == first.values.keys() - {"dram_read_bytes", "occupancy"}
    assert noticed(found) == {"counter.missing": 1, "counter.out_of_range": 1}


def test_the_details_page_is_read(read: Read) -> None:
    """One row a figure; one name for two quantities is told apart by its unit."""
    first, other = read(DETAILS).kernels
    assert first.values == {
        "memory_share": 0.712,
        "Memory Throughput [bytes/s]": 2.5e9,
        "duration": 0.0015,
    }
    assert (other.name, other.values) == ("other", {"occupancy": 0.5})


def test_the_summary_is_read(read: Read) -> None:
    """The average over all launches of a kernel."""
    (kernel,) = read(SUMMARY).kernels
    assert (kernel.launches, kernel.values) == (40, {"duration": 2e-6})


def test_a_page_without_kernels_is_refused(read: Read) -> None:
    """A header alone: nothing was profiled."""
    with pytest.raises(InputError, match="not one kernel"):
        read(RAW.split('"",')[0])


def test_a_cut_page_is_read_to_the_cut(read: Read, noticed: Noticed) -> None:
    """The row that ends early is counted, the ones before it are kept."""
    found = read(RAW[:-20])
    assert len(found.kernels) == 1
    assert noticed(found) == {"counter.invalid": 1}


def test_raw_stand_in(read: Read, shared: Shared, noticed: Noticed) -> None:
    """The stand-in of the raw page: two launches, one of which has no traffic."""
    found = read(shared("traces/synthetic/ncu_page_raw.csv"))
    first, second = found.kernels
    assert first.values["dram_read_bytes"] == 1048.58e6
    assert (first.values["dram_share"], second.values["dram_share"]) == (0.712, 0.702)
    assert (first.values["tensor_share"], second.values["tensor_share"]) == (0.551, 0.541)
    assert (first.grid, first.block) == ((132, 1, 1), (256, 1, 1))
    assert "dram_read_bytes" not in second.values
    assert noticed(found) == {"counter.missing": 1}


def test_details_stand_in(read: Read, shared: Shared) -> None:
    """The stand-in of the details page: lines of the tool above, rows of rules between."""
    found = read(shared("traces/synthetic/ncu_page_details.csv"))
    assert [kernel.ordinal for kernel in found.kernels] == [0, 1]
    for kernel in found.kernels:
        assert kernel.values == {
            "kernel_dram_clock": 2.62e9,
            "kernel_sm_clock": 1.75e9,
            "Elapsed Cycles": 1234567.0,
            "memory_share": 0.712,
            "dram_share": 0.712,
            "duration": 705.18e-6,
            "compute_share": 0.331,
            "registers_per_thread": 168.0,
            "occupancy": 0.124,
        }
    assert found.notices == ()
