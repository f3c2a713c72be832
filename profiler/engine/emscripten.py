"""What the WebAssembly trace processor expects of its surroundings.

It is an Emscripten build. It needs a growing heap, clocks, a place to write messages to, and no
files: every call that would reach the outside is answered with an error number.
"""

import calendar
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import wasmtime

from perfdiag.profiler.engine.guest import Guest
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["Host"]

_NO_SYSCALL = -52  # -ENOSYS, Emscripten's errno being WASI's
_BAD_FILE = 8  # EBADF of WASI
_REALTIME = 0  # clock id of WASI
_LOG_BYTES = 4096
_HARMLESS = "unsupported syscall"
"""What the engine says of mprotect each time it starts."""

Handler = Callable[..., Any]


class Host:
    """The functions that a module imports.

    They reach memory through wasmtime's Caller, not through the Store: wasmtime keeps host
    functions in a global table, through which they would keep the Store alive for ever.

    Args:
        wide: the module's addresses have 64 bits.

    Attributes:
        replies: what the RPC callback received since this list was last emptied.
    """

    def __init__(self, wide: bool) -> None:
        """Make a host for one instance."""
        self.replies: list[bytes] = []
        self._wide = wide
        self._failure = ""
        self._log = b""

    def imports(self, store: wasmtime.Store, module: wasmtime.Module) -> list[wasmtime.Func]:
        """A function for each import of `module`, in its order.

        Raises:
            EngineError: it imports something else than functions.
        """
        handlers = _PLAIN | {
            "emscripten_resize_heap": self._resize_heap,
            "emscripten_err": lambda guest, text: self._note(guest.text(text).encode() + b"\n"),
            "_abort_js": lambda _: self._fail("it aborted"),
            "__assert_fail": self._assert_fail,
            "fd_write": self._fd_write,
        }
        functions = []
        for wanted in module.imports:
            name = wanted.name or ""
            if not isinstance(wanted.type, wasmtime.FuncType):
                msg = f"the trace processor imports {name!r}, which is no function"
                raise EngineError(msg)
            handler = handlers.get(name) or self._absent(name)
            functions.append(self.function(store, wanted.type, handler))
        return functions

    def function(
        self, store: wasmtime.Store, kind: wasmtime.FuncType, handler: Handler
    ) -> wasmtime.Func:
        """`handler`, which takes a Guest and the arguments, as a host function."""

        def call(caller: wasmtime.Caller, *args: int) -> Any:
            return handler(self._guest(caller), *args)

        return wasmtime.Func(store, kind, call, access_caller=True)

    def on_reply(self, guest: Guest, address: int, size: int) -> None:
        """The RPC callback."""
        self.replies.append(guest.read(address, size))

    def obituary(self, error: Exception) -> str:
        """Why the trace processor is no more, in a sentence."""
        reason = self._failure or str(error).strip().rpartition("\n")[2].strip()
        lines = self._log.decode("utf-8", "replace").splitlines()
        log = " ".join(line for line in lines if line and _HARMLESS not in line)
        return f"the trace processor broke down: {reason}" + (f" ({log})" if log else "")

    def _guest(self, caller: wasmtime.Caller) -> Guest:
        memory = caller["memory"]
        if not isinstance(memory, wasmtime.Memory):
            msg = "the trace processor exports no memory"
            raise EngineError(msg)
        return Guest(memory, caller, self._wide)

    def _absent(self, name: str) -> Handler:
        if name.startswith("__syscall_") or name in ("_mmap_js", "_munmap_js"):
            return lambda *_: _NO_SYSCALL
        return lambda *_: self._fail(f"it called {name}, which perfdiag does not offer")

    def _note(self, text: bytes) -> None:
        self._log = (self._log + text)[-_LOG_BYTES:]

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        raise EngineError(reason)

    def _assert_fail(self, guest: Guest, condition: int, file: int, line: int, _: int) -> None:
        self._fail(f"{guest.text(condition)!r} does not hold ({guest.text(file)}:{line})")

    def _resize_heap(self, guest: Guest, size: int) -> int:
        if guest.grow(size):
            return 1
        self._failure = f"it ran out of memory at {guest.address(size)} bytes"
        return 0

    def _fd_write(self, guest: Guest, _fd: int, vectors: int, count: int, written: int) -> int:
        words = guest.read_words(vectors, 2 * count)
        spans = zip(words[::2], words[1::2], strict=True)
        text = b"".join(guest.read(address, size) for address, size in spans)
        self._note(text)
        guest.write_word(written, len(text))
        return 0


def _heap_max(guest: Guest) -> int:
    limit = guest.most_bytes()
    if guest.address(limit) == limit:
        return _signed(limit)
    return -65536  # 4 GiB less one page: the largest size that a 32-bit number can say


def _signed(value: int) -> int:
    return value - (1 << 32) if 1 << 31 <= value < 1 << 32 else value


def _clock_time(guest: Guest, clock: int, _precision: int, out: int) -> int:
    now = time.time_ns() if clock == _REALTIME else time.perf_counter_ns()
    guest.write(out, struct.pack("<Q", now))
    return 0


def _environ_sizes(guest: Guest, count: int, size: int) -> int:
    guest.write_word(count, 0)
    guest.write_word(size, 0)
    return 0


def _tzset(guest: Guest, zone: int, daylight: int, standard_name: int, daylight_name: int) -> None:
    guest.write_word(zone, 0)
    guest.write(daylight, bytes(4))
    guest.write(standard_name, b"UTC\0")
    guest.write(daylight_name, b"UTC\0")


def _split_time(guest: Guest, seconds: int, out: int) -> None:
    """Fill a `struct tm`; local time is UTC, since a report must not depend on where it is made."""
    try:
        t = time.gmtime(seconds)
    except (OverflowError, OSError, ValueError):
        t = time.gmtime(0)
    weekday = (t.tm_wday + 1) % 7  # C counts from Sunday
    date = (t.tm_mday, t.tm_mon - 1, t.tm_year - 1900, weekday, t.tm_yday - 1, 0)
    guest.write(out, struct.pack("<9i", t.tm_sec, t.tm_min, t.tm_hour, *date))


def _join_time(guest: Guest, address: int) -> int:
    second, minute, hour, day, month, year = struct.unpack("<6i", guest.read(address, 24))
    return calendar.timegm((year + 1900, month + 1, day, hour, minute, second))


def _answer(value: int, *_: object) -> int:
    return value


_PLAIN: dict[str, Handler] = {
    "emscripten_get_heap_max": _heap_max,
    "emscripten_get_now": lambda _: time.perf_counter() * 1e3,
    "emscripten_date_now": lambda _: time.time() * 1e3,
    "_tzset_js": _tzset,
    "_localtime_js": _split_time,
    "_gmtime_js": _split_time,
    "_timegm_js": _join_time,
    "clock_time_get": _clock_time,
    "environ_sizes_get": _environ_sizes,
    "environ_get": partial(_answer, 0),
    "fd_close": partial(_answer, 0),
    "fd_sync": partial(_answer, 0),
    "fd_read": partial(_answer, _BAD_FILE),
    "fd_seek": partial(_answer, _BAD_FILE),
    "fd_fdstat_get": partial(_answer, _BAD_FILE),
}
"""Imports that need nothing but the guest's memory."""
