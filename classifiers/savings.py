"""What each fix saves, by replaying the job with it: alone, in part, and after the others."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import LEAF
from perfdiag.classifiers.effects import Effects
from perfdiag.classifiers.findings import Share
from perfdiag.classifiers.rebalancing import Rebalancing
from perfdiag.classifiers.replay import Replay
from perfdiag.classifiers.waits import Waits
from perfdiag.classifiers.whatif import Change, scale
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["Concern", "Saving", "replay_savings", "worthwhile"]

Floats = NDArray[np.float64]

PARTS = (0.25, 0.5, 0.75)
"""Shares of a fix that are replayed beside the whole."""

PART = 0.1
"""Of what others wait for a rank, that a leaf must be charged with to be a cause; a choice."""

SHARED = [LEAF[f"collective_{part}"] for part in ("transfer", "wait", "unsplit")]
"""Leaves in which a rank is no longer than the others by itself."""

LEAST_ERROR = 0.005
"""Of a step that a replay with a change is taken to be off at least: the best median error that is
published for one is 0.48 % (ByteDance's public jobs, arXiv 2505.05713)."""

CHANGED = 0.2
"""Of what a change saves that its replay is off besides: nobody has seen the changed job. Chosen so
that intervals hold nine of ten savings of simulated jobs of development (docs/accuracy.md)."""

INTERVAL = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.65)
"""Standard errors on either side that hold 90 %: Student's t for 1 to 10 degrees of freedom, and
the normal distribution."""

ONE_STEP = 0.02
"""Of a step that it may differ from the next one, where a trace holds just one. A choice: slowdowns
of ByteDance's jobs differ by 6 % at the 90th percentile of their steps."""

IN_TURN = 6
"""Fixes whose best order is searched; those after them are worth less, and follow as they come."""


class Saving(NamedTuple):
    """What a fix saves of a step in ns, as means over the steady steps of all ranks.

    Attributes:
        likely_ns: alone.
        low_ns, high_ns: between them it lies nine times in ten.
        curve_ns: with 25, 50, 75 and 100 % of it done.
        left_ns: after all fixes before it.
        own_ns: alone, of the steps of the ranks that it concerns.
        least_ns: what it must save of these to show.
    """

    likely_ns: float
    low_ns: float
    high_ns: float
    curve_ns: tuple[float, ...]
    left_ns: float
    own_ns: float
    least_ns: float

    @property
    def shows(self) -> bool:
        """Whether it saves enough to be a fix."""
        return max(self.own_ns, self.left_ns) >= self.least_ns

    @property
    def depends(self) -> bool:
        """Whether it saves enough only after others."""
        return self.own_ns < self.least_ns <= self.left_ns


class Concern(NamedTuple):
    """A fix on one rank: the rank's position, and what its finding takes there."""

    position: int
    share: Share


def replay_savings(
    replay: Replay, waits: Waits | None, fixes: Mapping[str, Sequence[Concern]]
) -> dict[str, Saving]:
    """Replay a job with each fix; the best fix comes first.

    After each one that one is next which saves most of what is left, times how sure it is.

    Args:
        replay: the job; what it says must be believed.
        waits: who waits for whom, None where that is not known.
        fixes: on which ranks each is, by its id.
    """
    changes = _Changes(replay, waits)
    made = {name: changes.of(concerns) for name, concerns in fixes.items()}
    where = {name: sorted({c.position for c in concerns}) for name, concerns in fixes.items()}
    sure = {name: fixes[name][0].share.finding.diagnosis.confidence for name in fixes}
    bench = _Bench(replay)
    alone = bench.alone(made, {name: (where[name], _least(fixes[name])) for name in fixes})
    left = bench.in_order({name: likely for name, (_, likely, _) in made.items()}, sure)
    return {name: alone[name]._replace(left_ns=ns) for name, ns in left.items()}


def worthwhile(savings: Mapping[str, Saving]) -> dict[str, Saving]:
    """Those that save enough to be fixes, and those without which a later one saves nothing.

    Args:
        savings: in the order in which they were replayed.
    """
    last = max((i for i, one in enumerate(savings.values()) if one.depends), default=-1)
    return {name: one for i, (name, one) in enumerate(savings.items()) if one.shows or i < last}


