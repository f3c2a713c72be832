"""Regions of simulated jobs: their features, as any trace gives them, and what really bounds them.

A job is simulated, written as the traces that PyTorch would write, and read back the way that user
traces take. So the classifier sees what a trace shows, and nothing that only the simulator knows.
"""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.analysis import Options, read_ranks
from perfdiag.classifiers.counters_beside import CountersBeside
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import FeatureTable, rank_features
from perfdiag.classifiers.job import gather
from perfdiag.classifiers.labels import judge
from perfdiag.classifiers.outcome import guarded_replay
from perfdiag.classifiers.replayed_windows import ReplayedWindows
from perfdiag.profiler.simulator.counters import CounterOptions, dcgm_csv
from perfdiag.profiler.simulator.draw import draw_spec
from perfdiag.profiler.simulator.engine import simulate
from perfdiag.profiler.simulator.events import JobEvents
from perfdiag.profiler.simulator.jobs import build_job
from perfdiag.profiler.simulator.kineto import write_job
from perfdiag.profiler.simulator.kineto_options import TraceOptions
from perfdiag.profiler.simulator.platform import Platform
from perfdiag.profiler.simulator.program import Job
from perfdiag.profiler.simulator.truth import find_truth
from perfdiag.profiler.simulator.truth_types import RankTruth, StepTruth, Verdict
from perfdiag.trace_schemas.report import LABELS, Label

__all__ = ["CLASSES", "Domain", "Samples", "Trace", "Watch", "samples_of_job", "samples_of_jobs"]

CLASSES: tuple[Label, ...] = LABELS[:-1]


