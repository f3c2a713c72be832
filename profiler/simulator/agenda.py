"""What is due when, over all ranks."""

from heapq import heappop, heappush
from typing import Protocol

__all__ = ["Agenda", "Due"]


class Due(Protocol):
    """Something that can be put on the agenda."""

    def due(self, now: int) -> None:
        """Its time has come."""


class Agenda:
    """Things to come, in order of time; of two at one time the one that was added first."""

    __slots__ = ("_added", "_heap")

    def __init__(self) -> None:
        """Empty."""
        self._heap: list[tuple[int, int, Due]] = []
        self._added = 0

    def add(self, time_ns: int, item: Due) -> None:
        """Put something on it, at a time that has not passed."""
        self._added += 1
        heappush(self._heap, (time_ns, self._added, item))

    def run(self) -> None:
        """Until nothing is left to come."""
        heap = self._heap
        while heap:
            now, _, item = heappop(heap)
            item.due(now)
