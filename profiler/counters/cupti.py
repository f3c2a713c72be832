"""Counters that CUPTI took while PyTorch's profiler recorded, out of a Recording.

In 2023 the range profiler wrote a slice a kernel, with the counters as arguments; since 2026 PM
sampling writes counter tracks.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from perfdiag.profiler.counters.kernels import KernelMetrics, Launch, kernels_of
from perfdiag.profiler.counters.timelines import SetAside
from perfdiag.trace_schemas.recording import ABSENT, RANGE_CATEGORY, Recording, Slices

__all__ = ["range_kernels"]

_NO_NAME = "__missing__"  # what Kineto writes where it did not learn the kernel's name


def range_kernels(
    recording: Recording, aside: SetAside
) -> tuple[list[KernelMetrics], dict[str, str]]:
    """Figures by kernel of CUPTI's range profiler, in order of time.

    Their times are spread evenly over the recording and say nothing: only the order holds.

    Args:
        recording: read with its arguments kept.
        aside: counts what gives no figure.

    Returns:
        The kernels, and the base unit of every metric in them. Empty without such slices.
    """
    return kernels_of("ncu", _launches(recording), aside)


def _launches(recording: Recording) -> Iterator[Launch]:
    slices = recording.slices
    if RANGE_CATEGORY not in recording.strings or slices.raw_args is None:
        return
    category = recording.strings.index(RANGE_CATEGORY)
    rows = (slices.category == category).nonzero()[0]
    for row in rows[slices.ts_ns[rows].argsort(kind="stable")].tolist():
        name = recording.strings[int(slices.name[row])]
        lane = recording.lanes[int(slices.lane[row])]
        device = int(lane.process) if lane.process.isdecimal() and len(lane.process) < 5 else ABSENT
        launch = Launch("" if name == _NO_NAME else name, device)
        launch.cells = [(key, "", _text(value)) for key, value in _arguments(slices, row)]
        yield launch


def _arguments(slices: Slices, row: int) -> Iterator[tuple[str, Any]]:
    raw = slices.raw_args[row] if slices.raw_args else None
    try:
        arguments = msgspec.json.decode(raw or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return
    yield from arguments.items()


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, int | float) else str(value)
