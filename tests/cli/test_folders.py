"""Where a set of files may be written, and what is never lost."""

import errno
import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiag.cli import folders
from perfdiag.cli.folders import Layout, check_target, write_files
from perfdiag.trace_schemas.errors import UsageError

MANIFEST, MARKER = "SHA256SUMS", ".ours"
LAYOUT = Layout(
    marker=MARKER,
    says=b"ours/1\n",
    manifest=MANIFEST,
    top=frozenset({"index"}),
    below=frozenset({"x", "y", "run"}),
    programs=frozenset({"run"}),
)


def manifest(found: Mapping[str, bytes]) -> bytes:
    """As `sha256sum` writes it."""
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in found.items()]
    return "".join(lines).encode()


def files(**content: bytes) -> dict[str, bytes]:
    """Files in a folder `a`, with the marker and the manifest of them."""
    found = {MARKER: LAYOUT.says, **{f"a/{name}": data for name, data in content.items()}}
    return found | {MANIFEST: manifest(found)}


def put(output: Path, *, force: bool = False, **content: bytes) -> None:
    """Check the target, and write to it."""
    check_target(output, LAYOUT, force=force)
    write_files(output, files(**content), LAYOUT, force=force)


def theirs(folder: Path, found: Mapping[str, bytes]) -> None:
    """A folder of somebody else, with a manifest that is right."""
    for name, data in {**found, MANIFEST: manifest(found)}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def held(folder: Path) -> set[str]:
    """Paths of all files below a folder."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_new_and_an_empty_folder_are_written(tmp_path: Path) -> None:
    """Programs can be run."""
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        put(tmp_path / name, run=b"#!/bin/sh\n")
        assert held(tmp_path / name) == {"a/run", MARKER, MANIFEST}
        assert (tmp_path / name / "a/run").stat().st_mode & 0o111


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """With force as well."""
    (tmp_path / "precious").write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError, match="holds other files"):
            put(tmp_path, force=force, x=b"")
    assert held(tmp_path) == {"precious"}


@pytest.mark.parametrize(
    "found",
    [
        {"weights": b"mine"},
        {"a/x": b"mine"},
        {MARKER: b"ours/2\n", "a/x": b"mine"},
        {MARKER: LAYOUT.says, "a/x": b"1", "weights": b"mine"},
        {MARKER: LAYOUT.says, "a/b/x": b"mine"},
        {MARKER: LAYOUT.says, "a/weights": b"mine"},
    ],
)
def test_a_manifest_makes_no_folder_ours(tmp_path: Path, found: dict[str, bytes]) -> None:
    """Everybody writes SHA256SUMS; ours has the marker, and lists only what we write."""
    out = tmp_path / "out"
    theirs(out, found)
    before = held(out)
    with pytest.raises(UsageError, match="holds other files"):
        put(out, force=True, x=b"")
    assert held(out) == before


@pytest.mark.parametrize("name", ["weights", "a/weights", "index"])
def test_an_archive_with_more_in_it_is_not_ours(tmp_path: Path, name: str) -> None:
    """It is replaced as a whole, so all of it must be ours."""
    out = tmp_path / "out.zip"
    put(out, x=b"1")
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(name, b"mine")
    before = out.read_bytes()
    with pytest.raises(UsageError, match="holds other files"):
        put(out, force=True, x=b"2")
    assert out.read_bytes() == before


def test_our_own_folder_needs_force(tmp_path: Path) -> None:
    """What is gone from the new files goes, what somebody put there stays."""
    out = tmp_path / "out"
    put(out, x=b"1", y=b"2")
    with pytest.raises(UsageError, match="--force"):
        put(out, x=b"3")
    (out / "a/notes").write_text("mine")
    put(out, force=True, x=b"3")
    assert held(out) == {"a/x", "a/notes", MARKER, MANIFEST}
    assert (out / "a/x").read_bytes() == b"3"


def test_a_team_without_work_loses_its_folder(tmp_path: Path) -> None:
    """Of the old nothing is left but what somebody added; a file that is gone is no change."""
    out = tmp_path / "out"
    put(out, x=b"1", y=b"2")
    (out / "a/y").unlink()
    new = {MARKER: LAYOUT.says, "b/x": b"3"}
    write_files(out, new | {MANIFEST: manifest(new)}, LAYOUT, force=True)
    assert held(out) == {"b/x", MARKER, MANIFEST}
    assert not (out / "a").exists()


def test_a_file_that_was_changed_is_not_replaced(tmp_path: Path) -> None:
    """Somebody has worked on it: that is said before the work, and nothing is touched."""
    out = tmp_path / "out"
    put(out, x=b"1", y=b"2")
    (out / "a/y").write_bytes(b"2 and notes")
    with pytest.raises(UsageError, match="changed since"):
        check_target(out, LAYOUT, force=True)
    with pytest.raises(UsageError, match="changed since"):
        write_files(out, files(x=b"3"), LAYOUT, force=True)
    assert held(out) == {"a/x", "a/y", MARKER, MANIFEST}
    assert (out / "a/x").read_bytes() == b"1"
    assert (out / "a/y").read_bytes() == b"2 and notes"


def test_a_file_in_the_way_is_found_before_anything_is_replaced(tmp_path: Path) -> None:
    """Somebody put a file where one of the new ones is to go."""
    out = tmp_path / "out"
    put(out, x=b"1")
    (out / "a/y").write_bytes(b"mine")
    with pytest.raises(UsageError, match="in the way"):
        put(out, force=True, x=b"2", y=b"3")
    assert [(out / name).read_bytes() for name in ("a/x", "a/y")] == [b"1", b"mine"]


@pytest.mark.parametrize("name", ["out", "out.zip"])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_full_disk_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_new: bool
) -> None:
    """What was there stays as it was, and nothing half written is left behind."""
    out = tmp_path / name
    if not is_new:
        put(out, x=b"1", y=b"2")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if name == "out":
        monkeypatch.setattr(folders, "_write", full)
    else:
        monkeypatch.setattr("perfdiag.profiler.whole_file.os.fdopen", full)
    with pytest.raises(UsageError, match="No space left"):
        put(out, force=True, x=b"3")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert out.exists() != is_new


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_takes_no_files_is_found_before_anything_is_replaced(tmp_path: Path) -> None:
    """One team's folder is closed: those of the others stay as they were, too."""
    out = tmp_path / "out"
    put(out, x=b"1")
    (out / "a").chmod(0o555)
    try:
        with pytest.raises(UsageError, match="takes no files"):
            put(out, force=True, x=b"2")
        assert (out / "a/x").read_bytes() == b"1"
    finally:
        (out / "a").chmod(0o755)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_list_that_leads_out_of_its_folder_is_not_believed(tmp_path: Path, name: str) -> None:
    """Nobody can have us delete what lies elsewhere."""
    (tmp_path / "x").write_text("mine")
    out = tmp_path / "out"
    put(out)
    listed = {MARKER: LAYOUT.says, name: b"mine"}
    (out / MANIFEST).write_bytes(manifest(listed))
    with pytest.raises(UsageError, match="holds other files"):
        put(out, force=True, x=b"")
    assert (tmp_path / "x").read_text() == "mine"


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A folder of ours that somebody replaced by a link to another place."""
    out, other = tmp_path / "out", tmp_path / "other"
    put(out, x=b"1")
    (out / "a/x").unlink()
    (out / "a").rmdir()
    other.mkdir()
    (other / "x").write_bytes(b"1")
    (out / "a").symlink_to(other)
    with pytest.raises(UsageError):
        put(out, force=True, x=b"2")
    assert (other / "x").read_bytes() == b"1"


def test_an_archive_is_the_same_every_time(tmp_path: Path) -> None:
    """No times in it; programs keep their mode; ours is replaced with force alone."""
    for name in ("one.zip", "two.zip"):
        put(tmp_path / name, run=b"1")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert archive.getinfo("a/run").external_attr >> 16 & 0o111
    with pytest.raises(UsageError, match="--force"):
        put(tmp_path / "one.zip", run=b"2")
    put(tmp_path / "one.zip", force=True, run=b"2")
    (tmp_path / "mine.zip").write_bytes(b"PK")
    with pytest.raises(UsageError, match="holds other files"):
        put(tmp_path / "mine.zip", force=True, run=b"2")