def _least(concerns: Sequence[Concern]) -> float:
    """Share of a step that a fix must save."""
    return concerns[0].share.finding.diagnosis.limits["share"]


Levels = tuple[list[Change], list[Change], list[Change]]
"""What a fix changes at least, likely and at most."""


class _Changes:
    """Turns what findings take into changes of a job's graph."""

    def __init__(self, replay: Replay, waits: Waits | None) -> None:
        program = replay.program
        assert program is not None
        self._slowdown = np.array([replay.contention.high, replay.contention.typical, 1.0])
        self._effects = [Effects.of(program, facts, i) for i, facts in enumerate(replay.ranks)]
        self._program, self._waits = program, waits

    def of(self, concerns: Sequence[Concern]) -> Levels:
        """What a fix changes on all ranks."""
        low, mid, high = self._balanced(concerns)
        for position, share in concerns:
            found = self._effects[position].changes(share, self._slowdown)
            for made, more in zip((low, mid, high), found, strict=True):
                made += more
        for made, batches in zip((low, mid, high), self._batches(concerns), strict=True):
            made += batches
        return low, mid, high

    def _batches(self, concerns: Sequence[Concern]) -> Levels:
        """Where batches come sooner on some ranks, they do on the others, whose loader is the same.

        Those wait too little for a fix of their own; but they are next, if they alone stay slow.
        """
        found: Levels = ([], [], [])
        claims = [one for _, share in concerns for one in share.finding.claims]
        sooner = [one for one in claims if ABSENT in one.threads and len(one.mid)]
        others = set(range(len(self._effects))) - {position for position, _ in concerns}
        for made, side in zip(found, ("low", "mid", "high"), strict=True):
            saved = [float(getattr(one, side).mean()) for one in sooner]
            if saved:
                left = 1.0 - float(np.mean(saved))
                made += [scale(self._effects[position].batches, left) for position in others]
        return found

    def _balanced(self, concerns: Sequence[Concern]) -> Levels:
        """Ranks for which others wait take no longer than those, in the middle."""
        verbs = {one.verb for _, share in concerns for one in share.finding.claims}
        found: Levels = ([], [], [])
        if self._waits is None or "rebalance" not in verbs:
            return found
        waiting = [position for position, _ in concerns]
        for late, effects in enumerate(self._effects):
            others = [i for i in waiting if i != late]
            steps = [max(1, int(self._effects[i].facts.trusted.sum())) for i in others]
            charged = self._waits.charged_ns[others, late] / np.array(steps).reshape(-1, 1)
            if charged.any():
                excess = self._excess(late, np.median(charged, axis=0))
                spread = self._rebalancing.excess(late, others, excess)
                for made, longer in zip(found, spread, strict=True):
                    made += effects.rebalanced(longer)
        return found

    @cached_property
    def _rebalancing(self) -> Rebalancing:
        return Rebalancing(self._program, [one.facts for one in self._effects])

    def _excess(self, late: int, charged_ns: Floats) -> Floats:
        """(3, leaves) how much longer a late rank takes than the others, in all of its steps.

        What others wait for it, the least, is only what nothing hides. In leaves that this points
        at, it takes as much longer as its own time there exceeds that of the others, in the middle;
        at most it does so in all leaves that are its own.
        """
        steps = np.array([max(1, int(one.facts.trusted.sum())) for one in self._effects])
        own = np.stack([one.own_ns for one in self._effects]) / steps[:, None]
        longer = own[late] - np.median(np.delete(own, late, axis=0), axis=0)
        told = charged_ns >= PART * charged_ns.sum()
        longer = np.maximum(charged_ns, longer)
        excess = np.stack((np.where(told, charged_ns, 0.0), np.where(told, longer, 0.0), longer))
        excess[:, SHARED] = 0.0
        return np.asarray(excess * steps[late], np.float64)


