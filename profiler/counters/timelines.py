"""From what a file says to timelines in canonical metrics and base units."""

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.counters.cells import Missing, Number, in_base, parse_cell, unit_of
from perfdiag.profiler.counters.clocks import ClockHints, TimeKind, anchor
from perfdiag.trace_schemas.counters import (
    METRICS,
    Metric,
    SourceName,
    Unit,
    find_source,
    rate_unit,
)
from perfdiag.trace_schemas.recording import ABSENT, Counter, Int64s

__all__ = ["Convert", "Series", "SetAside", "Sheet", "Timeline", "timelines_of"]

Convert = Literal["as is", "counts of intervals", "total"]

_NS = 1e9
_LONGEST_STEP = 2.5
"""A step so many times the usual one spans missing samples: no rate across it."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """One counter of one thing over time.

    Attributes:
        counter: samples; `scale` is the factor of the most common unit. `backward` values describe
            the time since the sample before, `gauge` values the moment.
        entity: what was sampled, for people: `GPU 0`, `GPU-I 3`, `socket S0`, `host`.
        labels: what else tells this timeline from others of the file.
        source_name: the tool's name for it.
        known: whether it is in the vocabulary.
        period_ns: usual time between samples, missing ones counted; 0 where there is but one.
    """

    counter: Counter
    entity: str
    labels: Mapping[str, str]
    source_name: str
    known: bool
    period_ns: int


@dataclass(slots=True)
class Series:
    """One counter of one thing as the file has it; filled row by row.

    Attributes:
        name: the tool's name for the counter.
        unit: unit that the file gives for all its numbers; empty where it gives none.
        device: ordinal, or `ABSENT`.
        entity, labels: see `Timeline`.
        convert: what values are: themselves, counts of an interval, or a total that rises.
        times: of each cell: nanoseconds, or its ordinal.
        texts: cells.
        interval_ns: of each cell, for counts of intervals.
    """

    name: str
    unit: str = ""
    device: int = ABSENT
    entity: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    convert: Convert = "as is"
    times: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    interval_ns: list[int] = field(default_factory=list)

    def add(self, time: int, text: str, interval_ns: int = 0) -> None:
        """Append one cell."""
        self.times.append(time)
        self.texts.append(text)
        self.interval_ns.append(interval_ns)


@dataclass(slots=True)
class SetAside:
    """Cells that gave no sample, by the tool's name for the counter.

    Attributes:
        missing: marks, sentinels, and totals that were reset.
        invalid: what is no number, or has another unit.
        out_of_range: what cannot be.
        text: columns that hold text and nothing else.
    """

    missing: Tally[str] = field(default_factory=Tally)
    invalid: Tally[str] = field(default_factory=Tally)
    out_of_range: Tally[str] = field(default_factory=Tally)
    text: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a reader of one format found.

    Attributes:
        tool: key into the vocabulary.
        series: cells by counter and thing.
        kind: what their times are.
        default_period_ns: between samples without time, if the user does not say.
        damaged: rows or lines that could not be read, by what is wrong with them.
    """

    tool: str
    series: Sequence[Series]
    kind: TimeKind
    default_period_ns: int = 10**9
    damaged: Mapping[str, int] = field(default_factory=dict)


def timelines_of(sheet: Sheet, hints: ClockHints, aside: SetAside) -> list[Timeline]:
    """Convert every series; what gives no sample is counted in `aside`."""
    found = (_timeline(series, sheet, hints, aside) for series in sheet.series)
    return [timeline for timeline in found if timeline is not None]


def _timeline(series: Series, sheet: Sheet, hints: ClockHints, aside: SetAside) -> Timeline | None:
    source = find_source(sheet.tool, series.name)
    column = _Column(series, source)
    values = column.read(aside)
    if values is None:
        aside.text.append(series.name)
        return None
    times = anchor(series.times, sheet.kind, hints, sheet.default_period_ns)
    held = ~np.isnan(values)
    order = np.flatnonzero(held)[np.argsort(times[held], kind="stable")]
    name = column.metric.name if column.metric else series.name
    samples = _Samples(name, times[order], values[order], column.base, column.metric)
    period_ns = _usual_step(times)
    if series.convert == "total" or (samples.metric and samples.metric.kind == "total"):
        samples = _rates(samples, series.name, period_ns, aside)
    samples = _in_range(samples, series.name, aside)
    if not len(samples.ts_ns):
        return None
    return _finished(series, column, samples, period_ns)


