"""perfdiag beside HolisticTraceAnalysis and beside the bare trace processor, as ratios.

Usage: python benchmarks/compare.py [TRACE...] --hta-python /path/to/venv/bin/python

Every contender is a process of its own, measured from fork to its end. They run in turn
(A, B, C, A, B, C, ...), after a round that does not count.
"""

import argparse
import gzip
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from measure import Command, Figures, bytecode, interleave, load, machine, summarise, table

HERE = Path(__file__).parent
PERFDIAG, HTA, BARE = "perfdiag analyze", "HolisticTraceAnalysis", "bare trace processor"


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached: times faster than HTA, times the bare load, times the JSON's size."""

    hta: float | None = None
    bare: float | None = None
    memory: float | None = None


NO_TARGET = Target()

# Recorded without Python frames, and with them.
TARGETS = {
    "training/a100_8rank_control.json.gz": Target(hta=2, bare=1.5, memory=12),
    "nvidia/h100_owlv2.json.gz": Target(hta=3, bare=1.2, memory=8),
}


def main() -> None:
    """Measure every trace and print its tables."""
    options = _options()
    traces = options.trace or [options.traces / name for name in TARGETS]
    print(machine() + _hta_version(options.hta_python) + f"; {load()} at the start")
    for trace in traces:
        figures = _measure(trace, options.hta_python, options.rounds)
        print(f"\n## {trace.name}\n\n{_times(figures)}\n\n{_verdicts(trace, figures)}", flush=True)
    print(f"\n{load()} at the end")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="*", type=Path, help="default: the two that have targets")
    parser.add_argument("--traces", type=Path, default=HERE.parent / "../shared/traces/kineto")
    parser.add_argument("--hta-python", help="interpreter that has HTA; without it HTA is left out")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def _hta_version(python: str | None) -> str:
    if python is None:
        return ", HTA not measured"
    code = "from importlib.metadata import version as v; print(v('HolisticTraceAnalysis'), end='')"
    code += "; print(' with pandas', v('pandas'), end='')"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return f", HolisticTraceAnalysis {done.stdout}"


def _measure(trace: Path, hta_python: str | None, rounds: int) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory() as folder, bytecode() as environment:
        # HTA takes a folder of ranks; its link to the trace is the only thing in there.
        (Path(folder) / trace.name).symlink_to(trace.resolve(strict=True))
        commands = _commands(trace, hta_python, folder)
        samples = interleave(commands, rounds, environment)
    return {name: summarise(found) for name, found in samples.items()}


def _commands(trace: Path, hta_python: str | None, folder: str) -> Mapping[str, Command]:
    program = str(Path(sys.executable).with_name("perfdiag"))
    commands: dict[str, Command] = {
        PERFDIAG: (program, "analyze", str(trace), "--format", "json"),
        BARE: (sys.executable, str(HERE / "bare_load.py"), str(trace)),
    }
    if hta_python is not None:
        commands[HTA] = (hta_python, str(HERE / "hta_contender.py"), folder)
    return commands


def _times(figures: Mapping[str, Figures]) -> str:
    head = (
        "process",
        "wall s",
        "fastest - slowest",
        "CPU s",
        "peak MB",
        "wall / ours",
        "CPU / ours",
    )
    ours = figures[PERFDIAG]
    rows = [
        (
            name,
            f"{f.wall_s:.2f}",
            f"{f.fastest_s:.2f} - {f.slowest_s:.2f}",
            f"{f.cpu_s:.2f}",
            f"{f.peak_bytes / 1e6:.0f}",
            f"{f.wall_s / ours.wall_s:.2f}",
            f"{f.cpu_s / ours.cpu_s:.2f}",
        )
        for name, f in figures.items()
    ]
    return table(head, rows)


def _verdicts(trace: Path, figures: Mapping[str, Figures]) -> str:
    target = next((t for name, t in TARGETS.items() if str(trace).endswith(name)), NO_TARGET)
    ours, bare, size = figures[PERFDIAG], figures[BARE], _json_bytes(trace)
    rows = [
        _at_most("wall time / bare load's", ours.wall_s / bare.wall_s, target.bare),
        _at_most(f"peak / JSON ({size / 1e6:.1f} MB)", ours.peak_bytes / size, target.memory),
    ]
    if HTA in figures:
        rows.insert(
            0, _at_least("HTA's wall time / ours", figures[HTA].wall_s / ours.wall_s, target.hta)
        )
    return table(("ratio of medians", "measured", "target", "verdict"), rows)


def _json_bytes(trace: Path) -> int:
    """Size of the trace unpacked, never all of it in memory."""
    data = trace.read_bytes()
    if data[:2] != b"\x1f\x8b":
        return len(data)
    with gzip.open(trace) as stream:
        return sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))


def _at_least(what: str, ratio: float, target: float | None) -> tuple[str, ...]:
    return _row(what, ratio, "at least", target, met=target is not None and ratio >= target)


def _at_most(what: str, ratio: float, target: float | None) -> tuple[str, ...]:
    return _row(what, ratio, "at most", target, met=target is not None and ratio <= target)


def _row(
    what: str, ratio: float, bound: str, target: float | None, *, met: bool
) -> tuple[str, ...]:
    if target is None:
        return what, f"{ratio:.2f}x", "none", ""
    return what, f"{ratio:.2f}x", f"{bound} {target:g}x", "met" if met else "missed"


if __name__ == "__main__":
    main()
