"""Who waits for whom in the collectives of a simulated job, and how long."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from perfdiag.profiler.simulator.events import DeviceWork, JobEvents
from perfdiag.profiler.simulator.program import Collective
from perfdiag.profiler.simulator.rendezvous import Turn, Turns

__all__ = ["CollectiveTruth", "Late", "find_collectives", "latest"]


class CollectiveTruth(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's side of a collective.

    `correlation`: of its launch; `wait_ns`: for the last of the ranks, `late_rank`; `transfer_ns`:
    from then on.
    """

    step: int
    correlation: int
    op: str
    group: str
    wait_ns: int
    transfer_ns: int
    late_rank: int


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """For which rank another one waits most in a step, how long, and how long for all of them."""

    rank: int
    wait_ns: int
    all_waits_ns: int


def find_collectives(events: JobEvents) -> list[list[CollectiveTruth]]:
    """For each rank its collectives, in order of launch."""
    met: defaultdict[Turn, list[tuple[int, DeviceWork]]] = defaultdict(list)
    for of_rank in events.ranks:
        for turn, work in _sides(of_rank.rank, of_rank.device):
            met[turn].append((of_rank.rank, work))
    late = {turn: max(sides, key=lambda side: side[1].start_ns)[0] for turn, sides in met.items()}
    return [
        [_truth(work, late[turn]) for turn, work in _sides(of_rank.rank, of_rank.device)]
        for of_rank in events.ranks
    ]


def _sides(rank: int, works: Sequence[DeviceWork]) -> Iterator[tuple[Turn, DeviceWork]]:
    turns = Turns(rank)
    for work in works:
        if isinstance(work.source, Collective):
            yield turns.next(work.source), work


def _truth(work: DeviceWork, late_rank: int) -> CollectiveTruth:
    assert isinstance(work.source, Collective)
    return CollectiveTruth(
        step=work.step,
        correlation=work.correlation,
        op=work.source.op,
        group=work.source.group,
        wait_ns=work.moving_ns - work.start_ns,
        transfer_ns=work.end_ns - work.moving_ns,
        late_rank=late_rank,
    )


def latest(collectives: Sequence[CollectiveTruth], step: int) -> Late | None:
    """Whom a rank waits for most in a step; None if it waits for nobody."""
    waits: Counter[int] = Counter()
    for one in collectives:
        if one.step == step:
            waits[one.late_rank] += one.wait_ns
    if not waits.total():
        return None
    rank, wait_ns = max(waits.items(), key=lambda item: (item[1], -item[0]))
    return Late(rank=rank, wait_ns=wait_ns, all_waits_ns=waits.total())
