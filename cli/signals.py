"""What ends the program from outside: temporary files and folders must go first."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ended_cleanly"]

_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def ended_cleanly() -> Iterator[None]:
    """Let signals that end a program do what Ctrl-C does, and end it then as they would have.

    Those that are ignored, as under nohup, stay so.
    """
    came: list[int] = []
    replaced = [number for number in _ENDS if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, frame: FrameType | None) -> None:
        for other in replaced:  # a terminal that closes may say so twice
            signal.signal(other, signal.SIG_IGN)
        came.append(number)
        _end_processes()
        raise KeyboardInterrupt

    for number in replaced:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])


def _end_processes() -> None:
    """End processes that read traces: Ctrl-C reaches them too, other signals do not."""
    if "multiprocessing" in sys.modules:
        for process in sys.modules["multiprocessing"].active_children():
            process.terminate()
