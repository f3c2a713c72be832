"""What fixes are said to save, beside what they save: a part of `docs/accuracy.md`.

Usage: python benchmarks/savings_accuracy.py [--jobs 200] [--several 100] [--workers 2]

A fault goes into a healthy job, and the job is simulated with it and mended as its fix says: the
difference of the mean steps is what that saves. The prediction is that of the fix, from the traces
of the faulty job alone. In jobs with several faults, their order is compared.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import numpy as np
from accuracy_page import PAGE, write
from faulty_jobs import Healthy, analysed, draw_healthy, injected, judged, mean_ns
from measure import table

from perfdiag.classifiers.fixes import concerns
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.savings import replay_savings
from perfdiag.profiler.simulator.faults import FAULTS, inject, mend
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.program import Job
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.report import Fix, Report

__all__ = [
    "Prediction",
    "Several",
    "Single",
    "each",
    "kendall",
    "main",
    "order_line",
    "savings_table",
]

_Seed = TypeVar("_Seed")
_Found = TypeVar("_Found")

FIRST_SEED = 540_000
DOSES = (0.05, 0.5)

HIDDEN = 0.01
"""Of the step: a fault whose removal saves less is hidden by other work."""

CLOCKS = ("capped_clock", "late_by_clock")
"""Faults that no trace shows: their jobs come with a log of clocks."""

LONE = tuple(name for name in FAULTS if name != "small_batch")
"""With another batch a step is another step."""

NAMED_ONLY = (
    "exposed_all_reduce",
    "python_overhead",
    "launch_bound_small_kernels",
    "draining_sync",
)
"""Findings that name a fault of another kind for what it looks like; their fixes do not undo it."""

TOGETHER = (
    "slow_loader",
    "item_each_layer",
    "logging",
    "garbage",
    "allocator_storm",
    "pageable_copies",
    "slow_link",
    "late_by_kernels",
)
"""Faults that can be put in beside each other, and of which no two have the same fix."""


class Prediction(NamedTuple):
    """Of a fix, in ns of a step.

    `place`: in the order of fixes of the report; `turn`: in that of the fixes that name a fault,
    without all others.
    """

    fix: str
    likely: float
    low: float
    high: float
    place: int
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Single:
    """A job with one fault.

    Attributes:
        fault: what was put in.
        step_ns: of the faulty job; `real_ns`: what its removal saves of that.
        predicted: None where no fix names the fault.
        alone: the healthy job has no such fix.
    """

    fault: str
    step_ns: float
    real_ns: float
    predicted: Prediction | None
    alone: bool

    @property
    def hidden(self) -> bool:
        """Whether the fault costs next to nothing."""
        return self.real_ns < HIDDEN * self.step_ns

    @property
    def error(self) -> float:
        """Of the prediction, as a share of the step; none predicted counts as 0 ns."""
        likely = 0.0 if self.predicted is None else self.predicted.likely
        return abs(likely - self.real_ns) / self.step_ns

    @property
    def error_at_best(self) -> float:
        """Likewise, if the fix saves the most that it may."""
        high = 0.0 if self.predicted is None else self.predicted.high
        return abs(high - self.real_ns) / self.step_ns

    @property
    def covered(self) -> bool:
        """Whether the interval holds what is really saved."""
        return self.predicted is not None and (
            self.predicted.low <= self.real_ns <= self.predicted.high
        )


@dataclass(frozen=True, slots=True)
class Several:
    """A job with several faults.

    Attributes:
        step_ns: mean step of the job.
        saved_ns: what mending some of the faults together really saves of that, for each choice.
        predicted: by fault; None where no fix names it.
    """

    step_ns: float
    saved_ns: Mapping[frozenset[str], float]
    predicted: Mapping[str, Prediction | None]

    @property
    def named(self) -> dict[str, Prediction]:
        """What is predicted of faults that a fix of their own names."""
        found = {fault: one for fault, one in self.predicted.items() if one is not None}
        fixes = [one.fix for one in found.values()]
        return {fault: one for fault, one in found.items() if fixes.count(one.fix) == 1}

    def by_saving(self) -> Iterator[tuple[float, float]]:
        """Of two named faults: by how much one saves more alone, and is said to."""
        for (fault, one), (other, another) in combinations(self.named.items(), 2):
            more = self.saved_ns[frozenset({fault})] - self.saved_ns[frozenset({other})]
            if self._differs(more):
                yield more, one.likely - another.likely

    def by_order(self, *, others: bool = False) -> Iterator[tuple[float, float]]:
        """Of two named faults: by how much the one that should come first saves more, and comes.

        That one comes next whose mending saves most after all before it.

        Args:
            others: in the report, where fixes of other things come between.
        """
        left, done = self.named, frozenset[str]()
        while left:
            saved = {fault: self.saved_ns[done | {fault}] for fault in left}
            best = max(sorted(saved), key=lambda fault: saved[fault])
            first = left.pop(best)
            for fault, one in left.items():
                later = one.place - first.place if others else one.turn - first.turn
                if self._differs(saved[best] - saved[fault]):
                    yield saved[best] - saved[fault], later
            done |= {best}

    def _differs(self, ns: float) -> bool:
        return abs(ns) >= HIDDEN * self.step_ns


def single(seed: int) -> Single:
    """A random job with a random fault that it can have."""
    healthy, chance = draw_healthy(seed), Random(f"fault {seed}")
    sound = build_job(healthy.spec)
    fault, job, mended = next(_faulty(healthy, sound, chance))
    step = mean_ns(job, healthy)
    real = step - mean_ns(mended, healthy)
    clocks = fault in CLOCKS
    report = analysed(job, healthy, clocks=clocks)
    before = {fix.id for fix in analysed(mended, healthy, clocks=clocks).fixes}
    fixes = undoing(fault)
    fresh = _prediction(report, [one for one in fixes if one not in before])
    found = fresh or _prediction(report, fixes)
    return Single(fault, step, real, found, found is None or found is fresh)


def _faulty(healthy: Healthy, sound: Job, chance: Random) -> Iterator[tuple[str, Job, Job]]:
    """Faults that the job can have, in random order, and what mends them."""
    dose, peaks = chance.uniform(*DOSES), healthy.platform.flops_per_s
    for fault in chance.sample(LONE, len(LONE)):
        # Without TF32 what mends it is mixed precision, which halves all traffic: another fix.
        if fault == "float32" and peaks.get("tf32", 0.0) <= peaks["fp32"]:
            continue
        ranks = (0,) if fault == "slow_link" and healthy.spec.ranks >= 4 else ()
        with suppress(UsageError):
            job = inject(fault, healthy.spec, healthy.platform, dose, ranks)
            if job != sound:
                yield fault, job, mend(fault, healthy.spec, healthy.platform, dose, ranks)


def undoing(fault: str) -> Sequence[str]:
    """Findings that name a fault, and whose fix undoes it; the first always does."""
    first, *others = FAULTS[fault].findings
    return first, *(one for one in others if one not in NAMED_ONLY)


def several(seed: int) -> Several | None:
    """A random job with three random faults; None where it can have fewer than two."""
    chance = Random(f"faults {seed}")
    healthy = draw_healthy(seed)
    healthy = replace(healthy, spec=replace(healthy.spec, item_each_step=True))
    doses = {fault: chance.uniform(*DOSES) for fault in chance.sample(TOGETHER, len(TOGETHER))}
    able = [fault for fault in doses if _able(healthy, fault)][:3]
    if len(able) < 2:
        return None
    chosen = {fault: doses[fault] for fault in able}
    job = injected(healthy, chosen)
    whole = mean_ns(job, healthy)
    some = [frozenset(c) for n in range(1, len(able) + 1) for c in combinations(able, n)]
    saved = {mended: whole - mean_ns(injected(healthy, chosen, mended), healthy) for mended in some}
    found = judged(job, healthy)
    predicted = {fault: _prediction(found.report, undoing(fault)) for fault in chosen}
    return Several(whole, saved, _in_turn(found, predicted))


def _in_turn(
    found: Judged, predicted: Mapping[str, Prediction | None]
) -> dict[str, Prediction | None]:
    """The predictions with their order if there were no other fixes."""
    named = {one.fix for one in predicted.values() if one is not None}
    fixes = concerns([one.diagnosed for one in found.ranks])
    chosen = {name: fixes[name] for name in fixes if name in named}
    if found.replay.believed and chosen:
        turns = list(replay_savings(found.replay, found.job.waits, chosen))
    else:
        turns = [fix.id for fix in found.report.fixes]
    return {
        fault: one if one is None else one._replace(turn=turns.index(one.fix))
        for fault, one in predicted.items()
    }


def _able(healthy: Healthy, fault: str) -> bool:
    if FAULTS[fault].one_rank and healthy.spec.ranks == 1:
        return False
    try:
        injected(healthy, {fault: 0.1})
    except UsageError:
        return False
    return True


def _prediction(report: Report, findings: Sequence[str]) -> Prediction | None:
    """The fix that names a fault: of the first of the findings that has one."""
    fixes: dict[str, tuple[int, Fix]] = {fix.id: (at, fix) for at, fix in enumerate(report.fixes)}
    for name in findings:
        if name in fixes:
            place, fix = fixes[name]
            bounds = fix.saving_low_ns, fix.saving_high_ns
            return Prediction(name, fix.saving_ns_per_step, *bounds, place)
    return None


def savings_table(found: Sequence[Single]) -> str:
    """A row for all jobs with a fix for their fault alone, and one a fault."""
    felt = [one for one in found if not one.hidden]
    rows = [_row("**all**", felt)]
    names = [name for name in FAULTS if any(one.fault == name for one in felt)]
    rows += [_row(f"`{name}`", [one for one in felt if one.fault == name]) for name in names]
    quiet = [one for one in found if one.hidden]
    loud = [one for one in quiet if one.alone and one.error > HIDDEN]
    return (
        table(_HEAD, rows)
        + f"\n\nOf {len(found)} jobs, {len(quiet)} have a fault that costs less than {HIDDEN:.0%} "
        f"of a step, since other work hides it; {len(loud)} of these are told that a fix saves "
        "more than that."
    )


_HEAD = (
    "fault",
    "jobs",
    "named",
    "has it healthy",
    "judged",
    "median error",
    "90 % of errors below",
    "median error at best",
    "in the interval",
)


def _row(name: str, jobs: Sequence[Single]) -> list[str]:
    named = [one for one in jobs if one.predicted is not None]
    judged = [one for one in named if one.alone]
    counts = [len(jobs), len(named), len(named) - len(judged), len(judged)]
    if not judged:
        return [name, *map(str, counts), "-", "-", "-", "-"]
    middle, high = np.quantile([one.error for one in judged], (0.5, 0.9)).tolist()
    best = float(np.median([one.error_at_best for one in judged]))
    covered = sum(one.covered for one in judged) / len(judged)
    shares = (f"{middle:.1%}", f"{high:.1%}", f"{best:.1%}", f"{covered:.0%}")
    return [name, *map(str, counts), *shares]


def order_line(found: Sequence[Several]) -> str:
    """How far the order of fixes is that of what they really save."""
    order = [pair for one in found for pair in one.by_order()]
    shown = [pair for one in found for pair in one.by_order(others=True)]
    saving = [pair for one in found for pair in one.by_saving()]
    named = sum(one is not None for job in found for one in job.predicted.values())
    faults = sum(len(job.predicted) for job in found)
    return (
        f"{len(found)} jobs with {faults} faults, two or three each, of which fixes name {named}. "
        f"Pairs of which one really saves more by {HIDDEN:.0%} of a step are compared. Kendall's "
        f"tau of the order of these fixes, each after those before it, is **{kendall(order):.2f}** "
        f"({len(order)} pairs), and {kendall(shown):.2f} in the report, where other fixes come "
        f"between; of what each saves alone it is **{kendall(saving):.2f}** ({len(saving)} pairs)."
    )


def kendall(pairs: Sequence[tuple[float, float]]) -> float:
    """Pairs whose differences agree in sign less those that do not, as a share of both."""
    signs = np.sign(np.array(pairs, np.float64).reshape(-1, 2)).prod(axis=1)
    told = np.count_nonzero(signs)
    return float(signs.sum() / told) if told else float("nan")


def each(
    what: Callable[[_Seed], _Found], seeds: Iterable[_Seed], workers: int
) -> Iterator[tuple[int, _Found]]:
    """What comes of each seed, and how many are done."""
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=gc.disable) as pool:
        yield from enumerate(pool.map(what, seeds), 1)


def main() -> None:
    """Simulate, analyse, and write the page's parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200, help="with one fault")
    parser.add_argument("--several", type=int, default=100, help="jobs with several")
    parser.add_argument("--seed0", type=int, default=FIRST_SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    singles: list[Single] = []
    seeds = range(options.seed0, options.seed0 + options.jobs)
    for done, one in each(single, seeds, options.workers):
        singles.append(one)
        print(done, one, file=sys.stderr, flush=True)
    found: list[Several] = []
    seeds = range(seeds.stop, seeds.stop + options.several)
    for done, some in each(several, seeds, options.workers):
        found += [] if some is None else [some]
        print(done, some, file=sys.stderr, flush=True)
    parts = {"savings": savings_table(singles), "order": order_line(found)}
    write(options.page, parts)
    print(*parts.values(), sep="\n\n")


if __name__ == "__main__":
    main()
