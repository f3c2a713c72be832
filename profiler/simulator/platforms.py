"""Platforms that jobs are simulated on.

Peaks, memory and links are those of `trace_schemas/devices.toml`. What programs reach of them, and
what hosts and drivers cost, are data with their reasons: see `platforms.toml`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from perfdiag.profiler.simulator.platform import Link, Platform
from perfdiag.profiler.simulator.program import Dtype
from perfdiag.trace_schemas.devices import DevicePeaks, find_device
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["PLATFORMS", "platform_named"]

Vendor = Literal["nvidia", "amd", "intel"]

DTYPES: tuple[Dtype, ...] = ("fp32", "tf32", "bf16", "fp16", "fp8")

INSTEAD: Mapping[Dtype, tuple[Dtype, ...]] = {
    "fp32": (),
    "tf32": ("fp32",),
    "bf16": ("fp32",),
    "fp16": ("fp32",),
    "fp8": ("fp16", "bf16"),
}
"""What a device computes in where it lacks a type: V100 has neither TF32 nor BF16 and falls back to
float32 units; FP8 is widened first."""

LINK_SHARE: Mapping[Vendor, float] = {"nvidia": 0.80, "amd": 0.65}
"""Of its links' rate, what a large collective gets: nccl-tests shows 360 of 450 GB/s on H100 and
235 of 300 on A100, rccl-tests 300 of 448 on MI300X."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What the table of devices does not say.

    Attributes:
        device: in that table; `written`: as traces write it; `vendor`.
        gemm, conv, attention: shares of peak compute that their best shapes reach.
        stream: share of the memory bandwidth of kernels that go over memory in order.
        near: link to the other ranks of the host where the table has none, GB/s.
        far: through the network, a rank's share, GB/s.
        host: speed of its host; `launch_us`, `latency_us`: of a launch.
        floor_us, graph_us: of a kernel, and between two of a graph.
        pinned: copies from page-locked memory, GB/s.
        contention: slow-down of kernels beside a collective.
        per_host: ranks in a host.
    """

    device: str
    written: str
    vendor: Vendor
    gemm: float
    conv: float
    attention: float
    stream: float
    far: float
    host: float
    launch_us: float
    latency_us: float
    floor_us: float
    graph_us: float
    pinned: float
    contention: float
    near: float = 0.0
    per_host: int = 8


_ROWS: Mapping[str, _Row] = {
    name: _Row(**row)
    for name, row in tomllib.loads(
        Path(__file__).with_name("platforms.toml").read_text(encoding="utf-8")
    ).items()
}


def _platform(name: str, row: _Row) -> Platform:
    peaks = find_device(row.device)
    assert peaks is not None, row.device
    assert peaks.memory is not None, row.device
    links = peaks.scale_up
    near = 1e9 * row.near if links is None else links.one_way_bytes_s * LINK_SHARE[row.vendor]
    return Platform(
        name=name,
        vendor=row.vendor,
        device=row.written,
        multiprocessors=peaks.sm_count,
        memory_bytes=peaks.memory_bytes,
        flops_per_s=_peaks(peaks),
        bytes_per_s=peaks.memory.datasheet,
        **_efficiency(row),
        near=Link(1_500.0, near),
        far=Link(6_000.0, 1e9 * row.far),
        **_host(row),
    )


def _peaks(device: DevicePeaks) -> dict[Dtype, float]:
    """Peak of the units that PyTorch uses for a type: matrix units, float32 on all that can."""
    found: dict[Dtype, float] = {}
    for dtype in DTYPES:
        for stand_in in (dtype, *INSTEAD[dtype]):
            peak = device.compute(stand_in)
            if dtype not in found and peak is not None:
                found[dtype] = peak.datasheet
    return found


class _Shares(TypedDict):
    efficiency: Mapping[str, float]
    bytes_efficiency: Mapping[str, float]


def _efficiency(row: _Row) -> _Shares:
    """Shares by family: what `row` has, and what holds everywhere.

    Operations of kernels that use no matrix units are counted against the peak of matrix units,
    of which vector units are a tenth or less. Gathers of rows, sorts and transposes move less
    than whole lines of the cache.
    """
    compute = {"gemm": row.gemm, "convolution": row.conv, "attention": row.attention}
    scattered = {"embedding": 0.55, "index": 0.60, "sort": 0.35, "layout": 0.70, "scan": 0.60}
    moved = {family: share * row.stream for family, share in scattered.items()}
    return {
        "efficiency": {**compute, "depthwise_convolution": 0.03, "default": 0.06},
        "bytes_efficiency": {**moved, "norm": 0.92 * row.stream, "default": row.stream},
    }


class _Host(TypedDict):
    ranks_per_host: int
    floor_ns: float
    launch_ns: float
    latency_ns: float
    graph_gap_ns: float
    host_speed: float
    pinned_bytes_per_s: float
    pageable_bytes_per_s: float
    contention: float


def _host(row: _Row) -> _Host:
    """Times in ns; pageable memory is copied twice, by one core."""
    return {
        "ranks_per_host": row.per_host,
        "floor_ns": row.floor_us * 1e3,
        "launch_ns": row.launch_us * 1e3,
        "latency_ns": row.latency_us * 1e3,
        "graph_gap_ns": row.graph_us * 1e3,
        "host_speed": row.host,
        "pinned_bytes_per_s": 1e9 * row.pinned,
        "pageable_bytes_per_s": min(8e9 * row.host, 1e9 * row.pinned / 2),
        "contention": row.contention,
    }


def _intel() -> Platform:
    """One stack of an Intel Data Center GPU Max 1550, which PyTorch sees as a device.

    Compute is what products reached on one stack. The figures are those of ALCF's page on Aurora
    (https://docs.alcf.anl.gov/aurora/node-performance-overview/node-performance-overview/) as
    another web page quotes them, not read in the original. Memory is half of the card's
    3.2768 TB/s and 128 GB (Intel ARK, product 232873). Links are choices: nobody's measurement.
    """
    row = _ROWS["max1550"]
    return Platform(
        name="max1550",
        vendor=row.vendor,
        device=row.written,
        multiprocessors=64,
        memory_bytes=64 << 30,
        flops_per_s={"fp32": 23e12, "tf32": 110e12, "bf16": 273e12, "fp16": 263e12, "fp8": 263e12},
        bytes_per_s=3.2768e12 / 2,
        **_efficiency(row),
        near=Link(2_500.0, 1e9 * row.near),
        far=Link(7_000.0, 1e9 * row.far),
        **_host(row),
    )


PLATFORMS: Mapping[str, Platform] = {
    **{name: _platform(name, row) for name, row in _ROWS.items() if name != "max1550"},
    "max1550": _intel(),
}


def platform_named(name: str) -> Platform:
    """The platform of a name.

    Raises:
        UsageError: there is none.
    """
    if name not in PLATFORMS:
        problem = f"no platform {name!r}: one of {', '.join(PLATFORMS)}"
        raise UsageError(problem)
    return PLATFORMS[name]
