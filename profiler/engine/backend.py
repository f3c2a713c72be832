"""The engines as backends of the `perfetto` package's own `TraceProcessor`.

For users who know that API (row iterators, data frames, metrics, trace summaries). perfdiag's
own queries go through `Session`, which imports neither the package nor pandas.
"""

from collections.abc import Iterable, Sequence
from typing import IO, Any

from perfetto.trace_processor import TraceProcessor
from perfetto.trace_processor.backend import TraceProcessorBackend

from perfdiag.profiler.engine import rpc
from perfdiag.profiler.engine.rpc import Request
from perfdiag.profiler.engine.session import EngineName, Session, open_session
from perfdiag.profiler.wire import Buffer
from perfdiag.trace_schemas.errors import EngineError

__all__ = ["EmbeddedTraceProcessor", "SessionBackend"]


class SessionBackend(TraceProcessorBackend):  # type: ignore[misc]
    """A session, as the `perfetto` package wants to see it.

    Args:
        session: which is closed with this backend.
        protos: the package's message classes.
    """

    def __init__(self, session: Session, protos: Any) -> None:
        """Wrap a session that is running already."""
        super().__init__(protos)
        self._session = session
        self._methods = protos.TraceProcessorRpc

    def execute_query(self, query: str) -> Any:
        """The `QueryResult` of all batches of a query."""
        message = self._methods(request=self._methods.TPM_QUERY_STREAMING)
        message.query_args.sql_query = query
        merged = self.protos.QueryResult()
        for reply in self._ask(message):
            merged.MergeFrom(reply.query_result)
        return merged

    def compute_metric(self, metrics: Sequence[str]) -> Any:
        """The `ComputeMetricResult` of the named metrics."""
        message = self._methods(request=self._methods.TPM_COMPUTE_METRIC)
        message.compute_metric_args.metric_names.extend(metrics)
        return self._ask_once(message).metric_result

    def trace_summary(
        self,
        specs: Iterable[str | bytes],
        metric_ids: Sequence[str] | None = None,
        metadata_query_id: str | None = None,
    ) -> Any:
        """The `TraceSummaryResult` of specs given as text or binary protos."""
        message = self._methods(request=self._methods.TPM_SUMMARIZE_TRACE)
        args = message.trace_summary_args
        args.output_format = self.protos.TraceSummaryArgs.Format.BINARY_PROTOBUF
        if metric_ids is None:
            args.computation_spec.run_all_metrics = True
        else:
            args.computation_spec.metric_ids.extend(metric_ids)
        if metadata_query_id is not None:
            args.computation_spec.metadata_query_id = metadata_query_id
        for spec in specs:
            if isinstance(spec, str):
                args.textproto_specs.append(spec)
            else:
                args.proto_specs.add().ParseFromString(spec)
        return self._ask_once(message).trace_summary_result

    def enable_metatrace(self) -> None:
        """Start to record what the trace processor itself does."""
        self._ask_once(self._methods(request=self._methods.TPM_ENABLE_METATRACE))

    def disable_and_read_metatrace(self) -> Any:
        """The `DisableAndReadMetatraceResult` with what was recorded."""
        message = self._methods(request=self._methods.TPM_DISABLE_AND_READ_METATRACE)
        return self._ask_once(message).metatrace

    def export(self, output_file: IO[bytes], export_format: str) -> None:
        """Write the whole database as `perfetto`, `arrow_tar` or `sqlite`.

        Raises:
            EngineError: this trace processor cannot; the embedded v52 is one of those.
        """
        message = self._methods(request=self._methods.TPM_EXPORT)
        message.export_args.format = self.protos.ExportArgs.Format.Value(export_format.upper())
        for reply in self._ask(message):
            if reply.export_result.error:
                raise EngineError(reply.export_result.error)
            output_file.write(reply.export_result.data)

    def parse(self, chunk: Buffer) -> Any:
        """The `AppendTraceDataResult` of a piece of a trace file."""
        replies = self._exchange(rpc.append_request(chunk))
        return self._read(replies[0]).append_result

    def notify_eof(self) -> None:
        """End the trace file.

        Raises:
            EngineError: the trace processor refuses the trace.
        """
        reply = self._ask_once(self._methods(request=self._methods.TPM_FINALIZE_TRACE_DATA))
        if reply.finalize_data_result.error:
            raise EngineError(reply.finalize_data_result.error)

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def _ask_once(self, message: Any) -> Any:
        return self._ask(message)[0]

    def _ask(self, message: Any) -> list[Any]:
        stream = self.protos.TraceProcessorRpcStream(msg=[message])
        return [self._read(reply) for reply in self._exchange([stream.SerializeToString()])]

    def _exchange(self, parts: Request) -> list[memoryview]:
        return self._session.exchange(parts)

    def _read(self, reply: memoryview) -> Any:
        message = self._methods.FromString(bytes(reply))
        if message.HasField("fatal_error"):
            msg = f"the trace processor gave up: {message.fatal_error}"
            raise EngineError(msg)
        if message.HasField("invalid_request"):
            method = self._methods.TraceProcessorMethod.Name(message.invalid_request)
            msg = f"this trace processor does not know the request {method}"
            raise EngineError(msg)
        return message


class EmbeddedTraceProcessor(TraceProcessor):  # type: ignore[misc]
    """The `perfetto` package's `TraceProcessor`, on an engine that needs no download.

    Args:
        trace: what the package accepts: a path, a file object or a generator of bytes.
        engine: `wasm` or `native`.
        deadline_s: seconds that one call may take.

    Raises:
        EngineError: the engine cannot be found or started.
    """

    def __init__(
        self, trace: Any = None, *, engine: EngineName = "wasm", deadline_s: float = 600.0
    ) -> None:
        """Start the engine and load the trace."""
        self._session = open_session(engine, deadline_s=deadline_s)
        try:
            super().__init__(trace=trace)
        except EngineError:
            self._session.close()
            raise

    # The package offers no other way to pass a backend in (0.59).
    def _create_backend(self, remote: str | None, addr: str | None) -> SessionBackend:
        return SessionBackend(self._session, self.protos)