class _Bench:
    """Replays a job with changes, and measures against the unchanged replay."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._base = replay.base_ns
        self._everywhere = list(range(len(replay.ranks)))

    def alone(
        self, made: Mapping[str, Levels], where: Mapping[str, tuple[Sequence[int], float]]
    ) -> dict[str, Saving]:
        """What each fix saves; `left_ns` as if it came first.

        Args:
            made: what each changes.
            where: the ranks that each concerns, and the share of a step that it must save.
        """
        scenarios: list[list[Change]] = []
        for levels in made.values():
            parts = [[change.part(share) for change in levels[1]] for share in PARTS]
            scenarios += [*levels, *parts]
        windows = self._replay.settled_ns(scenarios)
        each = len(scenarios) // max(1, len(made))
        return {
            name: self._saving([w[i * each : (i + 1) * each] for w in windows], *where[name])
            for i, name in enumerate(made)
        }

    def _saving(self, windows: Sequence[Int64s], positions: Sequence[int], least: float) -> Saving:
        low, likely, high, *parts = self._saved(windows, self._everywhere)
        own = self._saved([one[1:2] for one in windows], positions)[0]
        doubt = float(np.hypot(self._doubt(windows), CHANGED * max(high, likely)))
        return Saving(
            max(0.0, likely),
            max(0.0, min(low, likely) - doubt),
            min(max(0.0, high, likely) + doubt, self._step_ns(self._everywhere)),
            tuple(max(0.0, ns) for ns in (*parts, likely)),
            likely,
            own,
            least * self._step_ns(positions),
        )

    def in_order(
        self, made: Mapping[str, Sequence[Change]], sure: Mapping[str, float]
    ) -> dict[str, float]:
        """What each fix saves of what those before it leave, the best first."""
        left, done = list(made), list[Change]()
        before, found = 0.0, dict[str, float]()
        while left and len(found) < IN_TURN:
            windows = self._replay.settled_ns([[*done, *made[name]] for name in left])
            together = dict(zip(left, self._saved(windows, self._everywhere), strict=True))
            left.sort(key=lambda name: -(together[name] - before) * sure[name])
            name = left.pop(0)
            found[name] = max(0.0, together[name] - before)
            done += made[name]
            before += found[name]
        return found | self._one_by_one(left, made, done, before)

    def _one_by_one(
        self,
        names: Sequence[str],
        made: Mapping[str, Sequence[Change]],
        done: Sequence[Change],
        before: float,
    ) -> dict[str, float]:
        """The same for fixes in a given order."""
        if not names:
            return {}
        chain = [
            [*done, *(change for name in names[: at + 1] for change in made[name])]
            for at in range(len(names))
        ]
        found = {}
        together = self._saved(self._replay.settled_ns(chain), self._everywhere)
        for name, saved in zip(names, together, strict=True):
            found[name] = max(0.0, saved - before)
            before += found[name]
        return found

    def _saved(self, windows: Sequence[Int64s], positions: Sequence[int]) -> list[float]:
        """(scenarios,) mean over the steady steps of some ranks."""
        total, steps = np.zeros(len(windows[0])), 0
        for position in positions:
            steady = self._replay.ranks[position].steady
            total += (self._base[position] - windows[position])[:, steady].sum(axis=1)
            steps += int(steady.sum())
        saved: list[float] = (total / max(1, steps)).tolist()
        return saved

    def _doubt(self, windows: Sequence[Int64s]) -> float:
        """How far the mean saving may be off when the job is run again.

        It differs by step, steps differ, and the replay is not exact.
        """
        doubts = [0.0]
        for windows_of, base, facts in zip(windows, self._base, self._replay.ranks, strict=True):
            likely, steps = windows_of[1][facts.steady], int(facts.steady.sum())
            if steps > 1:
                uneven = float(np.std(base[facts.steady] - likely, ddof=1)) / np.sqrt(steps)
                again = float(np.hypot(uneven, _spread(likely) * np.sqrt(2 / steps)))
                doubts.append(INTERVAL[min(steps - 2, len(INTERVAL) - 1)] * again)
            elif steps:
                doubts.append(INTERVAL[-1] * ONE_STEP * float(likely.mean()))
        off = max(LEAST_ERROR, float(np.median(self._replay.errors)))
        return float(np.hypot(max(doubts), off * self._step_ns(self._everywhere)))

    def _step_ns(self, positions: Sequence[int]) -> float:
        """Mean steady step of some ranks."""
        steps = [self._base[p][self._replay.ranks[p].steady] for p in positions]
        return float(np.concatenate(steps).mean())


def _spread(values: Int64s) -> float:
    """Standard deviation of a normal distribution with the same median deviation."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
