"""The embedded trace processor: WebAssembly, run in this process by wasmtime.

wasmtime keeps the compiled code in its own cache (below `XDG_CACHE_HOME`), which turns seconds
of start-up into a tenth of one. Its epochs stop a call that runs too long.
"""

from pathlib import Path
from typing import Any, TypeVar

import wasmtime

from perfdiag.profiler.engine.assets import find_assets
from perfdiag.profiler.engine.channel import Channel
from perfdiag.profiler.engine.emscripten import Host
from perfdiag.profiler.engine.guest import Guest
from perfdiag.profiler.engine.rpc import Request, frames
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["WasmChannel"]

_REQUEST_BYTES = (16 << 20) + 4096
"""Size of the request buffer: a piece of 16 MiB of trace and what surrounds it."""

E = TypeVar("E")


class WasmChannel(Channel):
    """A trace processor in this process.

    Args:
        wide: 64-bit memory, for traces that need more than 4 GiB; a fifth to a third slower.

    Raises:
        EngineError: it cannot be found or started.
    """

    name = "wasm"

    def __init__(self, wide: bool = False) -> None:
        """Load the compiled module and start it."""
        assets = find_assets()
        self.version = assets.version
        self._wide = wide
        self._host = Host(wide)
        try:
            self._start(assets.wide_module if wide else assets.module)
        except (wasmtime.WasmtimeError, wasmtime.Trap, OSError) as error:
            msg = f"the trace processor does not start: {error}"
            raise EngineError(msg) from error

    def converse(self, parts: Request) -> bytes:
        """Hand over bytes of a request stream; the stream of replies that they cause.

        Raises:
            EngineError: the trace processor broke down or was interrupted.
        """
        self._host.replies.clear()
        try:
            self._send(parts)
        except (wasmtime.WasmtimeError, wasmtime.Trap, EngineError) as error:
            raise EngineError(self._host.obituary(error)) from error
        stream = b"".join(self._host.replies)
        self._host.replies.clear()
        return stream

    def _start(self, path: Path) -> None:
        self._engine = wasmtime.Engine(_config())
        module = wasmtime.Module.from_file(self._engine, path)
        self._store = wasmtime.Store(self._engine)
        self._store.set_epoch_deadline(1)
        imports = self._host.imports(self._store, module)
        self._exports = wasmtime.Instance(self._store, module, imports).exports(self._store)
        memory = self._export("memory", wasmtime.Memory)
        self._guest = Guest(memory, self._store, self._wide)
        self._call("emscripten_stack_init")
        self._call("__wasm_call_ctors")
        self._buffer = self._call("trace_processor_rpc_init", self._callback(), _REQUEST_BYTES)

    def _callback(self) -> int:
        """Index of the reply callback in the module's table of functions."""
        pointer = wasmtime.ValType.i64() if self._wide else wasmtime.ValType.i32()
        kind = wasmtime.FuncType([pointer, wasmtime.ValType.i32()], [])
        function = self._host.function(self._store, kind, self._host.on_reply)
        table = self._export("__indirect_function_table", wasmtime.Table)
        return table.grow(self._store, 1, function)

    def _export(self, name: str, kind: type[E]) -> E:
        found = self._exports.get(name)
        if not isinstance(found, kind):
            msg = f"the trace processor exports no {kind.__name__} {name!r}"
            raise EngineError(msg)
        return found

    def _call(self, name: str, *args: int) -> Any:
        return self._export(name, wasmtime.Func)(self._store, *args)

    def _talk(self, parts: Request) -> list[memoryview]:
        return list(frames(self.converse(parts)))

    def _send(self, parts: Request) -> None:
        # The next epoch is the deadline; only `_interrupt` begins one.
        self._store.set_epoch_deadline(1)
        start = self._guest.address(self._buffer)
        filled = 0
        for part in parts:
            view = memoryview(part)
            while len(view):
                piece = view[: _REQUEST_BYTES - filled]
                self._guest.write(start + filled, piece)
                filled, view = filled + len(piece), view[len(piece) :]
                if filled == _REQUEST_BYTES:
                    self._call("trace_processor_on_rpc_request", filled)
                    filled = 0
        if filled:
            self._call("trace_processor_on_rpc_request", filled)

    def _interrupt(self) -> None:
        self._engine.increment_epoch()

    def _release(self) -> None:
        self._store.close()


def _config() -> wasmtime.Config:
    config = _interruptible()
    try:
        config.cache = True
    except wasmtime.WasmtimeError:
        # There is no place to keep compiled code: start slowly rather than not at all.
        return _interruptible()
    return config


def _interruptible() -> wasmtime.Config:
    config = wasmtime.Config()
    config.epoch_interruption = True
    return config
