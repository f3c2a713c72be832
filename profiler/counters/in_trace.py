"""Counter tracks that a trace holds itself, in canonical metrics and base units."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from perfdiag.profiler.counters.timelines import Timeline
from perfdiag.trace_schemas.counters import METRICS, Metric, Unit, find_source, find_unit
from perfdiag.trace_schemas.recording import ABSENT, Counter, Recording

__all__ = ["trace_timelines"]

_TOOLS = ("dcgm", "nvidia_smi", "amd", "neuron")
"""Whose names for counters are looked for."""


def trace_timelines(recording: Recording) -> list[Timeline]:
    """The counters of a trace that the vocabulary has, on the clock of the trace.

    They are known by a tool's name for them, or by the canonical name in words ("SM Active") if the
    trace gives a unit of that quantity. Values that cannot be are left out.
    """
    return [timeline for counter in recording.counters for timeline in _known(counter)]


def _known(counter: Counter) -> Iterator[Timeline]:
    found = _meaning(counter)
    if found is None:
        return
    metric, unit = found
    values = counter.values * unit.numerator / unit.denominator
    good = np.isfinite(values) & (values >= metric.low) & (values <= metric.high)
    order = np.flatnonzero(good)[np.argsort(counter.ts_ns[good], kind="stable")]
    if not len(order):
        return
    changed = replace(
        replace(counter, values=values).take(order),
        name=metric.name,
        unit=metric.unit,
        scale=counter.scale * unit.numerator / unit.denominator,
    )
    period_ns = counter.period_ns or _usual_step(counter)
    entity = "" if counter.device == ABSENT else f"GPU {counter.device}"
    yield Timeline(changed, entity, {}, counter.name, known=True, period_ns=period_ns)


def _usual_step(counter: Counter) -> int:
    steps = np.diff(np.unique(counter.ts_ns))
    return int(np.median(steps)) if len(steps) else 0


def _meaning(counter: Counter) -> tuple[Metric, Unit] | None:
    """What a counter is, and the unit of its values."""
    sources = (find_source(tool, counter.name.strip()) for tool in _TOOLS)
    source = next((one for one in sources if one is not None), None)
    metric = METRICS.get(counter.name.strip().casefold().replace(" ", "_"))
    metric = source.metric if source is not None else metric
    if metric is None or metric.kind in ("total", "kernel"):
        return None
    if not counter.unit:
        return None if source is None else (metric, source.unit)
    unit = find_unit(counter.unit)
    return (metric, unit) if unit.base == metric.unit else None
