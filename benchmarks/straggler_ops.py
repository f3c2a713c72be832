"""Replay of jobs with known stragglers: published slowdowns and known culprits found again?

Usage: python benchmarks/straggler_ops.py [--traces FOLDER] [--rounds 3] [--json FILE]

FOLDER is `data` of github.com/ByteDance-Seed/StragglerAnalysis at 8efcd7f3 (Apache-2.0): operations
of three jobs, and what the authors of "Understanding Stragglers in Large Model Training Using
What-if Analysis" (OSDI 2025, arXiv 2505.05713) computed from them. It says what ails them: of AR,
one worker that was slowed down on purpose; of ST, a last stage with too much work; of SE, sequences
of unequal length, which hit all workers.

Every job is a process of its own: `straggler_whatif.py`, where the figures are explained.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from measure import Figures, bytecode, interleave, load, machine, summarise, table

__all__ = ["CULPRITS", "culprit", "differences", "published"]

HERE = Path(__file__).parent

CULPRITS = {
    "AR": "workers: replica 0 of stage 0",
    "SE": "microbatches of all workers",
    "ST": "stages: 3",
}

TOLERANCE, SECONDS = 0.001, 5.0
"""How far a figure may be from the published one, and how long a job may take."""

Found = Mapping[str, Any]


def main() -> None:
    """Measure every job and print its tables."""
    options = _options()
    print(f"{machine()}; {load()}")
    with tempfile.TemporaryDirectory() as folder, bytecode() as environment:
        outputs = {job: Path(folder) / f"{job}.json" for job in CULPRITS}
        commands = {
            job: _command(options.traces / f"trace-{job}.parquet", output)
            for job, output in outputs.items()
        }
        samples = interleave(commands, options.rounds, environment)
        found = {job: json.loads(output.read_bytes()) for job, output in outputs.items()}
    costs = {job: summarise(of_job) for job, of_job in samples.items()}
    expected = {job: published(options.traces, job) for job in CULPRITS}
    print(
        f"\n{_replays(found, expected)}\n\n{_causes(found)}\n\n{_targets(found, expected, costs)}"
    )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = HERE.parent / "../shared/traces/straggler-ops"
    parser.add_argument("--traces", type=Path, default=shared, help="folder with the data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    return parser.parse_args()


def _command(trace: Path, output: Path) -> tuple[str, ...]:
    return sys.executable, str(HERE / "straggler_whatif.py"), str(trace), str(output)


def published(folder: Path, job: str) -> dict[str, Any]:
    """What the authors found: step times, slowdowns, and what workers and last stage are worth."""
    result = json.loads((folder / f"result-{job}.json").read_bytes())
    times = {key: value for key, value in result.items() if key.startswith(("step_t", "blocking"))}
    for what in ("mw", "ms"):
        worth = json.loads((folder / f"{what}-{job}.json").read_bytes())
        times[what] = {key: worth[key] for key in ("trem", "tadd", "tori", "tideal")}
    return times


def differences(found: Any, expected: Any) -> Iterator[float]:
    """By which part of it each published figure is missed.

    Raises:
        KeyError: one was not computed.
    """
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            yield from differences(found[key], value)
    else:
        yield abs(found / expected - 1)


def culprit(found: Found) -> str:
    """The cause that is worth most, and who it is."""
    cause = next(iter(found["causes"]))
    if cause == "workers":
        return "workers: " + ", ".join(f"replica {r} of stage {s}" for r, s in found["slowest"])
    if cause == "stages":
        stages = found["blocking_decompose_by_stage"]
        return f"stages: {max(stages, key=stages.__getitem__)}"
    return f"{cause} of all workers"


def _replays(found: Mapping[str, Found], expected: Mapping[str, Found]) -> str:
    """Replayed times beside published ones, and beside the recorded ones of every step."""
    head = ("job", "T s", "T_ideal s", "S", "published S", "figures", "largest difference")
    error = ("replay error, median", "largest")
    return table((*head, *error), [_replay(job, found[job], expected[job]) for job in found])


def _replay(job: str, found: Found, expected: Found) -> tuple[str, ...]:
    off = list(differences(found, expected))
    base, actual, ideal = (found[f"step_t_{of}"].values() for of in ("base", "nodelay", "noblk"))
    errors = [abs(time / recorded - 1) for time, recorded in zip(actual, base, strict=True)]
    slowdowns = (found["blocking_slowdown"], expected["blocking_slowdown"])
    shown = [f"{value:.4f}" for value in (mean(actual), mean(ideal), *slowdowns)]
    shares = (f"{median(errors):.2%}", f"{max(errors):.2%}")
    return job, *shown, str(len(off)), f"{max(off):.1e}", *shares


def _causes(found: Mapping[str, Found]) -> str:
    """What share of T - T_ideal each cause is worth, beside the published measures."""
    causes = sorted(next(iter(found.values()))["causes"])
    rows = [
        (
            job,
            *(f"{figures['causes'][cause]:.1%}" for cause in causes),
            *(f"{figures[what]['rem']:.1%}" for what in ("mw", "ms")),
            culprit(figures),
        )
        for job, figures in found.items()
    ]
    return table(("job", *causes, "M_W", "M_S", "culprit"), rows)


def _targets(
    found: Mapping[str, Found], expected: Mapping[str, Found], costs: Mapping[str, Figures]
) -> str:
    rows = []
    for job, cost in costs.items():
        met = (
            max(differences(found[job], expected[job])) <= TOLERANCE,
            culprit(found[job]) == CULPRITS[job],
            cost.wall_s <= SECONDS,
        )
        seconds = f"{cost.wall_s:.2f}", f"{cost.fastest_s:.2f} - {cost.slowest_s:.2f}"
        memory = f"{cost.peak_bytes / 1e6:.0f}"
        rows.append((job, *seconds, f"{cost.cpu_s:.2f}", memory, *(_word(ok) for ok in met)))
    head = ("job", "wall s", "fastest - slowest", "CPU s", "peak MB")
    aims = (f"within {TOLERANCE:.1%}", "culprit", f"within {SECONDS:.0f} s")
    return table((*head, *aims), rows)


def _word(met: bool) -> str:
    return "met" if met else "missed"


if __name__ == "__main__":
    main()
