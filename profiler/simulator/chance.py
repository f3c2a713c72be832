"""What is drawn by chance, and how long each instruction and each work takes with it.

Runs of a job share their chance: a draw hangs on the seed, the rank, the step, what kind of thing
it is for, and how many of that kind came before it in the step. So a faster platform, or a repaired
job, meets the same luck, and two runs differ by what was changed alone. This is the one place where
times become whole nanoseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.simulator.plan import Plan
from perfdiag.profiler.simulator.platform import Noise, Platform
from perfdiag.profiler.simulator.program import (
    Allocate,
    Collective,
    Copy,
    End,
    Host,
    Instruction,
    Kernel,
    Launch,
    Range,
    RankProgram,
    Record,
    ReplayGraph,
    Synchronize,
    Wait,
)

__all__ = ["Costs", "Priced", "Transfers", "loading_ns", "price", "step_costs"]

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

QUICK_CALL = 0.25
"""Of a launch call's time that calls take which only record, wait for or ask about an event: 1 us
beside 4 us on an H100's host."""

BLOCK = 256
"""Draws for transfers that are made at a time."""


class _Kind(IntEnum):
    """Kinds of draws; each has its own sequence in a step."""

    NONE = 0
    RANGE = 1
    LAUNCH = 2
    QUICK = 3
    HOST = 4
    ALLOCATE = 5
    KERNEL = 6
    COPY = 7
    LOADING = 8
    TRANSFER = 9


@dataclass(frozen=True, slots=True)
class Priced:
    """Times of a rank's step without chance.

    Attributes:
        host_ns: (n,) of each row of its plan; `works_ns`: (m,) of each work but collectives, which
            take as long as the links say.
        host_rows, works_rows: by kind of draw, for which of them.
        every: rows that are done in some steps only, and in which.
        spread: standard deviation of the logarithm, by kind.
    """

    host_ns: Floats
    works_ns: Floats
    host_rows: Mapping[_Kind, Int64s]
    works_rows: Mapping[_Kind, Int64s]
    every: Mapping[int, int]
    spread: Mapping[_Kind, float]


@dataclass(frozen=True, slots=True)
class Costs:
    """Times of one step.

    Attributes:
        after_ns: (n + 1,) host time before each row and at the end, were there nothing to wait for.
        works_ns: (m,) length of each work.
    """

    after_ns: Int64s
    works_ns: list[int]


def price(plan: Plan, program: RankProgram, platform: Platform) -> Priced:
    """What a rank's step costs on a platform."""
    speed = platform.host_speed * program.host_speed
    kinds, costs = zip(*(_host_cost(one.instruction, platform) for one in plan.placed), strict=True)
    works = [_work_cost(work, platform, program.device_speed) for work, _ in plan.works]
    rare = {
        row: one.instruction.every
        for row, one in enumerate(plan.placed)
        if isinstance(one.instruction, Host) and one.instruction.every > 1
    }
    return Priced(
        np.array(costs, np.float64) / speed,
        np.array([cost for _, cost in works], np.float64),
        _by_kind(kinds),
        _by_kind([kind for kind, _ in works]),
        rare,
        _spread(platform.noise),
    )


def step_costs(priced: Priced, seed: int, rank: int, step: int) -> Costs:
    """Times of one step of a rank."""
    draw = partial(_factors, priced.spread, seed, (rank, step))
    host_ns = priced.host_ns * draw(priced.host_rows, len(priced.host_ns))
    for row, every in priced.every.items():
        if step % every:
            host_ns[row] = 0.0
    works = priced.works_ns * draw(priced.works_rows, len(priced.works_ns))
    after_ns = np.concatenate((np.zeros(1, np.int64), np.cumsum(_whole(host_ns))))
    return Costs(after_ns, _whole(works).tolist())


def loading_ns(
    program: RankProgram, platform: Platform, count: int, seed: int, rank: int
) -> list[int]:
    """(count,) how long each batch takes to prepare."""
    speed = platform.host_speed * program.host_speed
    drawn = _chance(seed, _Kind.LOADING, rank).standard_normal(count)
    times: list[int] = _whole(
        program.loader.load_ns / speed * np.exp(platform.noise.loading * drawn)
    ).tolist()
    return times


