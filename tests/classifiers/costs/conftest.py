"""Live runs of PyTorch on the CPU, read from the trace that its profiler writes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiag.classifiers.costs import Shapes, parse_shapes

Profiled = Callable[[Callable[[], object]], list[Shapes]]

KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


@pytest.fixture
def profiled(tmp_path: Path) -> Profiled:
    """Runs a function under torch.profiler and gives the operators with recorded inputs."""
    profiler = pytest.importorskip("torch.profiler")

    def run(function: Callable[[], object]) -> list[Shapes]:
        activities = [profiler.ProfilerActivity.CPU]
        with profiler.profile(activities=activities, record_shapes=True) as recording:
            function()
        path = tmp_path / "trace.json"
        recording.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        recorded = (event for event in events if "Input Dims" in event.get("args", {}))
        return [
            parse_shapes(event["name"], *(event["args"].get(key) for key in KEYS))
            for event in recorded
        ]

    return run
