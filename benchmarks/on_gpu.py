"""Whether verdicts, rooflines and utilisation hold on a real GPU, on loops with a known limit.

Usage: python benchmarks/on_gpu.py --out DIR [--device cpu] [--loops products,launches]

Each loop runs three times: by CUDA events alone, under torch.profiler, and the trace through
perfdiag with the samples of nvidia-smi beside it. The report is compared with what the loop is
built to be, and its figures with those by events. DIR gets a trace and a table of samples for each
loop, and results.json. Exit code 0: all as expected, 1: something is not, 2: something could not be
compared. On a CPU it is a dry run with tiny sizes, and nothing is compared.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from gpu_checks import Check, check_report, check_size, exit_code, expected, shown
from gpu_loops import LOOPS, Loop
from gpu_recording import local_offset_s, record, sampled, steps_in, timed
from measure import machine, table

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.trace_schemas.errors import PerfdiagError
from perfdiag.trace_schemas.report import Report

LIMIT_S = 220.0
"""No loop begins after this: the whole run ends within four minutes."""

COLUMNS = ("label", "leaf", "bound", "figure", "mfu", "counters", "size")


@dataclass(frozen=True, slots=True)
class Result:
    """One loop: seconds of a step by the device's clock (0: it did not run), and what was found."""

    name: str
    step_s: float
    checks: list[Check]


def run_loop(loop: Loop, device: torch.device, seconds: float, out: Path) -> Result:
    """Time, record and analyse one loop.

    It runs for half of `seconds` by the clock, and for all of them around the recorded steps.

    Raises:
        PerfdiagError: its trace cannot be analysed.
        RuntimeError: it does not run on this device.
    """
    trace, samples = out / f"{loop.name}.json.gz", out / f"{loop.name}.csv"
    prepared = loop.prepare(device, device.type != "cuda")
    step_s = timed(prepared.step, device, seconds / 2)
    with sampled(samples):
        record(prepared.step, device, loop.active, steps_in(seconds / 2, step_s), trace)
    has_samples = _has_rows(samples)
    report = _analysed(trace, samples if has_samples else None)
    truth = loop.truth
    figure = truth.quantity and expected(truth.quantity, prepared.amount, step_s)
    checks = check_report(report, truth, figure, counters=has_samples)
    return Result(loop.name, step_s, [*checks, check_size(trace)])


def _has_rows(samples: Path) -> bool:
    return samples.exists() and len(samples.read_bytes().splitlines()) > 1


def _analysed(trace: Path, samples: Path | None) -> Report:
    beside = () if samples is None else (str(samples),)
    offset_s = local_offset_s() if beside else None
    return analyze([str(trace)], Options(counters=beside, counters_utc_offset_s=offset_s))


def run_all(
    loops: Sequence[Loop], device: torch.device, seconds: float, out: Path
) -> Iterator[Result]:
    """One loop after another; what fails or comes too late has a check that says so."""
    began = time.monotonic()
    for loop in loops:
        if time.monotonic() - began > LIMIT_S:
            yield Result(loop.name, 0.0, [Check("run", "in time", f"after {LIMIT_S:g} s", None)])
            continue
        try:
            yield run_loop(loop, device, seconds, out)
        except (PerfdiagError, RuntimeError) as error:
            problem = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            yield Result(loop.name, 0.0, [Check("run", "no error", problem, False)])
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _unasserted(result: Result) -> Result:
    """A dry run: whatever ran is neither right nor wrong."""
    checks = [c if c.what == "run" else replace(c, passed=None) for c in result.checks]
    return replace(result, checks=checks)


def _show(results: Sequence[Result]) -> str:
    rows = [
        (r.name, f"{1e3 * r.step_s:.3f}", *(shown(r.checks, what) for what in COLUMNS))
        for r in results
    ]
    wrong = [
        f"{result.name}: {check.what} is {check.found}, expected {check.expected}"
        for result in results
        for check in result.checks
        if check.passed is False or check.what == "run"
    ]
    return "\n".join(
        [table(("loop", "ms a step", *COLUMNS), rows), *(["", *wrong] if wrong else [])]
    )


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, dry run"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [loop.name for loop in LOOPS]
    out = os.environ.get("OUT")
    parser.add_argument("--out", type=Path, default=out, required=out is None)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--loops", default=",".join(names), help="by default all, in this order")
    parser.add_argument("--seconds", type=float, default=None, help="of a run; 2, 0.02 on a CPU")
    options = parser.parse_args(arguments)
    if unknown := set(options.loops.split(",")) - set(names):
        parser.error(f"no such loop: {', '.join(sorted(unknown))}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the loops, print the table and write the files."""
    options = _options(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device: nothing was compared", file=sys.stderr)
        return 2
    device, dry = torch.device(options.device), options.device == "cpu"
    seconds = options.seconds or (0.02 if dry else 2.0)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = not dry
    options.out.mkdir(parents=True, exist_ok=True)
    loops = [loop for loop in LOOPS if loop.name in options.loops.split(",")]
    results = []
    for result in run_all(loops, device, seconds, options.out):
        results.append(_unasserted(result) if dry else result)
        print(f"{result.name}: {'; '.join(c.found for c in result.checks)}", file=sys.stderr)
    about = f"{machine()}, torch {torch.__version__}, {_device_name(device)}"
    print(f"{about}\n\n{_show(results)}")
    written = {"machine": about, "loops": [asdict(result) for result in results]}
    (options.out / "results.json").write_text(json.dumps(written, indent=2) + "\n")
    code = exit_code(check for result in results for check in result.checks)
    return 0 if dry and code == 2 else code


if __name__ == "__main__":
    sys.exit(main())
