"""What the page carries along: its style, its script, and plotly."""

import base64
import gzip
import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

__all__ = ["csp_hash", "packed_plotly", "plotly_source", "script", "style"]

_PLOTLY = "plotly/package_data/plotly.min.js"


def style() -> str:
    """The style sheet."""
    return _own("page.css")


def script() -> str:
    """The script."""
    return _own("page.js")


def _own(name: str) -> str:
    return files("perfdiag.cli.reporters.page").joinpath(name).read_text(encoding="utf-8")


@cache
def plotly_source() -> bytes:
    """The library that draws the charts; empty where the package of plotly does not hold it.

    The package is not imported: that takes longer than the rest of the page.
    """
    try:
        path = distribution("plotly").locate_file(_PLOTLY)
    except PackageNotFoundError:
        return b""
    try:
        return Path(str(path)).read_bytes()
    except OSError:
        return b""


def packed_plotly() -> str:
    """The same, gzipped, in base64: a page is to stay below 5 MB, and it is 4.8 MB."""
    return base64.b64encode(gzip.compress(plotly_source(), 6, mtime=0)).decode()


def csp_hash(source: bytes) -> str:
    """What a content security policy calls a script by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source).digest()).decode()}'"
