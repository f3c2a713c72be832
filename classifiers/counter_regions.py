"""Counters of a rank over all steps, each step and each phase, as the report has them."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from perfdiag.classifiers.counter_roofs import contradicts, roof_of
from perfdiag.classifiers.counters import Figure, RankCounters, Windows
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import Notice

__all__ = ["CounterRows", "Judged", "counter_rows"]

KERNELS = ("compute_kernel", "memory_kernel", "kernel_unclassified")
"""Leaves in which kernels that are no collectives run."""


class _Part(NamedTuple):
    """A part of the time: all steps, one step, or one phase of all steps."""

    kind: Literal["steps", "step", "phase"]
    name: str
    ordinal: int | None
    windows: Windows

    @property
    def whole_ns(self) -> int:
        return int((self.windows[1] - self.windows[0]).sum())

    @property
    def usual_ns(self) -> float:
        """Length of one of its windows."""
        return float(np.median(self.windows[1] - self.windows[0]))


class Judged(NamedTuple):
    """What counters say of a part of the time; `against`: the budget of it says something else."""

    windows: Windows
    roof: report.Roof
    against: bool


class CounterRows(NamedTuple):
    """Rows of the report, the notice that counters contradict the budget, and each part's roof."""

    rows: list[report.CounterRegion]
    notices: list[Notice]
    judged: list[Judged]


def counter_rows(facts: RankFacts) -> CounterRows:
    """Summarise the counters of a rank; nothing where it has none.

    Counters stand in a step or phase only where their samples are no farther apart than it is
    long: otherwise they tell of what lies around it.
    """
    if facts.counters is None:
        return CounterRows([], [], [])
    rows: list[report.CounterRegion] = []
    judged: list[Judged] = []
    parts = [*_parts(facts)]
    for part, leaves in zip(parts, _leaf_ns(facts, parts), strict=True):
        row = _row(facts.counters, part, leaves)
        if row is None:
            continue
        rows.append(row[0])
        judged.append(Judged(part.windows, row[0].roof, row[1]))
    against = [region for region, one in zip(rows, judged, strict=True) if one.against]
    return CounterRows(rows, _disagreement(against), judged)


def _parts(facts: RankFacts) -> Iterator[_Part]:
    steps, regions = facts.model.steps, facts.model.regions
    yield _Part("steps", "", None, (steps.ts_ns, steps.end_ns))
    if len(steps.ts_ns) > 1:
        for i, name in enumerate(steps.name):
            window = (steps.ts_ns[i : i + 1], steps.end_ns[i : i + 1])
            yield _Part("step", name, int(steps.ordinal[i]), window)
    phase = np.array([kind == "phase" for kind in regions.kind], bool)
    phase &= regions.end_ns > regions.ts_ns
    names = np.array(regions.name, object)
    for name in dict.fromkeys(names[phase].tolist()):
        rows = np.flatnonzero(phase & (names == name))
        rows = rows[np.argsort(regions.ts_ns[rows], kind="stable")]
        yield _Part("phase", name, None, (regions.ts_ns[rows], regions.end_ns[rows]))


def _leaf_ns(facts: RankFacts, parts: list[_Part]) -> list[list[int]]:
    """Of each part the time in `KERNELS`, one after the other."""
    bounds = [np.concatenate([part.windows[side] for part in parts]) for side in (0, 1)]
    first = np.cumsum([0, *(len(part.windows[0]) for part in parts)])[:-1]
    times = [facts.timeline.time_in((leaf,), (bounds[0], bounds[1])) for leaf in KERNELS]
    found: list[list[int]] = np.add.reduceat(np.stack(times), first, axis=1).T.tolist()
    return found


def _row(
    counters: RankCounters, part: _Part, leaf_ns: list[int]
) -> tuple[report.CounterRegion, bool] | None:
    """One row, and whether the budget of the same time says something else."""
    figures = _figures(counters, part)
    if not figures or not part.whole_ns:
        return None
    whole, usual, (compute, memory, unknown) = part.whole_ns, part.usual_ns, leaf_ns
    close = {m: f for m, f in figures.items() if counters.tracks[m].period_ns <= usual}
    verdict = roof_of(close, (compute + memory + unknown) / whole)
    region = report.CounterRegion(
        kind=part.kind,
        name=part.name,
        ordinal=part.ordinal,
        dur_ns=whole,
        figures=[_figure(counters, metric, figure) for metric, figure in figures.items()],
        roof=verdict.roof,
        why=verdict.why,
    )
    return region, contradicts(verdict, compute, memory)


def _figures(counters: RankCounters, part: _Part) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    usual_ns = part.usual_ns
    for metric, track in counters.tracks.items():
        if track.unit == "mask":  # bits: they have no mean
            continue
        if part.kind != "steps" and not 0 < track.period_ns <= usual_ns:
            continue
        figure = counters.figure(metric, part.windows)
        if figure is not None:
            found[metric] = figure
    return found


def _figure(counters: RankCounters, metric: str, figure: Figure) -> report.CounterFigure:
    track = counters.tracks[metric]
    return report.CounterFigure(
        metric=metric,
        unit=track.unit,
        mean=figure.mean,
        p10=figure.p10,
        p90=figure.p90,
        coverage=figure.coverage,
        samples=figure.samples,
        file=track.file,
    )


_FOLLOWED = {
    True: "The budget follows the counters.",
    False: "The budget has no leaf for that and stays as it was.",
}
_PLACE = {"steps": "all steps", "step": "step", "phase": "phase"}


def _disagreement(against: list[report.CounterRegion]) -> list[Notice]:
    if not against:
        return []
    first = against[0]
    place = " ".join(part for part in (_PLACE[first.kind], first.name) if part)
    more = f" ({len(against) - 1} more parts likewise)" if len(against) > 1 else ""
    message = (
        f"Counters of {place} say something else than the names and shapes of its kernels{more}. "
        f"{first.why} {_FOLLOWED[first.roof in ('compute', 'memory')]}"
    )
    return [Notice("model.disagrees", "warning", len(against), message)]
