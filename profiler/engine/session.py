"""A session with a trace processor: load one trace, ask questions in SQL."""

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Literal, Self

from perfdiag.profiler.engine import rpc
from perfdiag.profiler.engine.channel import Channel
from perfdiag.profiler.engine.columns import Table, decode
from perfdiag.profiler.engine.rpc import Method
from perfdiag.profiler.wire import Buffer
from perfdiag.trace_schemas.errors import EngineError, QueryError

__all__ = ["PIECE_BYTES", "EngineName", "Session", "open_session"]

EngineName = Literal["wasm", "native"]

PIECE_BYTES = 16 << 20
"""Traces are handed over in pieces of this size."""

_SMALL_BYTES = 1 << 20
_STATISTICS = """
SELECT name, idx, severity, source, value
FROM stats
WHERE severity IN ('error', 'data_loss') AND value > 0
ORDER BY name, idx
"""


class Session:
    """A running trace processor that holds at most one trace.

    Use it as a context manager. After a timeout or a breakdown every call raises EngineError.

    Args:
        channel: a running trace processor; the session owns it.
        deadline_s: seconds that one call to it may take.
    """

    def __init__(self, channel: Channel, deadline_s: float = 600.0) -> None:
        """Take over a running trace processor that holds no trace."""
        self._channel = channel
        self._deadline_s = deadline_s
        self._loaded = False
        self._packages: dict[str, Mapping[str, str]] = {}

    @property
    def name(self) -> str:
        """`wasm` or `native`."""
        return self._channel.name

    @property
    def version(self) -> str:
        """Version of the trace processor, for example `v52.0`."""
        return self._channel.version

    def exchange(self, parts: rpc.Request) -> list[memoryview]:
        """Send a serialised RPC request that has no method here; its replies, serialised.

        Raises:
            EngineTimeoutError: no answer within the deadline.
            EngineError: the trace processor broke down, now or earlier.
        """
        return self._channel.exchange(parts, self._deadline_s)

    def load(self, chunks: Iterable[bytes | memoryview]) -> None:
        """Load a trace file, given as its bytes in order.

        Raises:
            EngineError: the trace processor refuses the trace, or the session holds one already.
            EngineTimeoutError: it is at work on one piece for longer than the deadline.
        """
        if self._loaded:
            msg = "this session holds a trace already; reset() drops it"
            raise EngineError(msg)
        self._loaded = True
        for piece in _pieces(chunks):
            self._ask(Method.APPEND, rpc.append_request(piece), error_field=2)
        self._ask(Method.FINALIZE, rpc.request(Method.FINALIZE), error_field=1)
        # The first piece of a trace makes the trace processor start anew, without packages.
        for name, modules in self._packages.items():
            self._ask(Method.REGISTER, rpc.register_request(name, modules, override=True), 1)

    def register_package(self, name: str, modules: Mapping[str, str]) -> None:
        """Register a PerfettoSQL package, before or after the trace is loaded.

        Args:
            name: of the package, for example `perfdiag`.
            modules: SQL by module name, for example `perfdiag.model`.

        Raises:
            EngineError: the package is there already, or a module is not in it.
        """
        self._ask(Method.REGISTER, rpc.register_request(name, modules), error_field=1)
        self._packages[name] = dict(modules)

    def query(self, sql: str) -> Table:
        """Run one or several statements; the rows are those of the last.

        Raises:
            QueryError: the trace processor refuses it; the message has line and column.
            EngineTimeoutError: it takes longer than the deadline.
        """
        replies = self.exchange(rpc.query_request(sql))
        results = [rpc.result(Method.QUERY, reply) for reply in replies]
        for message in results:
            error = rpc.text(message, 2)
            if error:
                raise QueryError(error.strip())
        return decode(results)

    def statistics(self) -> Table:
        """What the import lost or refused: columns name, idx, severity, source, value."""
        return self.query(_STATISTICS)

    def reset(self) -> None:
        """Drop the trace and all that was made from it; registered packages too."""
        self.exchange(rpc.request(Method.RESET))
        self._loaded = False
        self._packages.clear()

    def close(self) -> None:
        """End the trace processor and free its memory."""
        self._channel.close()

    def _ask(self, method: Method, parts: rpc.Request, error_field: int) -> None:
        for reply in self.exchange(parts):
            error = rpc.text(rpc.result(method, reply), error_field)
            if error:
                raise EngineError(error.strip())

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the session."""
        self.close()


def open_session(
    engine: EngineName = "wasm", *, deadline_s: float = 600.0, wide: bool = False
) -> Session:
    """Start a trace processor.

    Args:
        engine: `wasm` runs in this process, `native` starts `trace_processor_shell`.
        deadline_s: seconds that one call may take; then the engine is ended.
        wide: 64-bit memory for the `wasm` engine; `native` always has it.

    Raises:
        EngineError: it cannot be found or started.
    """
    return Session(_open_channel(engine, wide), deadline_s)


def _open_channel(engine: EngineName, wide: bool) -> Channel:
    # Imported here, since each is slow to import and only one is used.
    if engine == "native":
        from perfdiag.profiler.engine.native import NativeChannel

        return NativeChannel()
    from perfdiag.profiler.engine.wasm import WasmChannel

    return WasmChannel(wide)


def _pieces(chunks: Iterable[bytes | memoryview]) -> Iterator[Buffer]:
    """The same bytes, cut at `PIECE_BYTES`, and small chunks gathered."""
    gathered = bytearray()
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        if gathered or len(view) < _SMALL_BYTES:
            gathered += view
            view = memoryview(b"")
        if len(gathered) >= _SMALL_BYTES:
            view, gathered = memoryview(gathered), bytearray()
        for start in range(0, len(view), PIECE_BYTES):
            yield view[start : start + PIECE_BYTES]
    if gathered:
        yield gathered
