"""A deadline for work that cannot be cancelled from inside."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

__all__ = ["DeadlineError", "run_within"]

T = TypeVar("T")


class DeadlineError(Exception):
    """The work was interrupted because it ran too long."""


class _Attempt(Thread, Generic[T]):
    """Runs `work` and keeps what it returned or raised.

    `done` is waited for, not the thread: before Python 3.13 a Ctrl-C during `Thread.join` can
    mark a running thread as stopped (https://github.com/python/cpython/issues/90882).
    """

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self.done = Event()
        self._work = work
        self._results: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._error = error
        finally:
            self.done.set()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]


def run_within(seconds: float, work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """The result of `work`, which runs in a thread of its own and is interrupted when late.

    The calling thread only waits, so that Ctrl-C works during a long call into native code. The
    thread has ended when this returns or raises.

    Args:
        seconds: how long `work` may take.
        work: what to do.
        interrupt: makes `work` end soon; called from another thread than `work`.

    Raises:
        DeadlineError: `work` took longer.
    """
    attempt = _Attempt(work)
    attempt.start()
    try:
        in_time = attempt.done.wait(seconds)
    finally:
        if not attempt.done.is_set():
            interrupt()
            attempt.done.wait()
        attempt.join()
    if not in_time:
        raise DeadlineError
    return attempt.result()
