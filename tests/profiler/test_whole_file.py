"""Files that take the place of others when they are complete."""

import errno
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfdiag.profiler.whole_file import replacing
from perfdiag.trace_schemas.errors import UsageError

NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")


def put(output: Path, data: bytes = b"new") -> None:
    """Write a file."""
    with replacing(output) as file:
        file.write(data)


def mode(path: Path) -> int:
    """Permissions."""
    return stat.S_IMODE(path.stat().st_mode)


def broken_off(output: Path, error: BaseException) -> None:
    """Write half a file; the old one is still there."""
    with replacing(output) as file:
        file.write(b"half")
        assert output.read_bytes() == b"old"
        raise error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_the_old_file_stays_until_the_new_one_is_complete(
    tmp_path: Path, error: BaseException
) -> None:
    """An error, or Ctrl-C, leaves it as it was, and nothing beside it."""
    out = tmp_path / "out"
    out.write_bytes(b"old")
    with pytest.raises((UsageError, KeyboardInterrupt)):
        broken_off(out, error)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {out: b"old"}
    put(out)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {out: b"new"}


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_has_the_mode_of_new_files(tmp_path: Path, umask: int) -> None:
    """What the user lets new files have."""
    before = os.umask(umask)
    try:
        put(tmp_path / "out")
    finally:
        os.umask(before)
    assert mode(tmp_path / "out") == 0o666 & ~umask


def test_the_mode_of_an_old_file_stays(tmp_path: Path) -> None:
    """A file that was made private stays so, also while the new one is written."""
    out = tmp_path / "out"
    out.write_bytes(b"old")
    for old in (0o600, 0o664):
        out.chmod(old)
        with replacing(out):
            (part,) = (path for path in tmp_path.iterdir() if path != out)
            assert mode(part) & ~old == 0
        assert mode(out) == old


@pytest.mark.parametrize("length", [245, 255])
def test_long_names(tmp_path: Path, length: int) -> None:
    """Whatever the system takes can be written."""
    put(tmp_path / ("a" * length))
    assert (tmp_path / ("a" * length)).read_bytes() == b"new"


def test_a_name_that_is_too_long_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """Not at the end, when all the work was for nothing."""
    with pytest.raises(UsageError, match="too long"), replacing(tmp_path / ("a" * 256)):
        pytest.fail("it was opened")
    assert list(tmp_path.iterdir()) == []


def test_nobody_can_prepare_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link under the very name is not followed, and stays."""
    monkeypatch.setattr(os, "urandom", bytes)
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    link = tmp_path / f".{'0' * 16}.part"
    link.symlink_to(precious)
    with pytest.raises(UsageError, match="exists"):
        put(tmp_path / "out")
    assert precious.read_bytes() == b"mine"
    assert link.is_symlink()


def test_a_link_stays_and_leads_to_the_new_file(tmp_path: Path) -> None:
    """As if the file behind it had been named."""
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder/out")
    put(link)
    assert link.is_symlink()
    assert (tmp_path / "folder/out").read_bytes() == b"new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """It stays a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    put(pipe)
    reader.join(10)
    assert seen == [b"new"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_is_open_already_is_written_to(tmp_path: Path, name: str) -> None:
    """`-o /dev/stdout > file` must write to the file that the shell has opened."""
    if not Path(name).exists():
        pytest.skip("this system has no such name")
    code = (
        "from pathlib import Path; from perfdiag.profiler.whole_file import replacing\n"
        f"with replacing(Path({name!r})) as file: file.write(b'new')"
    )
    with (tmp_path / "out").open("wb") as file:
        before = os.fstat(file.fileno()).st_ino
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "out").read_bytes() == b"new"
    assert (tmp_path / "out").stat().st_ino == before


@NOT_ROOT
def test_a_file_that_must_not_be_written_to_stays(tmp_path: Path) -> None:
    """Even where another could take its place."""
    out = tmp_path / "out"
    out.write_bytes(b"old")
    out.chmod(0o444)
    with pytest.raises(UsageError, match="denied"):
        put(out)
    assert out.read_bytes() == b"old"


@NOT_ROOT
def test_a_folder_that_takes_no_new_files(tmp_path: Path) -> None:
    """A file in it that may be written to is."""
    out = tmp_path / "out"
    out.write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        put(out)
    finally:
        tmp_path.chmod(0o755)
    assert out.read_bytes() == b"new"


def test_a_pipe_tells_how_much_was_written(tmp_path: Path) -> None:
    """It cannot tell its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        with replacing(pipe) as file:
            file.write(b"12345")
            assert file.tell() == 5
            file.write(b"6" * 100_000)
            assert file.tell() == 100_005
        assert len(read.result(10)) == 100_005
