"""What profile_stages.py runs: one `perfdiag analyze` with clocks around its stages.

Usage: python stage_clocks.py TRACE. It imports little itself, so as not to be what it measures.
"""

import builtins
import importlib
import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

__all__ = ["BESIDE", "IMPORTS", "REST", "STAGES", "Clocks", "timed"]

IMPORTS, REST = "imports", "rest of the command"
BESIDE = "beside: "
"""Before the name of a stage that another thread than the main one was in."""

STAGES: Mapping[str, tuple[str, ...]] = {
    "read file, unpack": ("profiler.sources.files:expand",),
    "JSON to events": (
        "profiler.sources.json_document:split_document",
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
    "replay": ("classifiers.outcome:guarded_replay",),
    "classifier": ("classifiers.opinions:form_opinions",),
    "verdicts": ("classifiers.verdicts:judge_rank",),
    "diagnoses": ("classifiers.findings:diagnose_rank",),
    "fixes": ("classifiers.fixes:rank_fixes",),
    "savings": ("classifiers.savings:replay_savings",),
    "report": ("classifiers.reporting:assemble",),
    "write JSON": ("cli.reporters.json:encode", "cli.output:write"),
}
"""Stages in order, and the functions of perfdiag that are theirs."""


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
    """Run the command, then write the seconds as JSON to standard error."""
    clocks = Clocks()
    began = time.perf_counter()
    plain_import = builtins.__import__
    builtins.__import__ = timed(clocks, IMPORTS, plain_import)
    from perfdiag.cli.main import run

    _install(clocks)
    try:
        run(["analyze", trace, "--format", "json", "--quiet"])
    except SystemExit as done:
        if done.code:
            raise
    ended = clocks.stop()
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


if __name__ == "__main__":
    _run_timed(sys.argv[1])
