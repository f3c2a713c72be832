"""Writes a set of files as a folder or a zip archive, and never loses one of somebody else."""

import hashlib
import io
import os
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from perfdiag.trace_schemas.errors import UsageError

__all__ = ["check_target", "write_files"]

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold: the same files give the same bytes."""

_FILE, _PROGRAM = 0o644, 0o755


def check_target(output: Path, manifest: str, *, force: bool) -> None:
    """Refuse, before the work is done, a target that may not be written to.

    It may be where nothing is, or an empty folder; with `force` also what an earlier call wrote.

    Args:
        output: a folder, or an archive if it ends in `.zip`.
        manifest: name of the file that lists what a call wrote, with SHA-256 sums.
        force: replace what an earlier call wrote.

    Raises:
        UsageError: it may not, and why.
    """
    if not os.path.isdir(output.parent):  # noqa: PTH112 - False where a name is too long
        msg = f"cannot write {str(output)!r}: the folder {str(output.parent)!r} does not exist"
        raise UsageError(msg)
    if not os.path.lexists(output) or _is_empty_folder(output):
        return
    if not _is_ours(output, manifest):
        msg = (
            f"{str(output)!r} exists and holds other files: name a new folder, an empty one, or "
            "one that perfdiag triage wrote"
        )
        raise UsageError(msg)
    if not force:
        msg = f"{str(output)!r} exists: give --force to replace what perfdiag wrote there"
        raise UsageError(msg)


def write_files(
    output: Path, files: Mapping[str, bytes], programs: Collection[str], manifest: str
) -> None:
    """Write the files; what an earlier call wrote and nobody has changed goes first.

    Args:
        output: see `check_target`, which must have been asked.
        files: by relative path with slashes.
        programs: names of files that may be run.
        manifest: name of the file that lists them.

    Raises:
        UsageError: the target cannot be written, or a file of somebody else is in the way.
    """
    try:
        if _is_archive(output):
            _replace(output, _archive(files, programs))
            return
        output.mkdir(exist_ok=True)
        _remove_ours(output, manifest)
        for name, data in files.items():
            _write(output, name, data, _mode(name, programs))
    except OSError as error:
        msg = f"cannot write {str(output)!r}: {error.strerror or error}"
        raise UsageError(msg) from error


def _is_archive(output: Path) -> bool:
    return output.suffix.lower() == ".zip"


def _is_empty_folder(output: Path) -> bool:
    is_folder = output.is_dir() and not output.is_symlink()
    return is_folder and not _is_archive(output) and not any(output.iterdir())


def _is_ours(output: Path, manifest: str) -> bool:
    if _is_archive(output):
        return output.is_file() and manifest in _names_in(output)
    return output.is_dir() and not output.is_symlink() and bool(_listed(output, manifest))


def _names_in(archive: Path) -> list[str]:
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    except (OSError, zipfile.BadZipFile):
        return []


def _listed(folder: Path, manifest: str) -> dict[str, str]:
    """Sums by path, as an earlier call wrote them; a list is not believed where it leads out."""
    try:
        text = (folder / manifest).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = [line.split("  ", 1) for line in text.splitlines()]
    found = {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
    return found if all(_is_inside(folder, name) for name in found) else {}


def _is_inside(folder: Path, name: str) -> bool:
    """Whether a path stays in a folder, and goes through no link."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or name.startswith("/") or "\\" in name or "\0" in name:
        return False
    places = [folder.joinpath(*parts[: i + 1]) for i in range(len(parts))]
    return not any(place.is_symlink() for place in places)


def _remove_ours(folder: Path, manifest: str) -> None:
    listed = _listed(folder, manifest)
    for name, digest in listed.items():
        path = folder / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            path.unlink()
    if listed:
        (folder / manifest).unlink()
    for name in {PurePosixPath(name).parts[0] for name in listed if "/" in name}:
        below = folder / name
        if below.is_dir() and not any(below.iterdir()):
            below.rmdir()


def _write(folder: Path, name: str, data: bytes, mode: int) -> None:
    path = folder / name
    if not _is_inside(folder, name) or os.path.lexists(path):
        msg = f"{str(path)!r} is in the way: perfdiag did not write it, or it was changed since"
        raise UsageError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data)
    path.chmod(mode)


def _mode(name: str, programs: Collection[str]) -> int:
    return _PROGRAM if PurePosixPath(name).name in programs else _FILE


def _archive(files: Mapping[str, bytes], programs: Collection[str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, so that the modes count
            info.external_attr = (0o100000 | _mode(name, programs)) << 16
            archive.writestr(info, data)
    return held.getvalue()


def _replace(output: Path, data: bytes) -> None:
    """Put a file in place of another one at once."""
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
