"""Hardware counters of simulated devices, sampled as DCGM does.

What a kernel truly computes and moves is spread evenly over its time, and each sample is the mean
over the period before it. A table has one row a device and sample, with DCGM's fields as columns
(`dcgmi`'s API as scripts around it write it), whatever the vendor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.simulator.events import DeviceWork, RankEvents
from perfdiag.profiler.simulator.kineto_options import TraceOptions
from perfdiag.profiler.simulator.names import launch_shape
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Collective, Copy, Kernel

__all__ = ["CounterOptions", "dcgm_csv", "samples"]

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

_TENSOR_FAMILIES = frozenset(("gemm", "convolution", "attention", "attention_decode"))
_TENSOR_TYPES = frozenset(("tf32", "bf16", "fp16", "fp8"))
_CHANNELS = 24
"""Multiprocessors that a collective's kernel occupies; see `kineto_work`."""
_COLLECTIVE_TRAFFIC = 2
"""Each byte of a message is read and written once, at least."""
_IDLE_SHARE = 0.15
_TENSOR_SHARE, _DRAM_SHARE, _SM_SHARE = 0.45, 0.25, 0.15
"""Power: what a device takes doing nothing, and what its parts add when they are busy, as shares of
its limit. A choice: data centre GPUs idle at 10 to 20 % of it."""

COLUMNS = {
    "gpu_busy": "DCGM_FI_DEV_GPU_UTIL",
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "fp32_active": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "sm_clock": "DCGM_FI_DEV_SM_CLOCK",
    "power": "DCGM_FI_DEV_POWER_USAGE",
}
"""Metric, as `trace_schemas/counters.toml` calls it, to DCGM's field."""


@dataclass(frozen=True, slots=True)
class CounterOptions:
    """How counters are sampled.

    Attributes:
        period_ns: between samples.
        clock_mhz: of multiprocessors at their usual speed; `speeds`: by rank, how fast beside it.
        power_w: limit of a device.
        trace: whose clock the samples are on.
    """

    period_ns: int = 10_000_000
    clock_mhz: float = 1_755.0
    speeds: Mapping[int, float] = field(default_factory=dict)
    power_w: float = 700.0
    trace: TraceOptions = field(default_factory=TraceOptions)


def dcgm_csv(ranks: Sequence[RankEvents], platform: Platform, options: CounterOptions) -> str:
    """A table of the devices of some ranks, one host's for instance: ordinals tell them apart.

    Args:
        ranks: what happened on each.
        platform: that they ran on.
        options: how they are sampled.
    """
    lines = [",".join(("timestamp_ns", "gpu", *COLUMNS.values()))]
    for events in ranks:
        device = events.rank % platform.ranks_per_host
        times, values = samples(events, platform, options)
        stamps = (times + options.trace.unix_ns(events.rank)).tolist()
        for stamp, *row in zip(stamps, *(values[metric] for metric in COLUMNS), strict=True):
            lines.append(f"{stamp},{device},{','.join(map(_cell, row))}")
    return "\n".join(lines) + "\n"


