"""Shows a site to the user until that user has seen enough."""

import signal
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event
from types import FrameType

from perfdiag.cli import output
from perfdiag.cli.viewing.server import Server
from perfdiag.cli.viewing.site import Site

__all__ = ["show"]

_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def show(server: Server, site: Site, *, browser: bool, quiet: bool) -> None:
    """Serve a site until Ctrl-C, or until the terminal is closed.

    The address goes to standard output where no browser is opened: whoever has it has the trace.

    Args:
        server: where.
        site: what.
        browser: open it in the browser of the user, if there is one.
        quiet: no remarks.
    """
    with _ended_by_signals(), suppress(KeyboardInterrupt), server.running(site) as address:
        if not (browser and webbrowser.open(address)):
            output.write(f"{address}\n", None)
        if not quiet:
            output.remark(f"serving to this machine at port {server.server_port}; Ctrl-C ends it")
        Event().wait()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let signals that end a program do what Ctrl-C does: the trace is in a folder that must go.

    Those that are ignored, as under nohup, stay so.
    """
    replaced = [number for number in _ENDS if signal.getsignal(number) == signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) == _end:
                signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does, and once: a terminal that closes may say so twice."""
    for other in _ENDS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt
