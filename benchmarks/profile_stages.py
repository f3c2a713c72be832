"""Where the time of one `perfdiag analyze` goes, stage by stage.

Usage: python benchmarks/profile_stages.py TRACE... [--rounds 5]

The command runs as it is, in processes of its own, with clocks around the functions named in
stage_clocks.py. A stage does not count the stages inside it, so the column adds up to the whole
process. What other threads do meanwhile has rows of its own, which do not add to it.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from measure import bytecode, load, machine, table
from stage_clocks import BESIDE, IMPORTS, REST, STAGES

CLOCKED = Path(__file__).with_name("stage_clocks.py")
START, EXIT = "start Python", "end the process"


def _sample(trace: Path, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds by stage of one process, its start and its end among them."""
    command = (sys.executable, str(CLOCKED), str(trace))
    # perf_counter is the machine's monotonic clock: both processes read the same one.
    began = time.perf_counter()
    done = subprocess.run(
        command,
        env=dict(environment),
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    ended = time.perf_counter()
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    seconds: dict[str, float] = json.loads(done.stderr)
    seconds[START] = seconds.pop("began") - began
    seconds[EXIT] = ended - seconds.pop("ended")
    return seconds


def _medians(samples: Sequence[Mapping[str, float]]) -> dict[str, float]:
    order = (START, IMPORTS, *STAGES, REST, EXIT)
    order += tuple(BESIDE + name for name in order)
    found = {name: median(sample.get(name, 0.0) for sample in samples) for name in order}
    return {name: value for name, value in found.items() if value >= 0.0005}


def _show(columns: Mapping[str, Mapping[str, float]]) -> str:
    names = dict.fromkeys(name for medians in columns.values() for name in medians)
    inside = sorted(names, key=lambda name: name.startswith(BESIDE))
    rows = [(name, *(_cell(medians, name) for medians in columns.values())) for name in inside]
    totals = (
        sum(value for name, value in medians.items() if not name.startswith(BESIDE))
        for medians in columns.values()
    )
    rows.append(("sum of the medians", *(f"{total:.3f}" for total in totals)))
    return table(("seconds", *columns), rows)


def _cell(medians: Mapping[str, float], name: str) -> str:
    if name not in medians:
        return ""
    if name.startswith(BESIDE):
        return f"{medians[name]:.3f}"
    total = sum(value for stage, value in medians.items() if not stage.startswith(BESIDE))
    return f"{medians[name]:.3f} ({medians[name] / total:.0%})"


def main() -> None:
    """Measure each trace in turn, and print one column for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    samples: dict[Path, list[dict[str, float]]] = {trace: [] for trace in options.trace}
    with bytecode() as environment:
        for number in range(options.rounds + 1):
            for trace, taken in samples.items():
                sample = _sample(trace, environment)
                if number:  # the first round fills the caches
                    taken.append(sample)
    print(f"{machine()}; {load()}\n")
    print(_show({trace.name: _medians(taken) for trace, taken in samples.items()}))


if __name__ == "__main__":
    main()
