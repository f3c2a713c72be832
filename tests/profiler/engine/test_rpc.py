"""Tests of perfdiag.profiler.engine.rpc, against the messages of the perfetto package."""

from typing import Any

import pytest
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

from perfdiag.profiler.engine import rpc
from perfdiag.profiler.engine.rpc import Method, Request
from perfdiag.trace_schemas.errors import EngineError

PROTOS = ProtoFactory(PlatformDelegate())
Rpc = PROTOS.TraceProcessorRpc


def _parse(parts: Request) -> Any:
    (message,) = PROTOS.TraceProcessorRpcStream.FromString(b"".join(parts)).msg
    return message


def test_append_request_carries_the_piece() -> None:
    """The package reads method and bytes from what we write."""
    message = _parse(rpc.append_request(b"piece" * 100))
    assert message.request == Rpc.TPM_APPEND_TRACE_DATA
    assert message.append_trace_data == b"piece" * 100


def test_query_request_carries_unicode() -> None:
    """SQL text is UTF-8."""
    message = _parse(rpc.query_request("SELECT 'µ'"))
    assert message.request == Rpc.TPM_QUERY_STREAMING
    assert message.query_args.sql_query == "SELECT 'µ'"


def test_register_request_carries_all_modules() -> None:
    """Package and modules arrive under their names."""
    message = _parse(rpc.register_request("p", {"p.a": "SELECT 1", "p.b": "SELECT 2"}))
    args = message.register_sql_package_args
    assert message.request == Rpc.TPM_REGISTER_SQL_PACKAGE
    assert args.package_name == "p"
    assert not args.allow_override
    assert {module.name: module.sql for module in args.modules} == {
        "p.a": "SELECT 1",
        "p.b": "SELECT 2",
    }


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (Method.FINALIZE, "TPM_FINALIZE_TRACE_DATA"),
        (Method.STATUS, "TPM_GET_STATUS"),
        (Method.RESET, "TPM_RESET_TRACE_PROCESSOR"),
    ],
)
def test_plain_requests_have_the_right_number(method: Method, name: str) -> None:
    """Methods without arguments are those of the proto."""
    assert _parse(rpc.request(method)).request == Rpc.TraceProcessorMethod.Value(name)


@pytest.mark.parametrize(
    ("method", "field", "error_field"),
    [
        (Method.APPEND, "append_result", 2),
        (Method.FINALIZE, "finalize_data_result", 1),
        (Method.QUERY, "query_result", 2),
        (Method.REGISTER, "register_sql_package_result", 1),
    ],
)
def test_error_of_a_result_is_found(method: Method, field: str, error_field: int) -> None:
    """Errors are read from the fields in which the trace processor puts them."""
    reply = Rpc()
    getattr(reply, field).error = "broken"
    message = rpc.result(method, reply.SerializeToString())
    assert rpc.text(message, error_field) == "broken"


def test_fatal_error_raises() -> None:
    """A trace processor that gives up says why."""
    with pytest.raises(EngineError, match="out of order"):
        rpc.result(Method.QUERY, Rpc(fatal_error="out of order").SerializeToString())


def test_unknown_request_raises() -> None:
    """A request that the trace processor does not know raises."""
    reply = Rpc(invalid_request=Rpc.TPM_GET_STATUS).SerializeToString()
    with pytest.raises(EngineError, match="STATUS"):
        rpc.result(Method.STATUS, reply)


@pytest.mark.parametrize("last", [False, True])
def test_last_batch_ends_a_query(last: bool) -> None:
    """Replies to a query go on until a batch is flagged."""
    reply = Rpc()
    reply.query_result.batch.add().is_last_batch = last
    assert rpc.is_last(reply.SerializeToString()) is last


@pytest.mark.parametrize("more", [False, True])
def test_flag_ends_an_export(more: bool) -> None:
    """Replies to an export go on while they say so."""
    reply = Rpc()
    reply.export_result.data = b"x"
    reply.export_result.has_more = more
    assert rpc.is_last(reply.SerializeToString()) is not more


def test_other_requests_have_one_reply() -> None:
    """Every other reply is the last."""
    reply = Rpc()
    reply.append_result.total_bytes_parsed = 1
    assert rpc.is_last(reply.SerializeToString())


def test_stream_of_something_else_is_refused() -> None:
    """Bytes that are no replies raise instead of being read as some."""
    with pytest.raises(EngineError, match="unexpected field"):
        list(rpc.frames(b"\x12\x00"))
