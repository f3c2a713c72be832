"""Streams of a device, and the work on them.

Times are whole nanoseconds; `UNKNOWN` until they are settled. A start can be settled ahead of time:
the host runs ahead of its device, and nothing can bring forward what is not launched yet.
"""

from typing import Protocol

from perfdiag.profiler.simulator.agenda import Agenda

__all__ = [
    "UNKNOWN",
    "CollectiveWork",
    "CopyEngine",
    "CopyWork",
    "Device",
    "KernelWork",
    "Stream",
    "Waiter",
    "Work",
]

UNKNOWN = -1


class Waiter(Protocol):
    """Waits for the ends of works."""

    def freed(self, now: int) -> None:
        """One of them has ended."""


class Rendezvous(Protocol):
    """Where ranks meet for a collective."""

    def arrive(self, work: "CollectiveWork") -> None:
        """A rank comes, at the start of its work."""


class Work:
    """Work on a stream.

    Attributes:
        stream: it is on.
        ready: not before this; `gap`: nor sooner than this after the one before it.
        length: how long it takes when nothing slows it.
        waits: works of other streams that come first.
        start, moving, end: when it starts, when a collective's data begin to move, when it ends.
        follower: next on the stream.
        waiters: who waits for its end.
        blocked: for how many works it waits, as the head of its stream.
    """

    __slots__ = (
        "blocked",
        "end",
        "follower",
        "gap",
        "length",
        "moving",
        "ready",
        "start",
        "stream",
        "waiters",
        "waits",
    )

    def __init__(self, stream: "Stream", ready: int, length: int, gap: int = 0) -> None:
        """Not launched yet."""
        self.stream = stream
        self.ready = ready
        self.length = length
        self.gap = gap
        self.waits: tuple[Work, ...] = ()
        self.start = self.moving = self.end = UNKNOWN
        self.follower: Work | None = None
        self.waiters: list[Waiter] | None = None
        self.blocked = 0

    def notify(self, waiter: Waiter) -> None:
        """Tell someone when it has ended."""
        if self.waiters is None:
            self.waiters = []
        self.waiters.append(waiter)

    def head(self, now: int) -> None:
        """All before it on the stream has ended, at this time."""
        if now + self.gap > self.ready:
            self.ready = now + self.gap
        for work in self.waits:
            if work.end == UNKNOWN:
                work.notify(self)
                self.blocked += 1
        if not self.blocked:
            self.begin(self.ready)

    def freed(self, now: int) -> None:
        """A work that it waited for has ended."""
        self.blocked -= 1
        if not self.blocked:
            self.begin(max(self.ready, now))

    def begin(self, at: int) -> None:
        """Its start is settled, for now or later."""
        raise NotImplementedError

    def finish(self, now: int) -> None:
        """It has ended; what waited for it goes on."""
        self.end = now
        follower = self.follower
        if follower is not None:
            follower.head(now)
        waiters, self.waiters = self.waiters, None
        if waiters is not None:
            for waiter in waiters:
                waiter.freed(now)


class KernelWork(Work):
    """A kernel, which takes longer while a collective transfers on its device.

    Attributes:
        left: of its length at the time `since`, from which on the pace has not changed.
        finishes: when it ends, if the pace stays.
    """

    __slots__ = ("finishes", "left", "since")

    def begin(self, at: int) -> None:
        """It runs at the pace of its device."""
        device = self.stream.device
        self.start = self.moving = self.since = at
        self.left: float = self.length
        self.stream.running = self
        pace = device.pace
        self.finishes = at + (self.length if pace == 1.0 else round(self.length * pace))
        device.agenda.add(self.finishes, self)

    def due(self, now: int) -> None:
        """It ends, unless the pace has changed since this was planned."""
        if now == self.finishes and self.end == UNKNOWN:
            self.stream.running = None
            self.finish(now)

    def change_pace(self, now: int, before: float, after: float) -> None:
        """From now on it takes another multiple of its length."""
        if now > self.since:
            self.left = max(0.0, self.left - (now - self.since) / before)
            self.since = now
        self.finishes = self.since + round(self.left * after)
        self.stream.device.agenda.add(self.finishes, self)


class CopyEngine:
    """Copies in one direction, one after the other: free from `free_ns` on."""

    __slots__ = ("free_ns",)

    def __init__(self) -> None:
        """Nothing to do yet."""
        self.free_ns = 0


class CopyWork(Work):
    """A copy or fill; `engine` is None where it runs beside others."""

    __slots__ = ("engine",)

    engine: CopyEngine | None

    def begin(self, at: int) -> None:
        """Its turn on the engine comes at that time."""
        self.stream.device.agenda.add(at, self)

    def due(self, now: int) -> None:
        """It takes its turn, or ends."""
        if self.start != UNKNOWN:
            self.finish(now)
            return
        self.start = now if self.engine is None else max(now, self.engine.free_ns)
        self.moving = self.start
        if self.engine is not None:
            self.engine.free_ns = self.start + self.length
        self.stream.device.agenda.add(self.start + self.length, self)


class CollectiveWork(Work):
    """One rank's side of a collective."""

    __slots__ = ("meeting",)

    meeting: Rendezvous

    def begin(self, at: int) -> None:
        """The rank is there from then on."""
        self.start = at
        self.meeting.arrive(self)


class Stream:
    """A stream.

    Attributes:
        device: it is of.
        running: kernel that runs on it.
        last: work that was launched on it last.
        waits: works that the next one has to wait for.
        launched: last work of each launch, in order.
    """

    __slots__ = ("device", "last", "launched", "running", "waits")

    def __init__(self, device: "Device") -> None:
        """Nothing is on it."""
        self.device = device
        self.running: KernelWork | None = None
        self.last: Work | None = None
        self.waits: tuple[Work, ...] = ()
        self.launched: list[Work] = []

    def add(self, work: Work) -> None:
        """Append a work."""
        before, self.last = self.last, work
        if self.waits:
            work.waits, self.waits = self.waits, ()
        if before is None:
            work.head(0)
        elif before.end == UNKNOWN:
            before.follower = work
        else:
            work.head(before.end)

    def tail(self) -> tuple[Work, ...]:
        """What has to end so that nothing is left to do."""
        return self.waits if self.last is None else (self.last, *self.waits)


class Device:
    """A rank's device.

    Args:
        rank: whose it is.
        agenda: of the job.
        contention: times as long as kernels take while a collective transfers.
    """

    __slots__ = ("_contention", "_transfers", "agenda", "engines", "pace", "rank", "streams")

    def __init__(self, rank: int, agenda: Agenda, contention: float) -> None:
        """Idle."""
        self.rank = rank
        self.agenda = agenda
        self.streams: dict[str, Stream] = {}
        self.engines = {"HtoD": CopyEngine(), "DtoH": CopyEngine()}
        self.pace = 1.0
        self._contention = contention
        self._transfers = 0

    def stream(self, name: str) -> Stream:
        """The stream of a name."""
        if name not in self.streams:
            self.streams[name] = Stream(self)
        return self.streams[name]

    def transfers(self, change: int, now: int) -> None:
        """One collective more, or less, transfers from now on."""
        self._transfers += change
        before, self.pace = self.pace, self._contention if self._transfers else 1.0
        if before == self.pace:
            return
        for stream in self.streams.values():
            if stream.running is not None:
                stream.running.change_pace(now, before, self.pace)
