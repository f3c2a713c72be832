"""What there is to be had from the server: an index of names, made before the first request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from perfdiag.cli.viewing.startup import Startup, settings_script
from perfdiag.profiler.engine.assets import Assets

__all__ = ["Content", "Site", "site_of"]

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
_BYTES = "application/octet-stream"

_LONGEST_NAME = 120
"""Characters of the trace's name that the address and the title of the page get."""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>perfdiag view</title>
<link rel="icon" id="favicon" href="{ui}/assets/favicon.png">
<script src="settings.js"></script>
<script src="boot.js"></script>
</head>
<body>
<script src="{ui}/frontend_bundle.js"></script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Content:
    """What a name stands for.

    Attributes:
        media_type: for the browser.
        source: the bytes, or the file that holds them.
    """

    media_type: str
    source: bytes | Path


Site = Mapping[str, Content]
"""Content by its path below the secret part of the address. What is not in it does not exist."""


def site_of(assets: Assets, trace: Path, title: str, startup: Startup) -> Site:
    """The Perfetto UI, one trace, and the page that opens it.

    Args:
        assets: where the UI is.
        trace: a Perfetto trace.
        title: of the trace; what an address cannot hold is replaced.
        startup: how it is shown first.
    """
    where = f"trace/{_plain(title)}"
    return {
        **{f"{assets.ui.name}/{name}": content for name, content in _ui(assets.ui).items()},
        "": Content(_TYPES[".html"], _PAGE.format(ui=assets.ui.name).encode()),
        "boot.js": Content(_TYPES[".js"], _boot()),
        "settings.js": Content(_TYPES[".js"], settings_script(where, startup)),
        where: Content(_BYTES, trace),
    }


def _ui(folder: Path) -> dict[str, Content]:
    return {
        path.relative_to(folder).as_posix(): Content(_TYPES.get(path.suffix, _BYTES), path)
        for path in folder.rglob("*")
        if path.is_file()
    }


def _boot() -> bytes:
    return (files("perfdiag.cli.viewing") / "boot.js").read_bytes()


def _plain(title: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", title)[:_LONGEST_NAME].strip(".") or "trace"