def _finished(series: Series, column: "_Column", samples: "_Samples", period_ns: int) -> Timeline:
    unit = column.common or Unit(samples.base, 1, 1)
    counter = Counter(
        name=samples.name,
        unit=samples.base,
        scale=unit.numerator / unit.denominator,
        semantics=samples.semantics(series.convert),
        device=series.device,
        ts_ns=samples.ts_ns,
        values=samples.values,
    )
    known = column.source is not None
    return Timeline(counter, series.entity, series.labels, series.name, known, period_ns)


@dataclass(frozen=True, slots=True)
class _Samples:
    name: str
    ts_ns: Int64s
    values: NDArray[np.float64]
    base: str
    metric: Metric | None

    def semantics(self, convert: Convert) -> Literal["gauge", "cumulative", "backward"]:
        if self.metric is None:
            alone = convert == "total" and len(self.ts_ns) < 2
            return "cumulative" if alone else "gauge" if convert == "as is" else "backward"
        if self.metric.kind == "total":
            return "cumulative"
        return "backward" if self.metric.kind == "average" else "gauge"


class _Column:
    """Conversion of one series' cells; most cells repeat, so each text is read once."""

    def __init__(self, series: Series, source: SourceName | None) -> None:
        self.series = series
        self.source = source
        self.metric = source.metric if source else None
        self.common: Unit | None = None
        self.base = self.metric.unit if self.metric else ""
        self._known: dict[str, float | Missing] = {}

    def read(self, aside: SetAside) -> NDArray[np.float64] | None:
        """(n,) values in the base unit, NaN where there is none; None for a column of text."""
        series, known = self.series, self._known
        for text in dict.fromkeys(series.texts):
            known[text] = self._convert(parse_cell(text))
        count = Tally(series.texts)
        damaged = sum(n for text, n in count.items() if known[text] is Missing.DAMAGE)
        missing = sum(n for text, n in count.items() if known[text] is Missing.MARK)
        if self.source is None and damaged and damaged + missing == len(series.texts):
            return None
        aside.invalid[series.name] += damaged
        aside.missing[series.name] += missing
        held = [np.nan if isinstance(v := known[t], Missing) else v for t in series.texts]
        values = np.array(held, np.float64)
        return self._over_intervals(values) if series.convert == "counts of intervals" else values

    def _convert(self, number: Number | Missing) -> float | Missing:
        if isinstance(number, Missing):
            return number
        unit = self._unit(number)
        base = rate_unit(unit.base) if self.series.convert == "counts of intervals" else unit.base
        if self.metric is None and (self.common is None or base == self.base):
            self.base = base
        elif base != self.base:
            return Missing.DAMAGE
        self.common = self.common or unit
        return in_base(number, unit)

    def _unit(self, number: Number) -> Unit:
        source = self.source
        if source and source.forced:
            return source.unit
        counts = self.series.convert == "counts of intervals"
        fallback = Unit("", 1, 1) if counts or source is None else source.unit
        return unit_of(number, self.series.unit, fallback)

    def _over_intervals(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        seconds = np.array(self.series.interval_ns, np.float64) / _NS
        rates = np.full(len(values), np.nan)
        np.divide(values, seconds, out=rates, where=seconds > 0)
        return rates


def _rates(samples: _Samples, name: str, period_ns: int, aside: SetAside) -> _Samples:
    """Change a second of a total that rises; one sample alone stays the total that it is.

    A total that falls was reset: the step is missing, as is one over a gap.
    """
    if len(samples.ts_ns) < 2:
        return samples
    step_ns, step = np.diff(samples.ts_ns), np.diff(samples.values)
    reset = step < 0
    aside.missing[name] += int(reset.sum())
    good = ~reset & (step_ns > 0) & (step_ns <= _LONGEST_STEP * period_ns)
    values = step[good] / (step_ns[good] / _NS)
    total = samples.metric
    metric = METRICS[total.rate] if total and total.rate else None
    rate_name = metric.name if metric else f"{samples.name}_rate"
    return _Samples(rate_name, samples.ts_ns[1:][good], values, rate_unit(samples.base), metric)


def _in_range(samples: _Samples, name: str, aside: SetAside) -> _Samples:
    metric = samples.metric
    good = np.isfinite(samples.values)
    if metric is not None:
        good &= (samples.values >= metric.low) & (samples.values <= metric.high)
    aside.out_of_range[name] += int((~good).sum())
    return replace(samples, ts_ns=samples.ts_ns[good], values=samples.values[good])


def _usual_step(ts_ns: Int64s) -> int:
    """Time between samples, missing ones included; 0 where there is but one."""
    steps = np.diff(np.unique(ts_ns))
    return int(np.median(steps)) if len(steps) else 0
