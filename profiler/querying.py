"""SQL over any trace, with the tables of the model beside the trace processor's own."""

from perfdiag.profiler.engine import EngineName, Session, Table, open_session
from perfdiag.profiler.model import model_sql, prepare
from perfdiag.profiler.opening import ReadOptions, canonical_trace, read_blob
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.profiler.trace_writer import TraceOptions
from perfdiag.trace_schemas.errors import EngineError, InputError, UsageError
from perfdiag.trace_schemas.sql_docs import ColumnDoc, TableDoc, parse_module

__all__ = ["ColumnDoc", "TableDoc", "describe_schema", "only_trace", "open_trace", "query_trace"]


def query_trace(
    path: str, sql: str, *, engine: EngineName = "wasm", deadline_s: float = 600.0
) -> Table:
    """Run SQL on one trace.

    A Perfetto trace is loaded as it is, any other as the full canonical trace: every event, its
    original arguments, and flows from launches to device work. The modules of the `perfdiag`
    package are included already.

    Args:
        path: a trace of any format.
        sql: one or several statements; the rows are those of the last.
        engine: trace processor to use.
        deadline_s: seconds that one call to it may take.

    Raises:
        InputError: the trace cannot be read.
        UsageError: the path leads to several traces.
        QueryError: the trace processor refuses the SQL.
        EngineError: the trace processor failed.
    """
    with open_trace(path, engine=engine, deadline_s=deadline_s) as session:
        return session.query(sql)


def open_trace(path: str, *, engine: EngineName = "wasm", deadline_s: float = 600.0) -> Session:
    """A session that holds one trace and its model, see `query_trace`; the caller closes it.

    Raises:
        InputError: the trace cannot be read.
        UsageError: the path leads to several traces.
        EngineError: the trace processor failed.
    """
    blob = only_trace(path)
    options = ReadOptions(engine=engine, deadline_s=deadline_s)
    session = open_session(engine, deadline_s=deadline_s)
    try:
        _load(session, blob, options)
        prepare(session)
    except BaseException:
        session.close()
        raise
    return session


def only_trace(path: str) -> Blob:
    """The one trace to which a path leads.

    Raises:
        InputError: there is none, or it cannot be read.
        UsageError: there are several.
    """
    found = ""
    trace = None
    for blob in expand([path]):
        if blob.skipped:
            continue
        if trace is not None:
            msg = f"{path!r} holds several traces, one a rank: name one, such as {found!r}"
            raise UsageError(msg)
        trace, found = blob, blob.path
    if trace is None:
        raise InputError(path, "holds no trace")
    return trace


def describe_schema() -> list[TableDoc]:
    """The public tables of the `perfdiag` package, module by module."""
    return [
        table
        for module, sql in sorted(model_sql().items())
        for table in parse_module(module, sql)
        if not table.private
    ]


def _load(session: Session, blob: Blob, options: ReadOptions) -> None:
    if blob.content != "perfetto":
        recording = read_blob(blob, options, keep_args=True)
        session.load(canonical_trace(recording, options, TraceOptions()))
        return
    try:
        session.load([blob.data])
    except EngineError as error:
        raise InputError(blob.path, f"the trace processor refuses it: {error}") from error
