"""The user's configuration."""

from pathlib import Path

import pytest

from perfdiag.cli.config import Config, read_config
from perfdiag.trace_schemas.errors import UsageError


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_set(tmp_path: Path) -> None:
    """Without a file there is nothing, and a pyproject.toml of somebody else is none."""
    write(tmp_path, "pyproject.toml", "[tool.other]\nx = 1\n")
    assert read_config(beside=tmp_path).thresholds == {}


def test_the_nearest_file_decides(tmp_path: Path) -> None:
    """A folder below goes before those above, and perfdiag.toml before pyproject.toml."""
    write(tmp_path, "perfdiag.toml", "[thresholds.a]\nx = 1\n")
    below = tmp_path / "below"
    write(below, "pyproject.toml", "[tool.perfdiag.thresholds.b]\nx = 2\n")
    assert read_config(beside=below).thresholds == {"b": {"x": 2.0}}
    path = write(below, "perfdiag.toml", "[thresholds.c]\nx = 3\n")
    assert read_config(beside=below) == Config(str(path), {"c": {"x": 3.0}})


def test_a_named_file_is_the_one(tmp_path: Path) -> None:
    """What the user names is read, whatever lies nearer."""
    write(tmp_path, "perfdiag.toml", "[thresholds.a]\nx = 1\n")
    named = write(tmp_path, "mine.toml", "[thresholds.d]\nx = 4\n")
    assert read_config(named, beside=tmp_path).thresholds == {"d": {"x": 4.0}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[thresholds.a]\nx = 'much'\n", "a number of at least 0"),
        ("[thresholds.a]\nx = true\n", "a number of at least 0"),
        ("[thresholds.a]\nx = -1\n", "a number of at least 0"),
        ("[thresholds.a]\nx = nan\n", "a number of at least 0"),
        ("[thresholds]\na = 1\n", "must be a table of numbers"),
        ("thresholds = 1\n", "must be a table"),
        ("[treshold.a]\nx = 1\n", "unknown setting 'treshold'"),
        ("[thresholds.a\n", "cannot read the configuration"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    """The message names the file and what is wrong with it."""
    path = write(tmp_path, "perfdiag.toml", text)
    with pytest.raises(UsageError, match=problem) as caught:
        read_config(path)
    assert str(path) in str(caught.value)


def test_a_table_of_ours_must_be_one(tmp_path: Path) -> None:
    """`perfdiag = 3` under [tool] is a mistake, and no crash."""
    write(tmp_path, "pyproject.toml", "[tool]\nperfdiag = 3\n")
    with pytest.raises(UsageError, match=r"must be a table, \[tool.perfdiag\]"):
        read_config(beside=tmp_path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """A file that the user names must be there."""
    with pytest.raises(UsageError, match="cannot read the configuration"):
        read_config(tmp_path / "nothing.toml")
