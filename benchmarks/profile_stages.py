"""Where the time of one `perfdiag analyze` goes, stage by stage.

Usage: python benchmarks/profile_stages.py TRACE... [--rounds 5]

The command runs as it is, in processes of its own, with clocks around the functions named in
STAGES. A stage does not count the stages inside it, so the column adds up to the whole process.
What other threads do meanwhile has rows of its own, which do not add to it.
"""

import argparse
import builtins
import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

from measure import bytecode, machine, table

STAGES: Mapping[str, tuple[str, ...]] = {
    "read file, unpack": ("profiler.sources.files:expand",),
    "JSON to events": (
        "profiler.sources.chrome_json:_split",
        "profiler.sources.chrome_json:_pieces",
    ),
    "events to columns": ("profiler.sources.kineto:read_kineto",),
    "arguments of events": ("profiler.sources.kineto_args:decode_args",),
    "normalise": ("profiler.normalise:normalise",),
    "steps": ("profiler.steps:find_steps",),
    "regions": ("profiler.regions:find_regions",),
    "facts into the trace": ("profiler.facts_in_trace:facts_in_trace",),
    "write trace": ("profiler.trace_writer:write_trace",),
    "start engine": ("profiler.engine.session:open_session",),
    "load trace": ("profiler.engine.session:Session.load",),
    "SQL: make the model": ("profiler.model:prepare",),
    "SQL: fetch the model": ("profiler.model:read_model",),
    "facts and budget": ("classifiers.facts:derive_facts",),
    "verdicts": ("classifiers.verdicts:judge_rank",),
    "fixes": ("classifiers.fixes:rank_fixes",),
    "report": ("classifiers.analysis:_report",),
    "write JSON": ("cli.reporters.json:encode", "cli.output:write"),
}
"""Stages in order, and the functions of perfdiag that are theirs."""

START, IMPORTS, REST, EXIT = "start Python", "imports", "rest of the command", "end of the process"
BESIDE = "beside: "


class Clocks:
    """Seconds by stage; a stage that begins inside another stops that one's clock."""

    def __init__(self) -> None:
        """All clocks at 0; what the main thread does belongs to the rest until a stage begins."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._main = threading.get_ident()
        self._local = threading.local()
        self._local.running = [REST]
        self._local.since = time.perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside as `name`."""
        running = self._running()
        self._charge(running)
        running.append(name)
        try:
            yield
        finally:
            self._charge(running)
            running.pop()

    def stop(self) -> float:
        """Charge what has run until now; the time now."""
        self._charge(self._running())
        since: float = self._local.since
        return since

    def _running(self) -> list[str]:
        if not hasattr(self._local, "running"):
            self._local.running, self._local.since = [], time.perf_counter()
        running: list[str] = self._local.running
        return running

    def _charge(self, running: Sequence[str]) -> None:
        now = time.perf_counter()
        if running:
            prefix = "" if threading.get_ident() == self._main else BESIDE
            self.seconds[prefix + running[-1]] += now - self._local.since
        self._local.since = now


def timed(clocks: Clocks, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a clock around it, and around each step of an iterator that it returns."""

    @wraps(function)
    def inside(*args: Any, **options: Any) -> Any:
        with clocks.stage(name):
            result = function(*args, **options)
        return _steps(clocks, name, result) if isinstance(result, Iterator) else result

    return inside


def _steps(clocks: Clocks, name: str, iterator: Iterator[Any]) -> Iterator[Any]:
    end = object()
    while True:
        with clocks.stage(name):
            item = next(iterator, end)
        if item is end:
            return
        yield item


def _run_timed(trace: str) -> None:
    """In the process that is measured: run the command, write the seconds to standard error."""
    clocks = Clocks()
    began = time.perf_counter()
    plain_import = builtins.__import__
    builtins.__import__ = timed(clocks, IMPORTS, plain_import)
    from perfdiag.cli.main import run

    _install(clocks)
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())) as output:
        with contextlib.suppress(SystemExit):
            run(["analyze", trace, "--format", "json", "--quiet"])
        written = output.buffer.tell()  # type: ignore[attr-defined]
    ended = clocks.stop()
    if not written:
        msg = f"no report on {trace!r}; perfdiag analyze says why"
        raise SystemExit(msg)
    sys.stderr.write(json.dumps({"began": began, "ended": ended, **clocks.seconds}))


def _install(clocks: Clocks) -> None:
    """Put the timed functions wherever perfdiag's modules hold the plain ones.

    Raises:
        AttributeError: a function in STAGES is gone.
    """
    replaced: dict[int, Callable[..., Any]] = {}
    plain: list[Callable[..., Any]] = []  # keeps their ids from being given away
    for name, places in STAGES.items():
        for place in places:
            module, _, path = place.partition(":")
            owner: Any = importlib.import_module(f"perfdiag.{module}")
            *classes, last = path.split(".")
            for part in classes:
                owner = getattr(owner, part)
            function = getattr(owner, last)
            plain.append(function)
            replaced[id(function)] = timed(clocks, name, function)
            setattr(owner, last, replaced[id(function)])
    for module_name in [name for name in sys.modules if name.startswith("perfdiag.")]:
        names = vars(sys.modules[module_name])
        names.update({k: replaced[id(v)] for k, v in list(names.items()) if id(v) in replaced})


def _sample(trace: Path, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds by stage of one process, its start and its end among them."""
    command = (sys.executable, __file__, "--inside", str(trace))
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
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        _run_timed(os.fspath(options.trace[0]))
        return
    samples: dict[Path, list[dict[str, float]]] = {trace: [] for trace in options.trace}
    with bytecode() as environment:
        for number in range(options.rounds + 1):
            for trace, taken in samples.items():
                sample = _sample(trace, environment)
                if number:  # the first round fills the caches
                    taken.append(sample)
    print(machine() + "\n")
    print(_show({trace.name: _medians(taken) for trace, taken in samples.items()}))


if __name__ == "__main__":
    main()
