"""Where a set of files may be written, and what is never lost."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from perfdiag.cli.folders import check_target, write_files
from perfdiag.trace_schemas.errors import UsageError

MANIFEST = "SHA256SUMS"


def files(**content: bytes) -> dict[str, bytes]:
    """Files in a folder `a`, with the manifest of them."""
    found = {f"a/{name}": data for name, data in content.items()}
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in found.items()]
    return found | {MANIFEST: "".join(lines).encode()}


def put(output: Path, *, force: bool = False, **content: bytes) -> None:
    """Check the target, and write to it."""
    check_target(output, MANIFEST, force=force)
    write_files(output, files(**content), {"run"}, MANIFEST)


def held(folder: Path) -> set[str]:
    """Paths of all files below a folder."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_new_and_an_empty_folder_are_written(tmp_path: Path) -> None:
    """Programs can be run."""
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        put(tmp_path / name, run=b"#!/bin/sh\n")
        assert held(tmp_path / name) == {"a/run", MANIFEST}
        assert (tmp_path / name / "a/run").stat().st_mode & 0o111


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """With force as well."""
    (tmp_path / "precious").write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError, match="holds other files"):
            put(tmp_path, force=force, x=b"")
    assert held(tmp_path) == {"precious"}


def test_our_own_folder_needs_force(tmp_path: Path) -> None:
    """What is gone from the new files goes, what somebody put there stays."""
    out = tmp_path / "out"
    put(out, x=b"1", old=b"2")
    with pytest.raises(UsageError, match="--force"):
        put(out, x=b"3")
    (out / "a/notes").write_text("mine")
    put(out, force=True, x=b"3")
    assert held(out) == {"a/x", "a/notes", MANIFEST}
    assert (out / "a/x").read_bytes() == b"3"


def test_a_file_that_was_changed_is_not_replaced(tmp_path: Path) -> None:
    """Somebody has worked on it."""
    out = tmp_path / "out"
    put(out, x=b"1")
    (out / "a/x").write_bytes(b"1 and notes")
    with pytest.raises(UsageError, match="changed since"):
        put(out, force=True, x=b"2")
    assert (out / "a/x").read_bytes() == b"1 and notes"


@pytest.mark.parametrize("name", ["../precious", "/etc/hostname", "a/../../precious"])
def test_a_list_that_leads_out_of_its_folder_is_not_believed(tmp_path: Path, name: str) -> None:
    """Nobody can have us delete what lies elsewhere."""
    (tmp_path / "precious").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    digest = hashlib.sha256(b"mine").hexdigest()
    (out / MANIFEST).write_text(f"{digest}  {name}\n")
    with pytest.raises(UsageError, match="holds other files"):
        put(out, force=True, x=b"")
    assert (tmp_path / "precious").read_text() == "mine"


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
