"""The data loader of a rank: workers that prepare batches ahead of the main thread."""

from perfdiag.profiler.simulator.program import Loader

__all__ = ["Batches"]


class Batches:
    """Batches in order.

    A worker begins a batch when it has finished the one before, and the main thread has taken
    enough for its place among the finished ones. When the job is first seen, the workers are
    already under way, each an equal part of a batch behind the one before it.

    Args:
        loader: how many workers, and how far ahead.
        loading_ns: of each batch.
    """

    def __init__(self, loader: Loader, loading_ns: list[int]) -> None:
        """None is taken yet."""
        self._loader = loader
        self._loading_ns = loading_ns
        self._ready_ns: list[int] = []
        self._taken_ns: list[int] = []

    def take(self, now: int) -> int:
        """When the main thread, which asks now, has the next batch."""
        batch = len(self._taken_ns)
        loading = self._loading_ns[batch]
        if self._loader.workers:
            self._ready_ns.append(self._begin(batch) + self._part(batch, loading))
            taken = max(now, self._ready_ns[batch])
        else:
            taken = now + loading
        self._taken_ns.append(taken)
        return taken

    def _begin(self, batch: int) -> int:
        workers, ahead = self._loader.workers, self._loader.workers * self._loader.prefetch
        asked = self._taken_ns[batch - ahead] if batch >= ahead else 0
        free = self._ready_ns[batch - workers] if batch >= workers else 0
        return max(asked, free)

    def _part(self, batch: int, loading: int) -> int:
        """What is left to do of it."""
        workers = self._loader.workers
        return loading if batch >= workers else loading * (batch + 1) // workers
