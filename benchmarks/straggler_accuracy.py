"""Whether the late rank is found: a part of `docs/accuracy.md`.

Usage: python benchmarks/straggler_accuracy.py [--jobs 48] [--clean 50] [--workers 2]

One rank of a healthy job of 4 or 8 is made late, by a share of the step, in one of four ways. Clean
jobs are the same without a fault; naming a rank there is a false alarm.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from accuracy_page import PAGE, write
from faulty_jobs import analysed, draw_healthy, mean_ns
from measure import table
from savings_accuracy import each

from perfdiag.profiler.simulator.faults import inject
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.truth import saving_of

__all__ = ["Case", "f1", "main", "stragglers_table"]

FIRST_SEED = 620_000
DOSES = (0.05, 0.1, 0.2)
TOLD = 0.1
"""The dose that is told in detail."""

FAULTS = ("late_by_loader", "late_by_garbage", "late_by_kernels", "late_by_clock")
RANKS = 4

FELT = 0.5
"""Of the dose that a fault really costs, from which on it must be found: what other work hides
makes nobody wait."""

DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """A job, and what became of it.

    Attributes:
        dose: share of the step; 0 for a clean job, which has no `fault`.
        late: the rank that was made late; `said`: the one that the report names.
        cost: share of the clean step by which the steps are longer.
    """

    parallelism: str
    dose: float
    fault: str = ""
    late: int | None = None
    said: int | None = None
    cost: float = 0.0

    @property
    def felt(self) -> bool:
        """Whether others have to wait."""
        return self.cost >= FELT * self.dose


def run(asked: tuple[int, float], skipped: int) -> Case:
    """A random job with a fault of a dose on a random rank, or none for 0.

    Args:
        asked: seed and dose.
        skipped: steps at the start that are not recorded.
    """
    seed, dose = asked
    healthy, chance = draw_healthy(seed, ranks=RANKS), Random(f"late {seed}")
    sound, how = build_job(healthy.spec), healthy.spec.parallelism
    if not dose:
        return Case(how, dose, said=analysed(sound, healthy, skipped=skipped).job.culprit_rank)
    late, fault = chance.randrange(healthy.spec.ranks), FAULTS[seed % len(FAULTS)]
    job = inject(fault, healthy.spec, healthy.platform, dose, (late,))
    said = analysed(job, healthy, skipped=skipped).job.culprit_rank
    cost = saving_of(job, sound, healthy.platform, seed) / mean_ns(sound, healthy)
    return Case(how, dose, fault, late, said, cost)


def f1(cases: Sequence[Case]) -> tuple[float, float, float]:
    """F1 of naming the late rank, and what holds it in 95 % of draws of the jobs.

    A wrong rank is both a miss and a false alarm.
    """
    marks = np.array([_marks(one) for one in cases], np.float64).reshape(-1, 3)
    jobs = len(marks)
    drawn = np.random.default_rng(jobs).multinomial(jobs, np.full(jobs, 1 / max(1, jobs)), DRAWS)
    right, missed, wrong = (np.concatenate((np.ones((1, jobs)), drawn)) @ marks).T
    found = 2 * right / np.maximum(2 * right + missed + wrong, 1)
    low, high = np.quantile(found[1:], (0.025, 0.975)).tolist()
    return float(found[0]), low, high


def _marks(one: Case) -> tuple[bool, bool, bool]:
    """Whether the late rank is named, is missed, and another one is named."""
    right = one.late is not None and one.said == one.late
    return right, one.late is not None and not right, one.said is not None and not right


def stragglers_table(cases: Sequence[Case]) -> str:
    """By dose; by way and by parallelism at a tenth of a step; and what was not felt."""
    clean = [one for one in cases if not one.dose]
    felt = [one for one in cases if one.dose and one.felt]
    rows = [
        _row(f"**{dose:.0%} of a step**", [one for one in felt if one.dose == dose], clean)
        for dose in sorted({one.dose for one in felt})
    ]
    tenth = [one for one in felt if one.dose == TOLD]
    for key in ("fault", "parallelism"):
        for value in sorted({getattr(one, key) for one in tenth}):
            own = [one for one in tenth if getattr(one, key) == value]
            alike = [one for one in clean if key == "fault" or one.parallelism == value]
            rows.append(_row(f"{TOLD:.0%}, `{value}`", own, alike))
    hidden = [one for one in cases if one.dose and not one.felt]
    wrong = sum(one.said not in (None, one.late) for one in hidden)
    alarms = sum(one.said is not None for one in clean)
    return (
        table(("late by", "jobs", "named", "another named", "F1"), rows)
        + f"\n\nFalse alarms: {alarms} on {len(clean)} clean jobs. In {len(hidden)} further jobs "
        f"the fault costs less than half of its dose, since other work hides it: in {wrong} of "
        "these another rank is named."
    )


def _row(name: str, cases: Sequence[Case], clean: Sequence[Case]) -> list[str]:
    value, low, high = f1([*cases, *clean])
    right = sum(one.said == one.late for one in cases)
    wrong = sum(one.said not in (None, one.late) for one in cases)
    shares = f"{value:.3f} ({low:.3f} - {high:.3f})"
    return [name, f"{len(cases)}", f"{right}", f"{wrong}", shares]


def main() -> None:
    """Simulate, analyse, and write the page's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=48, help="of each dose")
    parser.add_argument("--clean", type=int, default=50)
    parser.add_argument("--seed0", type=int, default=FIRST_SEED)
    parser.add_argument("--skipped", type=int, default=1, help="steps that are not recorded")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    doses = [dose for dose in DOSES for _ in range(options.jobs)] + [0.0] * options.clean
    cases = []
    one = partial(run, skipped=options.skipped)
    for done, case in each(one, list(enumerate(doses, options.seed0)), options.workers):
        cases.append(case)
        print(done, case, file=sys.stderr, flush=True)
    part = stragglers_table(cases)
    write(options.page, {"stragglers": part})
    print(part)


if __name__ == "__main__":
    main()
