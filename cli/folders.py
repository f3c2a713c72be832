"""Writes a set of files as a folder or a zip archive, and never loses one of somebody else."""

import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from perfdiag.profiler.whole_file import replacing
from perfdiag.trace_schemas.errors import UsageError

__all__ = ["Layout", "check_target", "write_files"]

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold: the same files give the same bytes."""

_FILE, _PROGRAM = 0o644, 0o755

_FOLDER = re.compile(r"[a-z0-9-]+")
"""Names of our folders, see `classifiers/safe_names.py`."""

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
"""Of a manifest, as `sha256sum` writes it."""

_UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What files and archives raise that are not what they seem."""

_Read = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a set consists of, by which one that we wrote is known again.

    Attributes:
        marker: name of the file that says whose the set is.
        says: what that file holds.
        manifest: name of the file that lists all others with their SHA-256 sums.
        top: names of files that are in no folder.
        below: names of files in folders.
        programs: names of files that may be run.
    """

    marker: str
    says: bytes
    manifest: str
    top: frozenset[str]
    below: frozenset[str]
    programs: frozenset[str]

    def has(self, name: str) -> bool:
        """Whether a file at this path can be one of ours; none of these leads elsewhere."""
        folder, slash, file = name.rpartition("/")
        if not slash:
            return file in self.top or file == self.marker
        return file in self.below and _FOLDER.fullmatch(folder) is not None


def check_target(output: Path, layout: Layout, *, force: bool) -> list[Path]:
    """Refuse, before the work is done, a target that may not be written to.

    It may be where nothing is, or an empty folder; with `force` also what an earlier call wrote,
    if nobody has changed it.

    Args:
        output: a folder, or an archive if it ends in `.zip`.
        layout: of the files.
        force: replace what an earlier call wrote.

    Returns:
        The files that will be replaced.

    Raises:
        UsageError: it may not, and why.
    """
    if not os.path.isdir(output.parent):  # noqa: PTH112 - False where a name is too long
        msg = f"cannot write {str(output)!r}: the folder {str(output.parent)!r} does not exist"
        raise UsageError(msg)
    old = _replaceable(output, layout, force=force)
    return [output] if _is_archive(output) else [output / name for name in old]


def write_files(output: Path, files: Mapping[str, bytes], layout: Layout, *, force: bool) -> None:
    """Write the files in place of what an earlier call wrote; all other files stay.

    Nothing of the old is touched until all of the new is on the disk.

    Args:
        output: see `check_target`, which must have been asked.
        files: by relative path with slashes.
        layout: of the files.
        force: see `check_target`.

    Raises:
        UsageError: the target cannot be written, or a file of somebody else is in the way.
    """
    try:
        old = _replaceable(output, layout, force=force)
        if _is_archive(output):
            with replacing(output) as file:
                file.write(_archive(files, layout))
            return
        _check_free(output, files, old)
        _write_folder(output, files, layout, old)
    except OSError as error:
        msg = f"cannot write {str(output)!r}: {error.strerror or error}"
        raise UsageError(msg) from error


def _replaceable(output: Path, layout: Layout, *, force: bool) -> set[str]:
    """Paths of what an earlier call wrote there and may be replaced.

    Raises:
        UsageError: there is something that may not.
    """
    if not os.path.lexists(output) or _is_empty_folder(output):
        return set()
    sums = _sums(output, layout)
    if not sums:
        msg = (
            f"{str(output)!r} exists and holds other files: name a new folder, an empty one, or "
            "one that perfdiag triage wrote"
        )
        raise UsageError(msg)
    if not force:
        msg = f"{str(output)!r} exists: give --force to replace what perfdiag wrote there"
        raise UsageError(msg)
    with _reading(output) as read:
        for name, digest in sums.items():
            if _is_changed(read, name, digest):
                msg = f"{str(output / name)!r} was changed since perfdiag wrote it: move it away"
                raise UsageError(msg)
    return {*sums, layout.manifest}


def _is_archive(output: Path) -> bool:
    return output.suffix.lower() == ".zip"


def _is_empty_folder(output: Path) -> bool:
    is_folder = output.is_dir() and not output.is_symlink()
    return is_folder and not _is_archive(output) and not any(output.iterdir())


@contextmanager
def _reading(output: Path) -> Iterator[_Read]:
    """What reads a file of a folder or of an archive by its path."""
    if not _is_archive(output):
        yield lambda name: (output / name).read_bytes()
        return
    with zipfile.ZipFile(output) as archive:
        yield archive.read


def _sums(output: Path, layout: Layout) -> dict[str, str]:
    """Sums by path, as an earlier call wrote them; empty where it was somebody else."""
    with suppress(*_UNREADABLE), _reading(output) as read:
        if read(layout.marker) != layout.says:
            return {}
        lines = read(layout.manifest).decode().splitlines()
        found = {line[2]: line[1] for line in map(_LINE.fullmatch, lines) if line is not None}
        names = [*found, layout.manifest]
        is_whole = len(found) == len(lines) and layout.marker in found
        if is_whole and all(map(layout.has, found)) and not _holds_others(output, names):
            return found
    return {}


def _holds_others(output: Path, names: list[str]) -> bool:
    """Whether there are files beside these in an archive, or links to them in a folder."""
    if not _is_archive(output):
        return output.is_symlink() or any(_is_linked(output, name) for name in names)
    with zipfile.ZipFile(output) as archive:
        return not set(archive.namelist()) <= set(names)


def _is_linked(folder: Path, name: str) -> bool:
    path = folder / name
    return path.is_symlink() or (path.parent != folder and path.parent.is_symlink())


def _is_changed(read: _Read, name: str, digest: str) -> bool:
    """Whether a file is another one than it was; one that is gone is not."""
    try:
        return hashlib.sha256(read(name)).hexdigest() != digest
    except (FileNotFoundError, KeyError):
        return False
    except _UNREADABLE:
        return True


def _check_free(output: Path, names: Iterable[str], old: set[str]) -> None:
    """Refuse files that would go where something is that is not replaced."""
    for name in names:
        path = output / name
        is_there = os.path.lexists(path) and name not in old
        is_file = os.path.lexists(path.parent) and not path.parent.is_dir()
        if is_there or is_file or _is_linked(output, name):
            msg = f"{str(path)!r} is in the way: perfdiag did not write it"
            raise UsageError(msg)
        if path.parent.is_dir() and not os.access(path.parent, os.W_OK):
            msg = f"cannot write {str(path)!r}: the folder takes no files"
            raise UsageError(msg)


def _write_folder(output: Path, files: Mapping[str, bytes], layout: Layout, old: set[str]) -> None:
    """Write to a folder of its own first: what comes then only gives files other names."""
    made = not output.exists()
    try:
        home = output.parent if made else output
        with TemporaryDirectory(".part", ".", home, ignore_cleanup_errors=True) as folder:
            for name, data in files.items():
                _write(Path(folder, name), data, _mode(name, layout))
            for name in files:
                (output / name).parent.mkdir(parents=True, exist_ok=True)
            for name in files:
                Path(folder, name).replace(output / name)
        for name in old - files.keys():
            (output / name).unlink(missing_ok=True)
    finally:
        _remove_empty({(output / name).parent for name in {*old, *files}} - {output})
        _remove_empty([output] if made else [])


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _mode(name: str, layout: Layout) -> int:
    return _PROGRAM if PurePosixPath(name).name in layout.programs else _FILE


def _archive(files: Mapping[str, bytes], layout: Layout) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, so that the modes count
            info.external_attr = (0o100000 | _mode(name, layout)) << 16
            archive.writestr(info, data)
    return held.getvalue()
