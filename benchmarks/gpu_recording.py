"""Run a loop by the device's own clock, under PyTorch's profiler, with nvidia-smi beside it."""

import gzip
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

__all__ = ["local_offset_s", "record", "sampled", "scrubbed", "steps_in", "synchronize", "timed"]

Step = Callable[[], None]

QUERY = (
    "timestamp,index,utilization.gpu,utilization.memory,clocks.sm,clocks.mem,power.draw,"
    "temperature.gpu,memory.used"
)
PERIOD_MS = 100

MOST_STEPS = 5_000
"""In one run, however short they are."""


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all its work; a CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(step: Step, device: torch.device, seconds: float) -> float:
    """Mean seconds of a step, over about so many seconds, by events of the device.

    The first step, which compiles and chooses algorithms, does not count.
    """
    step()
    synchronize(device)
    began = time.perf_counter()
    step()
    synchronize(device)
    count = steps_in(seconds, time.perf_counter() - began)
    if device.type != "cuda":
        return _by_wall_clock(step, count)
    cuda: Any = torch.cuda  # its events bear no types
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        step()
    end.record()
    synchronize(device)
    return float(start.elapsed_time(end)) / 1e3 / count


def _by_wall_clock(step: Step, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count


def steps_in(seconds: float, step_s: float) -> int:
    """How many steps take about so many seconds; at least 2, and at most `MOST_STEPS`."""
    return min(MOST_STEPS, max(2, ceil(seconds / max(step_s, 1e-6))))


def record(step: Step, device: torch.device, active: int, around: int, path: Path) -> None:
    """Record `active` steps in the middle of a longer run, shapes included.

    The device is idle when recording begins and ends: no work of other steps is in the trace, and
    none of these is missing.

    Args:
        step: runs one step.
        device: that it runs on.
        active: steps to record.
        around: steps before the recording, and after it.
        path: gzipped JSON to write.
    """
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    plan = schedule(wait=around, warmup=1, active=active, repeat=1)
    last = around + active
    with profile(
        activities=activities,
        schedule=plan,
        record_shapes=True,
        on_trace_ready=lambda profiler: _export(profiler, path),
    ) as profiler:
        for number in range(last + 1 + around):
            step()
            if number <= around or number == last:
                synchronize(device)
            profiler.step()
        synchronize(device)


def _export(profiler: profile, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(raw))
        text = scrubbed(raw.read_text(encoding="utf-8"), path.name.partition(".")[0])
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def scrubbed(text: str, name: str) -> str:
    """An exported trace with an event a line, without the names of this machine and its folders."""
    text = re.sub(r"\n {3,}|\n(?= {2}\})", " ", text)
    for key, value in {"traceName": name, "host_name": "host"}.items():
        text = re.sub(f'"{key}": "[^"]*"', f'"{key}": "{value}"', text)
    return text


@contextmanager
def sampled(path: Path) -> Iterator[None]:
    """Sample the GPUs into a CSV file meanwhile; writes none where there is no nvidia-smi."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        yield
        return
    command = (tool, f"--query-gpu={QUERY}", "--format=csv", "-lms", str(PERIOD_MS))
    with (
        path.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def local_offset_s() -> int:
    """Seconds that local time, which nvidia-smi writes, is ahead of UTC."""
    offset = datetime.now().astimezone().utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