def _cell(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def samples(
    events: RankEvents, platform: Platform, options: CounterOptions
) -> tuple[Int64s, dict[str, Floats]]:
    """Times of a rank's samples, since the job's start, and the values by metric.

    Shares are of 1, `gpu_busy` is in percent as DCGM gives it, clocks are in MHz, power in watts.
    """
    work = events.device
    end = max((one.end_ns for one in work), default=0)
    times = np.arange(0, end + 2 * options.period_ns, options.period_ns, dtype=np.int64)
    starts, moving = ([getattr(one, at) for one in work] for at in ("start_ns", "moving_ns"))
    ends = [one.end_ns for one in work]
    tensor = _mean((starts, ends), [_tensor_s(one, platform) for one in work], times)
    fp32 = _mean((starts, ends), [_fp32_s(one, platform) for one in work], times)
    dram = _mean((moving, ends), [_dram_s(one, platform) for one in work], times)
    active = _mean((starts, ends), [_occupied_s(one, platform) for one in work], times)
    used = _TENSOR_SHARE * tensor + _DRAM_SHARE * dram + _SM_SHARE * active
    speed = options.speeds.get(events.rank, 1.0)
    return times[1:], {
        "gpu_busy": 100 * _busy(work, times),
        "sm_active": active,
        "tensor_active": tensor,
        "fp32_active": fp32,
        "dram_active": dram,
        "sm_clock": np.full(len(times) - 1, options.clock_mhz * speed),
        "power": options.power_w * (_IDLE_SHARE + used),
    }


def _tensor_s(one: DeviceWork, platform: Platform) -> float:
    """Seconds for which tensor pipes would work at their peak."""
    source = one.source
    if not isinstance(source, Kernel) or not _on_tensor_pipes(source):
        return 0.0
    return source.flops / platform.flops_per_s[source.dtype]


def _fp32_s(one: DeviceWork, platform: Platform) -> float:
    """Seconds for which the FP32 pipes would, for what no tensor pipe computes."""
    source = one.source
    if not isinstance(source, Kernel) or _on_tensor_pipes(source):
        return 0.0
    return source.flops / platform.flops_per_s["fp32"]


def _on_tensor_pipes(kernel: Kernel) -> bool:
    return kernel.family in _TENSOR_FAMILIES and kernel.dtype in _TENSOR_TYPES


def _dram_s(one: DeviceWork, platform: Platform) -> float:
    """Seconds for which memory would move data at its bandwidth; none while a collective waits."""
    return _moved(one.source) / platform.bytes_per_s


def _moved(source: Kernel | Collective | Copy) -> float:
    """Bytes read from and written to device memory."""
    if isinstance(source, Collective):
        return _COLLECTIVE_TRAFFIC * source.bytes
    return source.bytes * (2 if isinstance(source, Copy) and source.direction == "DtoD" else 1)


def _occupied_s(one: DeviceWork, platform: Platform) -> float:
    """Seconds for which all multiprocessors together would hold a warp; copy engines hold none."""
    source, seconds = one.source, (one.end_ns - one.start_ns) / 1e9
    if isinstance(source, Copy):
        return 0.0
    blocks = _CHANNELS if isinstance(source, Collective) else prod(launch_shape(source)[0])
    return seconds * min(1.0, blocks / platform.multiprocessors)


def _mean(
    spans: tuple[Sequence[int], Sequence[int]], amounts_s: Sequence[float], times: Int64s
) -> Floats:
    """Mean over each period of amounts that are spread over starts to ends; 1 at most."""
    starts, ends = (np.array(bounds, np.float64) for bounds in spans)
    rates = np.array(amounts_s, np.float64) * 1e9 / np.maximum(1.0, ends - starts)
    return np.minimum(1.0, np.diff(_integral(starts, ends, rates, times)) / np.diff(times))


def _integral(starts: Floats, ends: Floats, rates: Floats, times: Int64s) -> Floats:
    """(n,) integral of rates, which hold from starts to ends, up to each of the times."""
    bounds = np.concatenate((starts, ends))
    changes = np.concatenate((rates, -rates))
    order = np.argsort(bounds, kind="stable")
    bounds, rate = bounds[order], np.cumsum(changes[order])
    if not len(bounds):
        return np.zeros(len(times))
    grown = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(bounds))))
    return np.interp(times, bounds, grown)


def _busy(work: Sequence[DeviceWork], times: Int64s) -> Floats:
    """Share of each period in which anything ran."""
    order = sorted((one.start_ns, one.end_ns) for one in work)
    merged: list[list[int]] = []
    for start, end in order:
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    bounds = np.array(merged, np.float64).reshape(-1, 2)
    whole = _integral(bounds[:, 0], bounds[:, 1], np.ones(len(bounds)), times)
    return np.clip(np.diff(whole) / np.diff(times), 0.0, 1.0)
