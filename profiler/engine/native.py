"""A native `trace_processor_shell`, run as a process that speaks the RPC on its pipes.

`--stdiod` is preferred to the HTTP server that the `perfetto` package uses: it needs no port,
trace bytes go through a pipe, and the process ends when this one does.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from perfdiag.profiler.engine import rpc
from perfdiag.profiler.engine.channel import Channel
from perfdiag.profiler.engine.rpc import Method, Request
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["PATH_VARIABLE", "NativeChannel", "find_shell"]

PATH_VARIABLE: Final = "PERFDIAG_TRACE_PROCESSOR"
_SHELL = "trace_processor_shell"
_START_SECONDS = 30.0
_LOG_BYTES = 4096
_HUMAN_READABLE_VERSION = 2  # of StatusResult
_VERSION = re.compile(r"v\d+(\.\d+)*")


def find_shell() -> Path:
    """The native trace processor: `PERFDIAG_TRACE_PROCESSOR`, else the first on the PATH.

    Raises:
        EngineError: there is none, or the variable names no program.
    """
    named = os.environ.get(PATH_VARIABLE, "")
    found = shutil.which(named or _SHELL)
    if found:
        return Path(found)
    problem = f"{PATH_VARIABLE}={named!r} is no program" if named else f"no {_SHELL} on the PATH"
    msg = f"{problem}: install one and set {PATH_VARIABLE}, or use the embedded engine"
    raise EngineError(msg)


class NativeChannel(Channel):
    """A trace processor in a process of its own.

    Args:
        path: the program; that of `find_shell` by default.

    Raises:
        EngineError: it cannot be found or started.
    """

    name = "native"

    def __init__(self, path: Path | None = None) -> None:
        """Start the process and ask for its version."""
        self._path = find_shell() if path is None else path
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _release
        try:
            self._process = _start(self._path, self._log)
        except OSError as error:
            self._log.close()
            msg = f"{str(self._path)!r} does not start: {error}"
            raise EngineError(msg) from error
        try:
            self.version = self._ask_version()
        except EngineError:
            self.close()
            raise

    def _ask_version(self) -> str:
        (reply,) = self.exchange(rpc.request(Method.STATUS), _START_SECONDS)
        status = rpc.text(rpc.result(Method.STATUS, reply), _HUMAN_READABLE_VERSION)
        found = _VERSION.search(status)
        return found[0] if found else status or "unknown"

    def _talk(self, parts: Request) -> list[memoryview]:
        try:
            for part in parts:
                _pipe(self._process.stdin).write(part)
            _pipe(self._process.stdin).flush()
            return list(self._replies())
        except OSError as error:
            raise EngineError(self._obituary()) from error

    def _replies(self) -> Iterator[memoryview]:
        while True:
            reply = self._read_frame()
            yield reply
            if rpc.is_last(reply):
                return

    def _read_frame(self) -> memoryview:
        if self._read(1)[0] != rpc.STREAM_TAG:
            msg = f"{str(self._path)!r} does not speak the trace processor's protocol"
            raise EngineError(msg)
        length = shift = 0
        while True:
            byte = self._read(1)[0]
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                return memoryview(self._read(length))
            shift += 7

    def _read(self, size: int) -> bytes:
        data = _pipe(self._process.stdout).read(size)
        if len(data) < size:
            raise EngineError(self._obituary())
        return data

    def _obituary(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_BYTES))
        log = self._log.read().decode("utf-8", "replace").strip()
        reason = f"the trace processor ended with code {self._process.returncode}"
        return f"{reason} ({log})" if log else reason

    def _interrupt(self) -> None:
        # The group, since a wrapper script may have started the real program.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _release(self) -> None:
        if self._process.returncode is None:
            self._interrupt()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            # What is still buffered cannot be written any more.
            with suppress(OSError):
                _pipe(pipe).close()


def _start(path: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [path, "--stdiod"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        msg = "the trace processor has no pipes"
        raise EngineError(msg)
    return pipe
