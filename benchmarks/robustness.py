"""Verdicts on damaged traces: each stands, or is withheld with the reason.

Usage: python benchmarks/robustness.py [--jobs 2] [--programs dense,sharded] [--page FILE]

The healthy programs of the self-test are simulated, their traces damaged in each way that
`profiler/simulator/corruptions.py` knows, and analysed. The page `docs/robustness.md` is written
anew. Exit code 1: a verdict is wrong, or withheld for no reason that the report gives.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.selftest_plan import PROGRAMS
from perfdiag.profiler.simulator.corruptions import CORRUPTIONS, REFUSED, Corruption
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import TraceOptions, kineto_json
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.report import Report

__all__ = ["Answer", "Case", "judge", "main", "page"]

PAGE = Path(__file__).parents[1] / "docs" / "robustness.md"
SEED = 1
DEFAULT = ("dense", "recommendation", "diffusion", "sharded")
"""One program of each label."""

SHARES = "%"
"""In the sentence of a verdict: it says what fills the time instead, so that no label does."""


@dataclass(frozen=True)
class Answer:
    """What a report says: its label and late rank, kinds of notices, and those that warn.

    `reason`: whether it says why there is no verdict.
    """

    label: str
    culprit: int | None
    kinds: frozenset[str]
    warnings: frozenset[str]
    reason: bool

    @classmethod
    def of(cls, report: Report) -> "Answer":
        """What a report says."""
        warnings = frozenset(n.kind for n in report.notices if n.severity != "info")
        return cls(
            report.job.label,
            report.job.culprit_rank,
            frozenset(n.kind for n in report.notices),
            warnings,
            bool(warnings) or SHARES in report.job.why,
        )


@dataclass(frozen=True)
class Case:
    """A program and the damage to its traces, None for none."""

    program: str
    damage: str | None


def answer(case: Case) -> Answer:
    """Simulate, damage, analyse."""
    program = PROGRAMS[case.program]
    job = build_job(program.spec)
    events = simulate(job, program.platform, SEED)
    options = TraceOptions()
    traces = [kineto_json(one, job, program.platform, options) for one in events.ranks]
    if case.damage is not None:
        traces = CORRUPTIONS[case.damage].change(traces)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"rank{rank}.json" for rank in range(len(traces))]
        for path, trace in zip(paths, traces, strict=True):
            path.write_bytes(trace)
        try:
            return Answer.of(analyze([str(path) for path in paths], Options()))
        except InputError:
            refused = frozenset((REFUSED,))
            return Answer("unknown", None, refused, refused, reason=True)


def judge(damage: Corruption, whole: Answer, damaged: Answer) -> str:
    """What became of the verdict, in words; those of a failure begin in capitals.

    Args:
        damage: what was done.
        whole: the verdict on the traces as they were.
        damaged: the one on the damaged ones.
    """
    said = ", ".join(sorted(damaged.warnings | damaged.kinds.intersection(damage.notices)))
    if damaged.label == "unknown":
        if damage.expected == "stands":
            return f"WITHHELD, but could stand ({said})"
        return (
            f"withheld ({said or 'its sentence'})" if damaged.reason else "WITHHELD for no reason"
        )
    if (damaged.label, damaged.culprit) != (whole.label, whole.culprit):
        return f"WRONG: {damaged.label}, not {whole.label} ({said})"
    if damage.expected == "withheld":
        return f"STANDS on what is not there ({said})"
    if damage.notices and not damaged.kinds.intersection(damage.notices):
        return "STANDS without a notice"
    return f"stands ({said})" if said else "stands"


def page(programs: Sequence[str], verdicts: dict[Case, str], whole: dict[str, Answer]) -> str:
    """The page, as Markdown."""
    failed = sum(text[:2].isupper() for text in verdicts.values())
    heads = ["damage", *(f"{name} ({whole[name].label})" for name in programs)]
    rows = [
        [one.title, *(verdicts.get(Case(name, one.id), "-") for name in programs)]
        for one in CORRUPTIONS.values()
    ]
    names = "\n".join(f"- **{name}**: {PROGRAMS[name].title}" for name in programs)
    return f"""# Verdicts on damaged traces

Written on {datetime.now(UTC):%Y-%m-%d} by `python benchmarks/robustness.py`: {len(verdicts)}
cases, of which {failed} failed.

Traces of simulated jobs are damaged as tools, disks and people damage them, and analysed. A verdict
either *stands*, which means that label and late rank are those of the whole traces, or is
*withheld*, and then the report says why. In brackets: the [notices](notices.md) that are given;
`refused`: the input is not read, and the error says what to do. Failures are in capitals: a verdict
that is WRONG, one that STANDS where nobody can know, or without the notice that belongs to it, or
one that is WITHHELD where enough is there, or for no reason.

The programs:

{names}

{_grid([heads, ["---"] * len(heads), *rows])}
"""


def _grid(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Run all cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--programs", default=",".join(DEFAULT))
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    programs = options.programs.split(",")
    cases = [
        Case(name, one.id)
        for name in programs
        for one in CORRUPTIONS.values()
        if PROGRAMS[name].spec.ranks >= one.ranks
    ]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        whole = dict(
            zip(programs, pool.map(answer, (Case(n, None) for n in programs)), strict=True)
        )
        verdicts: dict[Case, str] = {}
        for case, found in zip(cases, pool.map(answer, cases), strict=True):
            assert case.damage is not None
            verdicts[case] = judge(CORRUPTIONS[case.damage], whole[case.program], found)
            print(f"{case.program:16} {case.damage:20} {verdicts[case]}", flush=True)
    options.page.write_text(page(programs, verdicts, whole), encoding="utf-8")
    return int(any(text[:2].isupper() for text in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
