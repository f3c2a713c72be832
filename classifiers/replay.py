"""The job replayed: how far its graph explains the recorded steps, and what changes would save."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.contention import Contention, fit_contention
from perfdiag.classifiers.critical_path import CLASSES, node_classes, path_shares
from perfdiag.classifiers.dependencies import Program, StepNodes, build_program, lacking
from perfdiag.classifiers.draft import NodeKind
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.graph import CircleError, Contracted, Times
from perfdiag.classifiers.job import Job
from perfdiag.classifiers.replayed_windows import ReplayedWindows
from perfdiag.classifiers.whatif import Change, apply, scale
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["MOST_ERROR", "Replay", "disagreement", "replay_job", "replay_row", "without_replay"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_ERROR = 0.05
"""Of a step that the replay may be off, in the median, for its savings to be told: ByteDance sets
jobs beyond it aside (arXiv 2505.05713)."""

LABEL_OF: dict[str, report.Label] = {
    "host": "host-bound",
    "input": "host-bound",
    "compute_kernel": "compute-bound",
    "memory_kernel": "memory-bound",
    "copy": "memory-bound",
    "collective": "collective-bound",
}
"""The label that each class of nodes speaks for."""

CAUSES: tuple[report.Label, ...] = report.LABELS[:-1]
"""The labels that name a class of resources."""

CELLS = 4_000_000
"""Nodes times scenarios that are timed at once, for the memory's sake."""


