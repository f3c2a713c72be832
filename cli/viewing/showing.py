"""Shows a site to the user until that user has seen enough."""

import os
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path
from threading import Event

from perfdiag.cli import output
from perfdiag.cli.viewing.server import Server
from perfdiag.cli.viewing.site import Site

__all__ = ["show"]

_REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>perfdiag view</title>
<a href="{0}">perfdiag view</a>
"""


def show(server: Server, site: Site, folder: Path, *, browser: bool, quiet: bool) -> None:
    """Serve a site until Ctrl-C.

    The address goes to standard output: whoever has it has the trace. A browser is told to open a
    file that leads there, since command lines can be read by all users of a machine.

    Args:
        server: where.
        site: what.
        folder: where the file may be.
        browser: open it in the browser of the user, if there is one.
        quiet: no remarks.
    """
    with suppress(KeyboardInterrupt), server.running(site) as address:
        output.write(f"{address}\n", None)
        if browser:
            webbrowser.open(_redirect(folder, address).as_uri())
        if not quiet:
            output.remark(f"serving to this machine at port {server.server_port}; Ctrl-C ends it")
        Event().wait()


def _redirect(folder: Path, address: str) -> Path:
    """A page for this user alone that leads to an address."""
    page = folder.resolve() / "open.html"
    number = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(_REDIRECT.format(escape(address)))
    return page
