"""Platforms have the peaks of the table of devices, and reach a share of them."""

import pytest

from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.platforms import PLATFORMS, platform_named
from perfdiag.profiler.simulator.program import Kernel
from perfdiag.trace_schemas.devices import find_device
from perfdiag.trace_schemas.errors import UsageError


def known() -> list[Platform]:
    """Platforms whose device is in the table."""
    return [platform for platform in PLATFORMS.values() if find_device(platform.device)]


def test_platforms_are_of_three_vendors() -> None:
    """Nine or more, so that some can be kept for tests."""
    assert len(PLATFORMS) >= 9
    assert {platform.vendor for platform in PLATFORMS.values()} == {"nvidia", "amd", "intel"}
    assert len(known()) == len(PLATFORMS) - 1


@pytest.mark.parametrize("platform", known(), ids=lambda p: p.name)
def test_peaks_are_those_of_the_device_that_the_trace_names(platform: Platform) -> None:
    """The analysis looks the device up by that name, and must find the same roofs."""
    device = find_device(platform.device)
    assert device is not None
    assert device.memory is not None
    assert device.vendor == platform.vendor
    assert platform.bytes_per_s == device.memory.datasheet
    assert platform.multiprocessors == device.sm_count
    half = device.compute("fp16")
    assert half is not None
    assert platform.flops_per_s["fp16"] == half.datasheet


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda p: p.name)
def test_nothing_is_faster_than_its_peak(platform: Platform) -> None:
    """Shares are shares, every type has a peak, and longer types are no faster."""
    shares = (*platform.efficiency.values(), *platform.bytes_efficiency.values())
    assert all(0 < share <= 1 for share in shares)
    assert set(platform.flops_per_s) == {"fp32", "tf32", "bf16", "fp16", "fp8"}
    peaks = platform.flops_per_s
    assert peaks["fp32"] <= peaks["tf32"] <= peaks["fp16"] <= peaks["fp8"]
    assert platform.far.bytes_per_s < platform.near.bytes_per_s


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda p: p.name)
def test_large_products_are_bound_by_arithmetic_and_sums_by_memory(platform: Platform) -> None:
    """On every platform, in half precision."""
    large = Kernel("gemm", "fp16", (8192, 8192, 8192), 2.0 * 8192**3, 6.0 * 8192**2)
    sums = Kernel("elementwise", "fp16", (1 << 26,), 3.0 * (1 << 26), 6.0 * (1 << 26))
    for kernel, faster in ((large, "flops"), (sums, "bytes")):
        arithmetic = Kernel(
            kernel.family, kernel.dtype, kernel.dims, kernel.flops / 2, kernel.bytes
        )
        traffic = Kernel(kernel.family, kernel.dtype, kernel.dims, kernel.flops, kernel.bytes / 2)
        less = {"flops": arithmetic, "bytes": traffic}
        times = {key: platform.kernel_ns(found) for key, found in less.items()}
        assert min(times, key=lambda key: times[key]) == faster


def test_an_unknown_platform_is_refused_with_the_known_ones() -> None:
    """The message lists them."""
    with pytest.raises(UsageError, match="mi300x"):
        platform_named("abacus")
