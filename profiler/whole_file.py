"""A file that is there when it is complete, and leaves nothing behind when it is not."""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from perfdiag.trace_schemas.errors import UsageError

__all__ = ["replacing"]


@contextmanager
def replacing(output: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `output` at the end, with the mode of the one that was there.

    A pipe, a device or what is open already (`/dev/stdout`) is written to as it is, and so is a
    file in a folder that takes no new ones.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        with _as_it_is(output) if _is_kept(output) else _beside(output) as file:
            yield file
    except OSError as error:
        msg = f"cannot write {str(output)!r}: {error.strerror or error}"
        raise UsageError(msg) from error


def _as_it_is(output: Path) -> IO[bytes]:
    return io.BufferedWriter(_Counted(output, "w"))


class _Counted(io.FileIO):
    """A file that knows how much was written to it, also where it cannot tell its place: a pipe."""

    _count = 0

    def write(self, data: Any, /) -> int:
        count = super().write(data)
        self._count += count or 0
        return count

    def tell(self) -> int:
        return self._count


def _is_kept(output: Path) -> bool:
    """Whether another file cannot take its place."""
    # os.path, because a name that is too long is False there and an error in pathlib.
    named = os.path.abspath(output)  # noqa: PTH100
    if named.startswith(("/dev/", "/proc/")) and os.path.islink(named):  # noqa: PTH114
        return True
    if not os.path.exists(named):  # noqa: PTH110
        return False
    folder = os.path.dirname(os.path.realpath(named))  # noqa: PTH120
    return not os.path.isfile(named) or not os.access(folder, os.W_OK)  # noqa: PTH113


@contextmanager
def _beside(output: Path) -> Iterator[IO[bytes]]:
    """A file under a name that nobody can foresee, which becomes `output` when it is closed."""
    target = Path(os.path.realpath(output))
    mode = _mode(target)
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    # Not tempfile: only the system knows the mode that a new file gets in this folder.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    number = os.open(part, flags, 0o666 if mode is None else mode)
    try:
        with os.fdopen(number, "wb") as file:
            yield file
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    finally:
        with suppress(OSError):  # it has taken its place
            part.unlink()


def _mode(target: Path) -> int | None:
    """Of a file that is to be replaced, which must be one that may be written to; None without."""
    try:
        mode = stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return mode
