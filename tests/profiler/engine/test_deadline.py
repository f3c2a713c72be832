"""Tests of perfdiag.profiler.engine.deadline."""

import signal
import threading
from collections.abc import Callable

import pytest

from perfdiag.profiler.engine.deadline import DeadlineError, run_within


def _never() -> None:
    pytest.fail("interrupted without need")


def _waiter() -> tuple[Callable[[], bool], Callable[[], None]]:
    """Work that ends only when it is interrupted, and its interrupt."""
    stopped = threading.Event()
    return stopped.wait, stopped.set


def test_result_is_handed_on() -> None:
    """Work that ends in time yields its result and is not interrupted."""
    assert run_within(60.0, lambda: 42, _never) == 42


def test_error_is_handed_on() -> None:
    """What the work raises is raised in the caller's thread."""
    with pytest.raises(ZeroDivisionError):
        run_within(60.0, lambda: 1 // 0, _never)


def test_late_work_is_interrupted() -> None:
    """Work past its deadline is interrupted, and its thread has ended."""
    before = threading.active_count()
    with pytest.raises(DeadlineError):
        run_within(0.01, *_waiter())
    assert threading.active_count() == before


def test_error_of_interrupted_work_is_a_deadline() -> None:
    """The error that the interruption itself causes does not hide the deadline."""
    wait, stop = _waiter()

    def work() -> None:
        wait()
        raise ZeroDivisionError

    with pytest.raises(DeadlineError):
        run_within(0.01, work, stop)


def test_keyboard_interrupt_ends_the_work() -> None:
    """Ctrl-C reaches the caller while the work is in native code, and ends it."""
    wait, stop = _waiter()
    main = threading.main_thread().ident
    assert main is not None
    # A shell starts what runs in its background with the signal ignored, these tests too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_within(60.0, wait, stop)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert wait()
