"""Tests of perfdiag.profiler.engine.native that only a process can fail."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiag.profiler.engine.native import PATH_VARIABLE, NativeChannel, find_shell
from perfdiag.profiler.engine.session import Session
from perfdiag.trace_schemas.errors import EngineError

WriteProgram = Callable[[str], Path]

# A TraceProcessorRpcStream with the StatusResult of the given version text.
_SAY_VERSION = """
import os, sys, time
def block(number, payload):
    tag = number << 3 | 2
    head = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
    return head + bytes([len(payload)]) + payload
os.read(0, 4096)
os.write(1, block(1, block(210, block(2, {version!r}))))
"""


def test_variable_names_the_program(program: WriteProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable comes before the PATH."""
    path = program("")
    monkeypatch.setenv(PATH_VARIABLE, str(path))
    assert find_shell() == path


def test_program_is_found_on_the_path(
    program: WriteProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable the PATH is searched."""
    path = program("").rename(tmp_path / "trace_processor_shell")
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_shell() == path


def test_variable_that_names_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong variable is not papered over with the PATH."""
    monkeypatch.setenv(PATH_VARIABLE, "/no/such/program")
    with pytest.raises(EngineError, match="'/no/such/program' is no program"):
        find_shell()


def test_missing_program_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is downloaded: the error says what to set."""
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=PATH_VARIABLE):
        find_shell()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b"Perfetto v55.3-abcdef (0123)", "v55.3"),
        (b"custom build", "custom build"),
        (b"", "unknown"),
    ],
)
def test_version_is_read_from_the_status(program: WriteProgram, text: bytes, version: str) -> None:
    """The version is the number in the program's own text, or that text."""
    channel = NativeChannel(program(_SAY_VERSION.format(version=text)))
    channel.close()
    assert channel.version == version


def test_program_that_fails_is_quoted(program: WriteProgram) -> None:
    """What the program wrote to its standard error is in the message."""
    path = program("import sys; sys.exit('no such option --stdiod')")
    with pytest.raises(EngineError, match=r"code 1 \(no such option --stdiod\)"):
        NativeChannel(path)


def test_program_that_speaks_something_else_is_refused(program: WriteProgram) -> None:
    """A program that is no trace processor is named."""
    with pytest.raises(EngineError, match="does not speak"):
        NativeChannel(program("print('> ')"))


def test_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    """A file that the system cannot run is named."""
    path = tmp_path / "shell"
    path.write_bytes(b"\0\0")
    path.chmod(0o755)
    with pytest.raises(EngineError, match="does not start"):
        NativeChannel(path)


def test_death_in_a_call_is_told(program: WriteProgram) -> None:
    """A program that dies in the middle of a call is an engine that broke down."""
    text = _SAY_VERSION.format(version=b"v1.0") + "os.read(0, 4096); sys.exit('crashed')"
    with (
        Session(NativeChannel(program(text)), 60.0) as session,
        pytest.raises(EngineError, match="crashed"),
    ):
        session.query("SELECT 1")


def test_close_ends_a_busy_program(program: WriteProgram) -> None:
    """No process is left behind, whatever it is doing."""
    channel = NativeChannel(program(_SAY_VERSION.format(version=b"v1.0") + "time.sleep(600)"))
    pid = channel._process.pid
    started = time.monotonic()
    channel.close()
    assert time.monotonic() - started < 10.0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_program_without_a_status_is_ended(program: WriteProgram) -> None:
    """A program that refuses the first request is not left running."""
    # TraceProcessorRpc.invalid_request = TPM_GET_STATUS, then silence.
    path = program(
        "import os, time; open(__file__ + '.pid', 'w').write(str(os.getpid()));"
        "os.read(0, 4096); os.write(1, b'\\n\\x02\\x20\\x0a'); time.sleep(600)"
    )
    with pytest.raises(EngineError, match="does not know the request STATUS"):
        NativeChannel(path)
    with pytest.raises(ProcessLookupError):
        os.kill(int(path.with_suffix(".pid").read_text()), 0)
