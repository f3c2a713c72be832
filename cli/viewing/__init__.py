"""The Perfetto UI with a trace in it, served to this machine alone."""

from perfdiag.cli.viewing.focus import Focus, startup_of
from perfdiag.cli.viewing.preparing import Prepared, prepare
from perfdiag.cli.viewing.server import Server
from perfdiag.cli.viewing.showing import show
from perfdiag.cli.viewing.site import Content, Site, site_of
from perfdiag.cli.viewing.startup import Startup

__all__ = [
    "Content",
    "Focus",
    "Prepared",
    "Server",
    "Site",
    "Startup",
    "prepare",
    "show",
    "site_of",
    "startup_of",
]
