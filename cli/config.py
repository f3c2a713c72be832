"""The user's configuration: `perfdiag.toml`, or `[tool.perfdiag]` in `pyproject.toml`."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfdiag.trace_schemas.errors import UsageError

__all__ = ["Config", "read_config"]


@dataclass(frozen=True, slots=True)
class Config:
    """What a user has set.

    Attributes:
        path: where, None where nothing was found.
        thresholds: by id of a diagnosis and name of its threshold.
    """

    path: str | None = None
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def read_config(path: Path | None = None, *, beside: Path | None = None) -> Config:
    """Read a configuration, or look for one in a folder and those above it.

    In each folder `perfdiag.toml` counts before `pyproject.toml`, and this one only where it has a
    table `[tool.perfdiag]`. Files are not merged: the nearest decides.

    Args:
        path: the file that the user names; None looks for one.
        beside: where to begin, the working directory unless stated.

    Raises:
        UsageError: the file cannot be read, or holds something else than thresholds.
    """
    if path is not None:
        table = _table(path)
        return _config(path, table if table is not None else {})
    here = beside or _working_directory()
    for file in _candidates(here):
        table = _table(file)
        if table is not None:
            return _config(file, table)
    return Config()


def _working_directory() -> Path:
    """Where the user is; the root where that folder is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def _candidates(here: Path) -> Iterator[Path]:
    for folder in (here, *here.parents):
        for name in ("perfdiag.toml", "pyproject.toml"):
            if os.path.isfile(folder / name):  # noqa: PTH113 - false where it may not be looked at
                yield folder / name


def _table(path: Path) -> object:
    """The part of a file that is about perfdiag; None where it has none."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"cannot read the configuration {str(path)!r}: {error}"
        raise UsageError(msg) from error
    if path.name != "pyproject.toml":
        return content
    tool = content.get("tool", {})
    return tool.get("perfdiag") if isinstance(tool, dict) else None


def _config(path: Path, table: object) -> Config:
    if not isinstance(table, dict):
        msg = f"{str(path)!r}: `perfdiag` must be a table, [tool.perfdiag]"
        raise UsageError(msg)
    unknown = [name for name in table if name != "thresholds"]
    if unknown:
        msg = f"{str(path)!r}: unknown setting {unknown[0]!r}; there is only `thresholds`"
        raise UsageError(msg)
    thresholds = table.get("thresholds", {})
    if not isinstance(thresholds, dict):
        msg = f"{str(path)!r}: `thresholds` must be a table, [thresholds.DIAGNOSIS]"
        raise UsageError(msg)
    limits = {name: _limits(path, name, values) for name, values in thresholds.items()}
    return Config(str(path), limits)


def _limits(path: Path, name: str, values: object) -> dict[str, float]:
    where = f"{str(path)!r}: [thresholds.{name}]"
    if not isinstance(values, dict):
        msg = f"{where} must be a table of numbers"
        raise UsageError(msg)
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
            msg = f"{where} {key} must be a number of at least 0, not {value!r}"
            raise UsageError(msg)
    return {key: float(value) for key, value in values.items()}