@dataclass(frozen=True, slots=True)
class Domain:
    """Where jobs are drawn from: families of models, and platforms by name."""

    families: tuple[str, ...]
    platforms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a trace of a job holds, beside what every one does.

    Attributes:
        shapes: inputs of operators.
        counters: a file of hardware counters lies beside it.
        peers: all ranks are given, or only the first.
        unknown_names: share of the kinds of kernels that have names of no known family.
    """

    shapes: bool
    counters: bool
    peers: bool
    unknown_names: float

    @classmethod
    def drawn(cls, seed: int) -> "Trace":
        """As traces come: most with shapes and with all ranks, few with counters."""
        chance = Random(f"trace {seed}")
        return cls(
            shapes=chance.random() < 0.55,
            counters=chance.random() < 0.3,
            peers=chance.random() < 0.7,
            unknown_names=0.3 if chance.random() < 0.15 else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Samples:
    """(n,) regions.

    Attributes:
        values: (n, features).
        truth: (n,) class by truth, as a position in `CLASSES`.
        ambiguous: (n,) whether the truth is.
        rules: (n,) class by the rules; -1 for `unknown`.
        step: (n,) whether it is a whole step, not a phase.
        seed: (n,) of its job.
        about: of each job by seed: family, platform, vendor, parallelism and what its trace holds.
        watched: (n,) what else was asked of each region, by name.
    """

    values: NDArray[np.float64]
    truth: NDArray[np.int64]
    ambiguous: NDArray[np.bool_]
    rules: NDArray[np.int64]
    step: NDArray[np.bool_]
    seed: NDArray[np.int64]
    about: Mapping[int, Mapping[str, str]]
    watched: Mapping[str, NDArray[np.int64]]

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Samples":
        """Some of them."""
        watched = {name: column[rows] for name, column in self.watched.items()}
        columns = ("values", "truth", "ambiguous", "rules", "step", "seed")
        return replace(self, watched=watched, **{c: getattr(self, c)[rows] for c in columns})

    def having(self, key: str, value: str) -> "Samples":
        """Those of jobs of which `about` says this."""
        return self.take(np.array([self.about[s][key] == value for s in self.seed.tolist()], bool))


Watch = Callable[[RankFacts, FeatureTable], Mapping[str, NDArray[np.int64]]]
"""Asked of each rank: further columns of its regions, such as what other tools say of them."""


def samples_of_jobs(
    seeds: Sequence[int],
    domain: Domain,
    *,
    workers: int = 1,
    watch: Watch | None = None,
    trace: Trace | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> Samples:
    """Draw, simulate and read jobs.

    Args:
        seeds: one a job.
        domain: where they are drawn from.
        workers: processes.
        watch: see `Watch`; must be importable.
        trace: what traces hold; drawn for each job unless given.
        tell: is told how many jobs are done.
    """
    found = []
    for samples in _each(seeds, domain, workers, watch, trace):
        found.append(samples)
        tell(len(found))
    return _joined(found)


def _each(
    seeds: Sequence[int], domain: Domain, workers: int, watch: Watch | None, trace: Trace | None
) -> Iterator[Samples]:
    several = [(seed, domain, watch, trace) for seed in seeds]
    if workers == 1:
        yield from (samples_of_job(*one) for one in several)
        return
    context = multiprocessing.get_context("spawn")  # the engine's threads would not survive a fork
    with ProcessPoolExecutor(workers, context, initializer=gc.disable) as pool:
        yield from pool.map(_in_process, several)


def _in_process(one: tuple[int, Domain, Watch | None, Trace | None]) -> Samples:
    found = samples_of_job(*one)
    gc.collect()  # what analyses leave behind adds up over hundreds of jobs
    return found


def samples_of_job(
    seed: int, domain: Domain, watch: Watch | None = None, trace: Trace | None = None
) -> Samples:
    """Draw, simulate and read one job; the same for the same arguments.

    Args:
        seed: of the draw, of chance in the job, and of what its traces hold.
        domain: where it is drawn from.
        watch: see `Watch`.
        trace: what its traces hold; drawn unless given.
    """
    spec, platform = draw_spec(seed, domain.families, domain.platforms)
    job = build_job(spec)
    events = simulate(job, platform, seed)
    truth = find_truth(job, platform, seed, events)
    holds = trace or Trace.drawn(seed)
    about = {
        "family": truth.family,
        "platform": platform.name,
        "vendor": platform.vendor,
        "parallelism": truth.parallelism,
        **{name: str(getattr(holds, name)) for name in ("shapes", "counters", "peers")},
    }
    with TemporaryDirectory() as folder:
        ranks = _read(events, job, platform, holds, seed, Path(folder))
    parts = [
        _labelled(facts, table, truth.ranks[facts.rank or 0], watch)
        for facts, table in _described(ranks)
    ]
    joined = _joined(parts)
    return replace(joined, seed=np.full(len(joined.truth), seed), about={seed: about})


def _read(
    events: JobEvents, job: Job, platform: Platform, holds: Trace, seed: int, folder: Path
) -> list[RankFacts]:
    """Write the job's traces, and read them as a user's."""
    how = TraceOptions(
        shapes=holds.shapes, unknown_names=holds.unknown_names, seed=seed, compress=False
    )
    if not holds.peers:
        events = replace(events, ranks=events.ranks[:1])
    paths = [str(path) for path in write_job(events, job, platform, how, folder)]
    counters = []
    if holds.counters:
        table = folder / "counters.csv"
        near = [one for one in events.ranks if one.rank < platform.ranks_per_host]
        period_ns = _period_ns(events)
        table.write_text(dcgm_csv(near, platform, CounterOptions(period_ns=period_ns, trace=how)))
        counters = [str(table)]
    options = Options(counters=counters)
    read = read_ranks(paths, options, lambda text, share: None, [], lambda: None)
    placed = CountersBeside.read(options).placed(read)
    return [item.facts for item in placed]


def _period_ns(events: JobEvents) -> int:
    """Between samples: a twentieth of a step, at least a millisecond as DCGM can."""
    windows = [one for one in events.ranks[0].windows if one.phase is None]
    last = max(one.completion_ns for one in windows)
    return max(1_000_000, last // (20 * max(1, len(windows))))


def _described(ranks: Sequence[RankFacts]) -> Iterator[tuple[RankFacts, FeatureTable]]:
    """The ranks, looked at together, and the features of each."""
    job = gather(ranks)
    windows: Sequence[ReplayedWindows | None] = guarded_replay(job).windows or [None] * len(ranks)
    for facts, replayed in zip(job.ranks, windows, strict=True):
        yield facts, rank_features(facts, replayed)


def _labelled(
    facts: RankFacts, table: FeatureTable, truth: RankTruth, watch: Watch | None
) -> Samples:
    """The regions of which the truth is known; a phase that comes twice in a step has none."""
    by_step = dict(zip(facts.model.steps.ordinal.tolist(), truth.steps, strict=True))
    trusted = dict(zip(facts.model.steps.ordinal.tolist(), facts.trusted.tolist(), strict=True))
    rows, verdicts = [], []
    pairs = list(zip(table.step.tolist(), table.name, strict=True))
    for row, (kind, step) in enumerate(zip(table.kind, table.step.tolist(), strict=True)):
        verdict = _verdict(by_step[step], kind, table.name[row])
        if verdict is not None and trusted[step] and pairs.count(pairs[row]) == 1:
            rows.append(row)
            verdicts.append(verdict)
    kept = np.array(rows, np.int64)
    watched = {} if watch is None else watch(facts, table)
    return Samples(
        values=table.values[kept],
        truth=np.array([CLASSES.index(one.label) for one in verdicts], np.int64),
        ambiguous=np.array([one.ambiguous for one in verdicts], np.bool_),
        rules=np.array([_by_rules(facts, table, row) for row in rows], np.int64),
        step=np.array([table.kind[row] == "step" for row in rows], np.bool_),
        seed=np.zeros(len(kept), np.int64),
        about={},
        watched={name: column[kept] for name, column in watched.items()},
    )


def _verdict(step: StepTruth, kind: str, name: str) -> Verdict | None:
    if step.warm_up:
        return None
    if kind == "step":
        return step.verdict
    return next((one.verdict for one in step.phases if one.phase == name), None)


def _by_rules(facts: RankFacts, table: FeatureTable, row: int) -> int:
    start, length = int(table.start_ns[row]), int(table.dur_ns[row])
    label = judge(facts.timeline.budget(start, start + length)).label
    return CLASSES.index(label) if label in CLASSES else -1


def _joined(parts: Sequence[Samples]) -> Samples:
    columns = ("values", "truth", "ambiguous", "rules", "step", "seed")
    whole = {c: np.concatenate([getattr(one, c) for one in parts]) for c in columns}
    about = {seed: one for part in parts for seed, one in part.about.items()}
    names = parts[0].watched
    watched = {name: np.concatenate([one.watched[name] for one in parts]) for name in names}
    return Samples(**whole, about=about, watched=watched)
