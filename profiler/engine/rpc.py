"""The trace processor's RPC: requests and replies.

Field and method numbers are those of `protos/perfetto/trace_processor/trace_processor.proto`
of Perfetto v52; a test compares them with the descriptor in the `perfetto` package.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from perfdiag.profiler.wire import (
    Buffer,
    block_header,
    bytes_field,
    fields,
    varint_field,
)
from perfdiag.trace_schemas.errors import EngineError

__all__ = [
    "STREAM_TAG",
    "Method",
    "Request",
    "append_request",
    "frames",
    "is_last",
    "query_request",
    "register_request",
    "request",
    "result",
    "text",
]

Request = Sequence[Buffer]
"""A serialised `TraceProcessorRpcStream`, in pieces so that trace bytes need no copy."""

_MSG = 1
STREAM_TAG = _MSG << 3 | 2
"""First byte of every frame of a stream."""

_REQUEST = 2
_INVALID_REQUEST = 4
_FATAL_ERROR = 5
_APPEND_TRACE_DATA = 101
_QUERY_ARGS = 103
_REGISTER_SQL_PACKAGE_ARGS = 108
_QUERY_RESULT = 203
_QUERY_ERROR = 2
_QUERY_BATCH = 3
_BATCH_IS_LAST = 6
_EXPORT_RESULT = 220
_EXPORT_HAS_MORE = 3


class Method(IntEnum):
    """`TraceProcessorRpc.TraceProcessorMethod`."""

    APPEND = 1
    FINALIZE = 2
    QUERY = 3
    STATUS = 10
    RESET = 11
    REGISTER = 13


_RESULT = {
    Method.APPEND: 201,
    Method.QUERY: _QUERY_RESULT,
    Method.STATUS: 210,
    Method.REGISTER: 211,
    Method.FINALIZE: 212,
}


def request(method: Method, args: bytes = b"") -> Request:
    """A request whose arguments (a serialised field) are small."""
    return [bytes_field(_MSG, varint_field(_REQUEST, method) + args)]


def append_request(piece: Buffer) -> Request:
    """A request that appends a piece of a trace file."""
    head = varint_field(_REQUEST, Method.APPEND) + block_header(_APPEND_TRACE_DATA, len(piece))
    return [block_header(_MSG, len(head) + len(piece)) + head, piece]


def query_request(sql: str) -> Request:
    """A request that runs one or several statements."""
    return request(Method.QUERY, bytes_field(_QUERY_ARGS, bytes_field(1, sql.encode())))


def register_request(package: str, modules: Mapping[str, str], override: bool = False) -> Request:
    """A request that registers a PerfettoSQL package.

    Args:
        package: its name.
        modules: SQL by module name.
        override: replace a package of that name instead of refusing this one.
    """
    args = bytes_field(1, package.encode()) + b"".join(
        bytes_field(2, bytes_field(1, name.encode()) + bytes_field(2, sql.encode()))
        for name, sql in modules.items()
    )
    args += varint_field(3, override)
    return request(Method.REGISTER, bytes_field(_REGISTER_SQL_PACKAGE_ARGS, args))


def frames(stream: Buffer) -> Iterator[memoryview]:
    """The `TraceProcessorRpc` messages of a complete stream of replies."""
    for number, value in fields(stream):
        if number != _MSG or isinstance(value, int):
            msg = f"unexpected field {number} in the trace processor's stream"
            raise EngineError(msg)
        yield value


def is_last(reply: Buffer) -> bool:
    """Whether no further reply belongs to the request; queries and exports have several."""
    for number, value in fields(reply):
        if number == _QUERY_RESULT and isinstance(value, memoryview):
            return any(_ends_query(*field) for field in fields(value))
        if number == _EXPORT_RESULT and isinstance(value, memoryview):
            return (_EXPORT_HAS_MORE, 1) not in fields(value)
    return True


def _ends_query(number: int, value: int | memoryview) -> bool:
    if number != _QUERY_BATCH or isinstance(value, int):
        return False
    return any(inner == _BATCH_IS_LAST and flag == 1 for inner, flag in fields(value))


def result(method: Method, reply: Buffer) -> memoryview:
    """The result message inside a reply.

    Raises:
        EngineError: the trace processor did not understand the request.
    """
    for number, value in fields(reply):
        if number == _FATAL_ERROR and isinstance(value, memoryview):
            msg = f"the trace processor gave up: {_decode(value)}"
            raise EngineError(msg)
        if number == _INVALID_REQUEST:
            msg = f"this trace processor does not know the request {method.name}"
            raise EngineError(msg)
        if number == _RESULT.get(method) and isinstance(value, memoryview):
            return value
    return memoryview(b"")


def text(message: Buffer, number: int) -> str:
    """The text of a field; empty where the message lacks it."""
    for found, value in fields(message):
        if found == number and isinstance(value, memoryview):
            return _decode(value)
    return ""


def _decode(value: memoryview) -> str:
    return str(value, "utf-8", "replace")
