"""rocprof-compute: counters by dispatch."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiag.profiler.counters import CounterFile

Read = Callable[..., CounterFile]
Noticed = Callable[[CounterFile], dict[str, int]]
Shared = Callable[[str], bytes]

SAMPLES = Path(__file__).parents[3] / "../shared/traces/rocprof-compute"
TABLES = [str(path.relative_to(SAMPLES)) for path in sorted(SAMPLES.glob("*/*.csv"))]
COPIES = ["kernel_MI100", "kernel_MI200", "kernel_MI300A_A1", "kernel_MI300X_A1"]
COPIES += ["vcopy_MI300X_A1_rocpd"]
ELEMENTS_BYTES = 1048576 * 8

LONG = """\
GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,Kernel_Name,Start_Timestamp,End_Timestamp,Kernel_ID,\
Counter_Name,Counter_Value
2,1,1024,256,"k(a, b)",1000,3000,12,SQ_WAVES,16.0
2,1,1024,256,"k(a, b)",5000,7000,12,SQ_INSTS_VALU_MFMA_MOPS_F16,2
2,1,1024,256,"k(a, b)",5000,7000,12,SQ_INSTS_VALU_MFMA_MOPS_BF16,3
2,1,1024,256,"k(a, b)",5000,7000,12,SQ_INSTS_VALU_MFMA_MOPS_F32,0
2,1,1024,256,"k(a, b)",5000,7000,12,SQ_INSTS_VALU_MFMA_MOPS_F64,0
"""


def test_a_dispatch_is_one_over_all_its_passes(read: Read) -> None:
    """The long form lists a dispatch once a pass; its first times stand."""
    found = read(LONG)
    (kernel,) = found.kernels
    assert (kernel.name, kernel.grid, kernel.block) == ("k(a, b)", (1024,), (256,))
    assert (kernel.start_ns, kernel.dur_ns) == (1000, 2000)
    assert kernel.values["SQ_WAVES"] == 16.0
    assert kernel.values["duration"] == 2e-6


def test_operations_follow_from_counters(read: Read) -> None:
    """A count of MFMA stands for 512 operations; types that a device lacks count as none."""
    (kernel,) = read(LONG).kernels
    assert kernel.values["flops_matrix"] == 5 * 512.0
    assert read(LONG).kernel_units["flops_matrix"] == "FLOP"


def test_an_end_before_the_start_is_no_duration(read: Read) -> None:
    """Times that cannot be are left out."""
    (kernel,) = read(LONG.replace("1000,3000", "3000,1000")).kernels
    assert (kernel.dur_ns, "duration" in kernel.values) == (-1, False)


@pytest.mark.parametrize("name", TABLES)
def test_real_tables_are_read(read: Read, shared: Shared, name: str) -> None:
    """Every real table is recognised, and no cell in it is damaged."""
    found = read(shared(f"traces/rocprof-compute/{name}"))
    assert found.format == "rocprof-compute"
    assert found.notices == ()
    assert bool(found.kernels) != bool(found.facts)


@pytest.mark.parametrize("name", COPIES)
def test_real_traffic_is_that_of_the_copy(read: Read, shared: Shared, name: str) -> None:
    """`vecCopy` of 2^20 doubles reads and writes 8 MiB, and does no arithmetic, on each device.

    The L2 of an MI200 is as large: some of what later launches write stays in it.
    """
    found = read(shared(f"traces/rocprof-compute/{name}/pmc_perf.csv"))
    assert [kernel.ordinal for kernel in found.kernels] == [0, 1, 2]
    for kernel in found.kernels:
        assert kernel.values["dram_read_bytes"] == pytest.approx(ELEMENTS_BYTES, rel=0.01)
        assert kernel.values["dram_written_bytes"] <= ELEMENTS_BYTES * 1.005
        assert kernel.values.get("flops_fp64", 0.0) == 0.0
        assert kernel.values.get("flops_matrix", 0.0) == 0.0
    written = found.kernels[0].values["dram_written_bytes"]
    assert written == pytest.approx(ELEMENTS_BYTES, rel=0.005)


def test_real_wide_and_long_counters_are_all_there(read: Read, shared: Shared) -> None:
    """No column of a wide table and no name of a long one is lost."""
    wide = shared("traces/rocprof-compute/kernel_MI300X_A1/pmc_perf.csv").decode()
    columns = {n for n in next(csv.reader(io.StringIO(wide))) if n.startswith(("SQ", "TC", "GRBM"))}
    assert columns <= read(wide).kernels[0].values.keys()
    long = shared("traces/rocprof-compute/vcopy_MI300X_A1_rocpd/pmc_perf.csv").decode()
    names = {row["Counter_Name"] for row in csv.DictReader(io.StringIO(long))}
    assert names <= read(long).kernels[0].values.keys()


def test_real_system_facts(read: Read, shared: Shared) -> None:
    """The table of the system and the measured ceilings are kept as they stand."""
    facts = read(shared("traces/rocprof-compute/kernel_MI200/sysinfo.csv")).facts
    assert (facts["gpu_arch"], facts["max_sclk"]) == ("gfx90a", "1700")
    ceilings = read(shared("traces/rocprof-compute/kernel_MI200/roofline.csv")).facts
    assert float(ceilings["HBMBw"]) == 1388.8003