class Transfers:
    """How long transfers take.

    Args:
        platform: whose links.
        seed: of chance.
    """

    def __init__(self, platform: Platform, seed: int) -> None:
        """Nothing is drawn yet."""
        self._platform = platform
        self._seed = seed
        self._drawn: dict[tuple[str, int], Floats] = {}

    def length_ns(
        self, collective: Collective, ranks: tuple[int, ...], slowdown: float, turn: tuple[str, int]
    ) -> int:
        """How long one takes from the arrival of the last rank.

        Args:
            collective: the largest of the ranks' messages.
            ranks: that take part.
            slowdown: times as long as the platform says.
            turn: between whom, and the how manieth of them.
        """
        between, count = turn
        block = (between, count // BLOCK)
        if block not in self._drawn:
            chance = _chance(self._seed, _Kind.TRANSFER, crc32(between.encode()), block[1])
            self._drawn[block] = chance.standard_normal(BLOCK)
        factor = np.exp(self._platform.noise.transfers * self._drawn[block][count % BLOCK])
        alone = self._platform.transfer_ns(collective, ranks)
        return max(1, round(float(alone * slowdown * factor)))


def _host_cost(instruction: Instruction, platform: Platform) -> tuple[_Kind, float]:
    """Host time on a host of speed 1; that of a batch is known when it is taken."""
    if isinstance(instruction, End):
        return _Kind.NONE, 0.0
    if isinstance(instruction, Range):
        return _Kind.RANGE if instruction.cost_ns else _Kind.NONE, instruction.cost_ns
    if isinstance(instruction, Launch | ReplayGraph | Collective | Copy):
        return _Kind.LAUNCH, platform.launch_ns
    if isinstance(instruction, Record | Wait | Synchronize):
        return _Kind.QUICK, QUICK_CALL * platform.launch_ns
    if isinstance(instruction, Host):
        return _Kind.HOST, instruction.cost_ns
    if isinstance(instruction, Allocate):
        return _Kind.ALLOCATE, platform.allocate_ns
    return _Kind.NONE, 0.0


def _work_cost(
    work: Kernel | Collective | Copy, platform: Platform, speed: float
) -> tuple[_Kind, float]:
    if isinstance(work, Kernel):
        return _Kind.KERNEL, platform.kernel_ns(work, speed)
    if isinstance(work, Copy):
        return _Kind.COPY, platform.copy_ns(work)
    return _Kind.NONE, 0.0


def _spread(noise: Noise) -> dict[_Kind, float]:
    host = (_Kind.RANGE, _Kind.LAUNCH, _Kind.QUICK, _Kind.HOST, _Kind.ALLOCATE)
    return {
        **dict.fromkeys(host, noise.host),
        _Kind.KERNEL: noise.kernels,
        _Kind.COPY: noise.transfers,
    }


def _by_kind(kinds: Sequence[_Kind]) -> dict[_Kind, Int64s]:
    """Rows of each kind that is drawn for."""
    of = np.array(kinds, np.int64)
    return {_Kind(kind): np.flatnonzero(of == kind) for kind in np.unique(of).tolist() if kind}


def _factors(
    spread: Mapping[_Kind, float],
    seed: int,
    at: tuple[int, int],
    rows: Mapping[_Kind, Int64s],
    count: int,
) -> Floats:
    """(count,) what each time is multiplied by; the median is 1."""
    factors = np.ones(count)
    for kind, of in rows.items():
        if spread[kind]:
            drawn = _chance(seed, kind, *at).standard_normal(len(of))
            factors[of] = np.exp(spread[kind] * drawn)
    return factors


def _chance(seed: int, kind: _Kind, *at: int) -> np.random.Generator:
    return np.random.default_rng((seed, kind, *at))


def _whole(times_ns: Floats) -> Int64s:
    return np.rint(times_ns).astype(np.int64)