@dataclass(frozen=True)
class Replay:
    """A job's graph with its steps timed unchanged.

    Attributes:
        ranks: of the job.
        program: its graph; None where it could not be built.
        times: of the unchanged graph.
        lacks: why there is no graph; '' where there is one.
        contention: how kernels suffer from collectives beside them.
    """

    ranks: tuple[RankFacts, ...]
    program: Program | None
    times: Times | None
    lacks: str
    contention: Contention

    @cached_property
    def errors(self) -> Floats:
        """(steps,) how far the replay is off, as shares of all steps that have a verdict."""
        off = [np.empty(0)]
        for replayed, facts in zip(self.base_ns, self.ranks, strict=False):
            recorded, counted = _recorded(facts)
            off.append(np.abs(replayed - recorded)[counted] / recorded[counted])
        return np.concatenate(off)

    @cached_property
    def base_ns(self) -> list[Int64s]:
        """For each rank (steps,) how long its steps take unchanged; empty without a graph."""
        if self.program is None or self.times is None:
            return []
        return [one.windows(self.times)[0] for one in self.program.steps]

    @property
    def believed(self) -> bool:
        """Whether what it says of changes can be told."""
        return bool(len(self.errors)) and float(np.median(self.errors)) <= MOST_ERROR

    @cached_property
    def critical_path(self) -> dict[str, float]:
        """Share of the replayed time by what the longest chain of dependencies consists of."""
        if self.program is None or self.times is None:
            return {}
        return path_shares(self.program, self.times, self.ranks)

    @cached_property
    def twice_as_fast(self) -> dict[report.Label, float]:
        """Share of the steps that is saved if a class of resources is twice as fast, by its label.

        The label of a class that saves most is the causal one: what bounds a job is what makes it
        faster when it is faster itself.
        """
        if not self.windows:
            return {}
        base, total = 0.0, np.zeros(len(CAUSES))
        for facts, one in zip(self.ranks, self.windows, strict=True):
            base += one.base_ns[facts.trusted].sum()
            total += one.faster_ns[:, facts.trusted].sum(axis=1)
        saved = 1.0 - total / max(1.0, base)
        return dict(zip(CAUSES, np.clip(saved, 0.0, 1.0).tolist(), strict=True))

    @cached_property
    def windows(self) -> list[ReplayedWindows]:
        """Of each rank with classes of resources twice as fast; empty where it is not believed."""
        if not self.believed or self.program is None or self.times is None:
            return []
        classes = _resources(self.program, self.ranks)
        faster = self._replayed(
            [[scale(nodes, 0.5)] for nodes in classes.values()],
            lambda one, times: (one.windows(times), one.phase_windows(times)),
        )
        found = []
        for one, (steps, phases) in zip(self.program.steps, faster, strict=True):
            base, phase_base = one.windows(self.times)[0], one.phase_windows(self.times)[0]
            found.append(ReplayedWindows(base, phase_base, one.phases.row, steps, phases))
        return found

    def steps_ns(self, scenarios: Sequence[Sequence[Change]]) -> list[Int64s]:
        """For each rank (scenarios, steps) how long its steps take with changes made together."""
        return [steps for (steps,) in self._replayed(scenarios, lambda one, t: (one.windows(t),))]

    def settled_ns(self, scenarios: Sequence[Sequence[Change]]) -> list[Int64s]:
        """The same in a job that has been changed for long: see `_settled`."""
        found = self._replayed(scenarios, lambda one, t: (one.windows(t),), settled=True)
        return [steps for (steps,) in found]

    def _replayed(
        self,
        scenarios: Sequence[Sequence[Change]],
        measure: Callable[[StepNodes, Times], tuple[Int64s, ...]],
        *,
        settled: bool = False,
    ) -> list[tuple[Int64s, ...]]:
        """For each rank what is measured of the job with changes made together, by scenario."""
        if self.program is None:
            return []
        small = self._small
        steps = [one.within(small.group) for one in self.program.steps]
        at_once = max(1, CELLS // max(1, small.graph.nodes))
        parts = []
        for first in range(0, len(scenarios), at_once):
            made = [
                apply(self.program.graph, changes) for changes in scenarios[first : first + at_once]
            ]
            length = np.array([small.lengths(one) for one, _ in made])
            lag = np.array([lag for _, lag in made])
            times = small.graph.replay(length, lag)
            if settled and any(len(one.batches) for one in steps):
                times = small.graph.replay(self._settled(steps, times, length), lag)
            parts.append([measure(one, times) for one in steps])
        return [
            tuple(np.concatenate(figure) for figure in zip(*rank, strict=True))
            for rank in zip(*parts, strict=True)
        ]

    def _settled(self, steps: Sequence[StepNodes], times: Times, length_ns: Int64s) -> Int64s:
        """(scenarios, g) lengths with which loaders go on from steps before, changed as well.

        A loader keeps its own pace. What steps gain on it, the next ones wait for its batches: so
        the first batch comes as much later as the steps before it would have gained since they last
        waited, and that is what the last ones gain; or earlier, where it gains on them.

        Args:
            steps: of each rank, as nodes of the small graph.
            times: of the scenarios, the first batch coming as it was recorded.
            length_ns: (scenarios, g) with which these were timed.
        """
        assert self.program is not None
        assert self.times is not None
        settled, recorded_ns = length_ns.copy(), self.program.graph.length_ns[None]
        for one, recorded in zip(steps, self.program.steps, strict=True):
            if len(one.batches):
                making = recorded.making_batches(recorded_ns)
                pace = one.making_batches(length_ns) / np.maximum(making, 1)
                gained = pace * recorded.after_batches(self.times) - one.after_batches(times)
                first = settled[:, one.batches[0]]
                first[:] = np.maximum(first + np.rint(gained).astype(np.int64), 0)
        return settled

    @cached_property
    def _small(self) -> Contracted:
        """The graph without what no step ends with and nothing depends on."""
        assert self.program is not None
        steps = self.program.steps
        return self.program.graph.contracted(
            np.concatenate([one.starts for one in steps]),
            np.concatenate([one.ends for one in steps]),
        )


def _resources(program: Program, ranks: Sequence[RankFacts]) -> dict[report.Label, Int64s]:
    """The nodes that each class of resources works on."""
    kind = np.array([LABEL_OF.get(name, "") for name in CLASSES])[node_classes(program, ranks)]
    busy = np.isin(program.nodes.kind, (NodeKind.HOST, NodeKind.BATCH, NodeKind.WORK))
    return {label: np.flatnonzero(busy & (kind == label)) for label in CAUSES}


def _recorded(facts: RankFacts) -> tuple[Int64s, Bools]:
    """(steps,) windows as they were recorded, and which of them count."""
    windows = facts.model.steps.end_ns - facts.model.steps.ts_ns
    return windows, facts.trusted & (windows > 0)


def replay_job(job: Job) -> Replay:
    """Build the graph of a job, and time it unchanged."""
    ranks = job.ranks
    reasons = [_of_rank(facts, lacking(facts), several=len(ranks) > 1) for facts in ranks]
    reason = next(filter(None, reasons), "")
    if reason:
        return without_replay(job, reason)
    shift = [0] * len(ranks) if job.clocks is None else job.clocks.shift_ns.tolist()
    program = build_program(ranks, job.met, shift)
    try:
        return Replay(ranks, program, program.graph.replay(), "", fit_contention(ranks))
    except CircleError as error:
        return without_replay(job, f"Its {error}.")


def without_replay(job: Job, reason: str) -> Replay:
    """A job that is not replayed, and why, as a sentence."""
    return Replay(job.ranks, None, None, reason, Contention(1.0, 1.0, 0))


def _of_rank(facts: RankFacts, reason: str, *, several: bool) -> str:
    if not reason or not several:
        return reason
    return f"Rank {'?' if facts.rank is None else facts.rank}: {reason[:1].lower()}{reason[1:]}"


DISAGREES = 0.05
"""Of a step that another class than the label's must save more, for the replay to disagree; a
choice: the share below which no label is given to a step's parts either."""


def disagreement(replay: Replay, label: report.Label) -> tuple[Notice, ...]:
    """What is to be known where the replay points at another class than the label does."""
    saved = replay.twice_as_fast
    if label not in saved:
        return ()
    best = max(saved, key=saved.__getitem__)
    if saved[best] - saved[label] <= DISAGREES:
        return ()
    message = (
        f"The budget says {label}, the replay {best}: twice as fast, what makes a job {label} "
        f"shortens the steps by {saved[label]:.0%}, what makes it {best} by {saved[best]:.0%}."
    )
    return (Notice("model.disagrees", "warning", 1, message),)


def replay_row(replay: Replay) -> report.Replay:
    """The replay as the report has it."""
    program, errors = replay.program, replay.errors
    error = None
    if len(errors):
        median, p90 = np.percentile(errors, (50, 90)).tolist()
        error = report.ReplayError(median=median, p90=p90, max=float(errors.max()))
    return report.Replay(
        believed=replay.believed,
        why=_why(replay, error),
        nodes=0 if program is None else program.graph.nodes,
        edges=0 if program is None else len(program.graph.source),
        inferred=0 if program is None else sum(order.inferred for order in program.orders),
        error=error,
        contention=replay.contention.typical if replay.contention.kernels else None,
        critical_path=replay.critical_path,
        twice_as_fast={str(label): share for label, share in replay.twice_as_fast.items()},
    )


def _why(replay: Replay, error: report.ReplayError | None) -> str:
    if error is None:
        lacks = replay.lacks or "No step takes any time."
        return f"Savings are static bounds: the job cannot be replayed. {lacks}"
    off = f"off by {error.median:.2%} of a step (median), {error.max:.2%} at most"
    if not replay.believed:
        return (
            f"Savings are static bounds: the replay of the unchanged job is {off}, more than the "
            f"{MOST_ERROR:.0%} up to which it is believed."
        )
    return f"Savings are replayed: the unchanged job replays {off}."
