"""Figures of single kernel launches, from profilers that serialise kernels to count in them.

They have no place on the timeline of a training step: match them by name, ordinal and grid.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfdiag.profiler.counters.cells import Missing, in_base, parse_cell, unit_of
from perfdiag.profiler.counters.timelines import SetAside
from perfdiag.trace_schemas.counters import DERIVED, METRICS, Unit, find_source
from perfdiag.trace_schemas.recording import ABSENT

__all__ = ["KernelMetrics", "Launch", "kernels_of", "triple", "with_derived"]


@dataclass(frozen=True, slots=True)
class KernelMetrics:
    """What was counted in one kernel launch.

    Attributes:
        name: of the kernel, as the tool writes it.
        ordinal: how many launches of this name, on this device, were listed before it.
        device: ordinal, or `ABSENT`.
        grid, block: blocks of the grid and threads of a block; empty where not told.
        start_ns, dur_ns: by the tool's own clock; `ABSENT` where not told.
        launches: how many launches the figures are the mean of.
        values: by metric, in base units; counters outside the vocabulary under their own name.
    """

    name: str
    ordinal: int
    device: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    start_ns: int
    dur_ns: int
    launches: int
    values: Mapping[str, float]


@dataclass(slots=True)
class Launch:
    """One launch as the file has it.

    Attributes:
        name, device, grid, block, start_ns, dur_ns, launches: see `KernelMetrics`.
        cells: counter, unit (empty where not told) and text of each figure.
    """

    name: str
    device: int = ABSENT
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    start_ns: int = ABSENT
    dur_ns: int = ABSENT
    launches: int = 1
    cells: list[tuple[str, str, str]] = field(default_factory=list)


def kernels_of(
    tool: str, launches: Iterable[Launch], aside: SetAside
) -> tuple[list[KernelMetrics], dict[str, str]]:
    """Convert launches, in the order of the file.

    Returns:
        The launches, and the base unit of every metric in them.
    """
    seen: Tally[tuple[str, int]] = Tally()
    units: dict[str, str] = {}
    kernels = []
    for launch in launches:
        values = with_derived(_values(tool, launch, units, aside), units)
        if launch.dur_ns != ABSENT and "duration" not in values:
            values["duration"], units["duration"] = launch.dur_ns / 1e9, "s"
        key = (launch.name, launch.device)
        kernels.append(_kernel(launch, seen[key], _believable(values, aside)))
        seen[key] += 1
    return kernels, units


def _kernel(launch: Launch, ordinal: int, values: Mapping[str, float]) -> KernelMetrics:
    return KernelMetrics(
        launch.name,
        ordinal,
        launch.device,
        launch.grid,
        launch.block,
        launch.start_ns,
        launch.dur_ns,
        launch.launches,
        values,
    )


def _values(tool: str, launch: Launch, units: dict[str, str], aside: SetAside) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, symbol, text in launch.cells:
        number = parse_cell(text)
        if isinstance(number, Missing):
            (aside.missing if number is Missing.MARK else aside.invalid)[name] += 1
            continue
        metric, unit = _meaning(tool, name, unit_of(number, symbol, _fallback(tool, name)))
        value = in_base(number, unit)
        if isinstance(value, Missing):
            aside.invalid[name] += 1
        elif metric not in values:
            units[metric] = unit.base
            values[metric] = value
    return values


def _fallback(tool: str, name: str) -> Unit:
    source = find_source(tool, name)
    return source.unit if source else Unit("count", 1, 1)


def _meaning(tool: str, name: str, unit: Unit) -> tuple[str, Unit]:
    """Metric and unit; where the vocabulary means another quantity the tool's name stays."""
    source = find_source(tool, name)
    if source is None:
        return name, unit
    if source.metric.unit == unit.base:
        return source.metric.name, unit
    if source.metric.unit == "count":  # `register/thread`
        return source.metric.name, Unit("count", unit.numerator, unit.denominator)
    return f"{name} [{unit.base}]", unit


def with_derived(values: Mapping[str, float], units: dict[str, str]) -> dict[str, float]:
    """Add what follows from the counters: operations and traffic, see `counters.toml`."""
    result = dict(values)
    for derived in DERIVED:
        if derived.metric.name in values or not derived.terms.keys() <= values.keys():
            continue
        parts = [factor * values[name] for name, factor in derived.terms.items()]
        parts += [factor * values.get(name, 0.0) for name, factor in derived.or_zero.items()]
        result[derived.metric.name] = sum(parts)
        units[derived.metric.name] = derived.metric.unit
    return result


def _believable(values: Mapping[str, float], aside: SetAside) -> dict[str, float]:
    good = {}
    for name, value in values.items():
        metric = METRICS.get(name)
        if metric is not None and not metric.low <= value <= metric.high:
            aside.out_of_range[name] += 1
        else:
            good[name] = value
    return good


def triple(text: str) -> tuple[int, ...]:
    """The numbers of `(256, 1, 1)`, or of one product of them; empty for what is neither."""
    parts = text.strip().strip("()").replace(" ", "").split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        return ()
    return tuple(int(part) for part in parts)
