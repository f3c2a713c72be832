"""How long things take: peaks and efficiencies, links, hosts, and the chance in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Literal, NamedTuple

from perfdiag.profiler.simulator.program import Collective, Copy, Dtype, Kernel

__all__ = ["RESOURCES", "Link", "Noise", "Platform", "Resource", "with_faster"]

Resource = Literal["compute", "memory", "collective", "host"]
"""What can be made faster: arithmetic; memory traffic and copies; links; the host and its loader.
Each speaks for the label of its name."""

RESOURCES: tuple[Resource, ...] = ("compute", "memory", "collective", "host")

HALF_BYTES = 1 << 21
"""Traffic at which a kernel reaches half of the memory bandwidth that it can: ramps and tails of
1 us at 2 TB/s (a choice within what vendors' copy benchmarks show over sizes)."""

TILE = (128, 128)
"""Rows and columns that one multiprocessor computes of a product at a time (CUTLASS' default)."""


class Link(NamedTuple):
    """One way through a level of the network: latency of a hop, and bytes a second of a rank."""

    latency_ns: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Noise:
    """Spread of what is drawn for each occurrence: standard deviations of the logarithm."""

    kernels: float = 0.01
    host: float = 0.08
    transfers: float = 0.02
    loading: float = 0.10


@dataclass(frozen=True, slots=True)
class Platform:
    """One kind of device, in hosts of some, with what connects them.

    Attributes:
        name: for tables; `vendor`: whose kernel names and calls its traces hold.
        device: name as the trace writes it.
        multiprocessors: compute units; `memory_bytes`: of the device.
        flops_per_s: dense peak by type.
        bytes_per_s: of device memory.
        efficiency: share of the peak that the best shapes of a family reach; `bytes_efficiency`
            likewise of the bandwidth. `default` stands for families that are not named.
        floor_ns: of a kernel that does nothing.
        launch_ns: host time of a launch call, on a host of speed 1; `latency_ns`: from its end to
            the earliest start, whatever the host.
        graph_gap_ns: between kernels of one graph.
        host_speed: of all that the host does.
        pinned_bytes_per_s, pageable_bytes_per_s: copies between host and device.
        near: links within a host of `ranks_per_host`; `far`: between hosts.
        contention: how many times as long kernels take while a collective transfers.
        noise: chance.
        allocate_ns: a call of the driver's allocator, on a host of speed 1.
        queue: launches that a stream holds before the host has to wait.
    """

    name: str
    vendor: Literal["nvidia", "amd", "intel", "mtia"]
    device: str
    multiprocessors: int
    memory_bytes: int
    flops_per_s: Mapping[Dtype, float]
    bytes_per_s: float
    near: Link
    far: Link
    efficiency: Mapping[str, float]
    bytes_efficiency: Mapping[str, float]
    ranks_per_host: int = 8
    floor_ns: float = 1_500.0
    launch_ns: float = 4_500.0
    latency_ns: float = 3_000.0
    graph_gap_ns: float = 1_000.0
    host_speed: float = 1.0
    pinned_bytes_per_s: float = 25e9
    pageable_bytes_per_s: float = 6e9
    contention: float = 1.15
    noise: Noise = Noise()
    allocate_ns: float = 250_000.0
    queue: int = 1024

    def kernel_ns(self, kernel: Kernel, speed: float = 1.0) -> float:
        """How long a kernel takes alone on the device.

        The slower of arithmetic and traffic hides the other (roofline), each at the efficiency
        that its family and shape allow.

        Args:
            kernel: the kernel.
            speed: of the device's clock beside its usual one.
        """
        return self.floor_ns + max(self._arithmetic_ns(kernel) / speed, self._traffic_ns(kernel))

    def _arithmetic_ns(self, kernel: Kernel) -> float:
        share = _of(self.efficiency, kernel.family) * _filled(kernel, self.multiprocessors)
        return kernel.flops / (self.flops_per_s[kernel.dtype] * share) * 1e9

    def _traffic_ns(self, kernel: Kernel) -> float:
        reached = _of(self.bytes_efficiency, kernel.family) * self.bytes_per_s
        return (kernel.bytes + HALF_BYTES * bool(kernel.bytes)) / reached * 1e9

    def copy_ns(self, copy: Copy) -> float:
        """How long a copy or fill takes."""
        if copy.direction in ("DtoD", "fill"):
            moved = copy.bytes * (2 if copy.direction == "DtoD" else 1)
            return self.floor_ns + moved / (0.9 * self.bytes_per_s) * 1e9
        rate = self.pinned_bytes_per_s if copy.pinned else self.pageable_bytes_per_s
        return self.floor_ns + copy.bytes / rate * 1e9

    def transfer_ns(self, collective: Collective, ranks: tuple[int, ...]) -> float:
        """How long a collective moves data once all have arrived.

        The alpha-beta model with the traffic of a ring, by the formulas of nccl-tests: of the
        message 2 (n - 1) / n for an all-reduce, (n - 1) / n for gathers, scatters and exchanges,
        once for the rest. The slowest level of the network that the group spans bounds it.
        """
        size = len(ranks)
        hosts = len({rank // self.ranks_per_host for rank in ranks})
        link = self.near if hosts == 1 else self.far
        hops, factor = _ring(collective.op, size)
        return hops * link.latency_ns + collective.bytes * factor / link.bytes_per_s * 1e9


def with_faster(platform: Platform, resource: Resource, times: float = 2.0) -> Platform:
    """The platform with one resource some times as fast, and all else as it was.

    Nothing shortens the floor of a kernel, or the gap between kernels of a graph: no resource of
    a label stands for them.
    """
    if resource == "compute":
        peaks = {dtype: peak * times for dtype, peak in platform.flops_per_s.items()}
        return replace(platform, flops_per_s=peaks)
    if resource == "memory":
        return replace(
            platform,
            bytes_per_s=platform.bytes_per_s * times,
            pinned_bytes_per_s=platform.pinned_bytes_per_s * times,
            pageable_bytes_per_s=platform.pageable_bytes_per_s * times,
        )
    if resource == "collective":
        near, far = (
            Link(one.latency_ns / times, one.bytes_per_s * times)
            for one in (platform.near, platform.far)
        )
        return replace(platform, near=near, far=far)
    return replace(
        platform,
        host_speed=platform.host_speed * times,
        latency_ns=platform.latency_ns / times,
    )


def _of(shares: Mapping[str, float], family: str) -> float:
    return shares.get(family, shares["default"])


def _filled(kernel: Kernel, multiprocessors: int) -> float:
    """Share of the multiprocessors that work, over the waves of tiles that a product takes."""
    if kernel.family != "gemm" or len(kernel.dims) < 3:
        return 1.0
    *batch, m, n, _ = kernel.dims
    tiles = prod(batch) * ceil(m / TILE[0]) * ceil(n / TILE[1])
    waves = ceil(tiles / multiprocessors)
    padded = m * n / (ceil(m / TILE[0]) * TILE[0] * ceil(n / TILE[1]) * TILE[1])
    return max(0.02, tiles / (waves * multiprocessors) * padded)


def _ring(op: str, size: int) -> tuple[int, float]:
    """Hops, and the share of the message that each rank's link carries."""
    if op == "all_reduce":
        return 2 * (size - 1), 2 * (size - 1) / size
    if op in ("all_gather", "reduce_scatter", "all_to_all"):
        return size - 1, (size - 1) / size
    return 1, 1.0
