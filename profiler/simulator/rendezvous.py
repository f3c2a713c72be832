"""Collectives: ranks arrive, the last one starts the transfer, and all end together."""

from collections import Counter
from collections.abc import Sequence

from perfdiag.profiler.simulator.agenda import Agenda
from perfdiag.profiler.simulator.chance import Transfers
from perfdiag.profiler.simulator.program import Collective, Group
from perfdiag.profiler.simulator.streams import CollectiveWork

__all__ = ["DeadlockError", "Meeting", "Meetings", "Turn", "Turns"]

Turn = tuple[str, int]

MOST_SHOWN = 4
"""Collectives that a message about a deadlock names."""


class DeadlockError(ValueError):
    """A job cannot go on: ranks wait for others that never come."""


class Turns:
    """Numbers the collectives of one rank: those of a group, and transfers by their direction."""

    def __init__(self, rank: int) -> None:
        """None has come yet."""
        self._rank = rank
        self._count: Counter[str] = Counter()

    def next(self, collective: Collective) -> Turn:
        """Between whom it is, and how many of theirs came before it.

        Raises:
            ValueError: a transfer does not say to or from which rank.
        """
        between = collective.group
        if collective.op in ("send", "recv"):
            if collective.peer is None:
                msg = f"rank {self._rank}: {collective.op} in {between!r} names no peer"
                raise ValueError(msg)
            ends = (self._rank, collective.peer)
            source, target = ends if collective.op == "send" else ends[::-1]
            between = f"{between}: rank {source} to {target}"
        self._count[between] += 1
        return between, self._count[between] - 1


class Meeting:
    """One collective over its ranks.

    Attributes:
        turn: between whom, and the how manieth.
        op: what it is; `ranks`: that take part.
        missing: those that have not arrived.
    """

    def __init__(
        self, turn: Turn, ranks: Sequence[int], slowdown: float, agenda: Agenda, times: Transfers
    ) -> None:
        """No rank has come."""
        self.turn = turn
        self.op = ""
        self.ranks = tuple(ranks)
        self.missing = set(ranks)
        self._slowdown = slowdown
        self._agenda = agenda
        self._times = times
        self._largest: Collective | None = None
        self._arrived: list[CollectiveWork] = []
        self._moves = False

    def join(self, rank: int, collective: Collective) -> None:
        """A rank launches its side.

        Raises:
            ValueError: it is not one of the ranks, or launches another operation than the first.
        """
        op = "send" if collective.op == "recv" else collective.op
        if rank not in self.ranks:
            msg = f"rank {rank} calls {op} {self.turn[1]} of {self.turn[0]!r}, which is not its"
            raise ValueError(msg)
        if self._largest is None:
            self.op, self._largest = op, collective
        elif op != self.op:
            msg = f"{self}: rank {rank} calls {op} instead"
            raise ValueError(msg)
        elif collective.bytes > self._largest.bytes:
            self._largest = collective

    def arrive(self, work: CollectiveWork) -> None:
        """A rank comes, at the start of its work; the last one sets the time."""
        self.missing.discard(work.stream.device.rank)
        self._arrived.append(work)
        if not self.missing:
            self._agenda.add(max(one.start for one in self._arrived), self)

    def due(self, now: int) -> None:
        """Data begin to move, or all of them have."""
        if self._moves:
            self._end(now)
            return
        assert self._largest is not None
        self._moves = True
        for work in self._arrived:
            work.moving = now
            work.stream.device.transfers(+1, now)
        length = self._times.length_ns(self._largest, self.ranks, self._slowdown, self.turn)
        self._agenda.add(now + length, self)

    def _end(self, now: int) -> None:
        for work in self._arrived:
            work.stream.device.transfers(-1, now)
        for work in self._arrived:
            work.finish(now)
        self._arrived.clear()

    def __str__(self) -> str:
        """For messages."""
        return f"{self.op} {self.turn[1]} of {self.turn[0]!r}"


class Meetings:
    """Where ranks meet.

    Args:
        groups: of the job.
        agenda: of the job.
        times: how long transfers take.
    """

    def __init__(self, groups: Sequence[Group], agenda: Agenda, times: Transfers) -> None:
        """No rank has launched a collective."""
        self._groups = {group.name: group for group in groups}
        self._agenda = agenda
        self._times = times
        self._turns: dict[int, Turns] = {}
        self._open: dict[Turn, Meeting] = {}

    def join(self, rank: int, collective: Collective) -> Meeting:
        """The meeting for which a rank launches its side.

        Raises:
            ValueError: the group is not the job's or the rank not in it, or ranks call different
                operations.
        """
        turn = self._turns.setdefault(rank, Turns(rank)).next(collective)
        if turn not in self._open:
            self._open[turn] = self._meeting(turn, rank, collective)
        meeting = self._open[turn]
        meeting.join(rank, collective)
        return meeting

    def _meeting(self, turn: Turn, rank: int, collective: Collective) -> Meeting:
        if collective.group not in self._groups:
            msg = f"rank {rank} calls {collective.op} of {collective.group!r}, which is no group"
            raise ValueError(msg)
        group = self._groups[collective.group]
        ranks = group.ranks if collective.peer is None else sorted((rank, collective.peer))
        return Meeting(turn, ranks, group.slowdown, self._agenda, self._times)

    def check(self) -> None:
        """See that no rank is left waiting.

        Raises:
            DeadlockError: some are; says which, in what, and for whom.
        """
        stuck = [one for one in self._open.values() if one.missing]
        if stuck:
            waits = "; ".join(_wait(one) for one in stuck[:MOST_SHOWN])
            more = len(stuck) - MOST_SHOWN
            msg = f"deadlock: {waits}" + (f"; and {more} more" if more > 0 else "")
            raise DeadlockError(msg)


def _wait(meeting: Meeting) -> str:
    missing = sorted(meeting.missing)
    there = sorted(set(meeting.ranks) - meeting.missing)
    return f"{meeting}: ranks {there} wait for ranks {missing}"
