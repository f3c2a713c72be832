"""SQL over any trace, with the tables of the model beside the trace processor's own."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from perfdiag.profiler.engine import EngineName, Session, Table, open_session
from perfdiag.profiler.model import model_sql, prepare
from perfdiag.profiler.opening import Adjust, ReadOptions, canonical_trace, read_blob
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.profiler.sources.rank_parts import split_ranks
from perfdiag.profiler.trace_writer import TraceOptions
from perfdiag.trace_schemas.errors import EngineError, InputError, UsageError
from perfdiag.trace_schemas.recording import Recording
from perfdiag.trace_schemas.sql_docs import ColumnDoc, TableDoc, parse_module

__all__ = [
    "ColumnDoc",
    "LoadedTrace",
    "TableDoc",
    "describe_schema",
    "load_trace",
    "only_trace",
    "open_trace",
    "query_trace",
]


@dataclass(slots=True)
class LoadedTrace:
    """A session that holds one trace and its model; whoever has it closes the session.

    Attributes:
        session: see `query_trace`.
        blob: the trace; its bytes are empty where a recording is kept in their place.
        options: how it was read.
        recording: what was loaded, None where that is the trace itself.
    """

    session: Session
    blob: Blob
    options: ReadOptions
    recording: Recording | None

    def read(self) -> Recording:
        """The recording behind the session, with the inputs of operators.

        Raises:
            InputError: the trace cannot be read.
        """
        if self.recording is None:
            self.recording = read_blob(self.blob, self.options, keep_args="inputs")
        return self.recording


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
    return load_trace(path, ReadOptions(engine=engine, deadline_s=deadline_s)).session


def load_trace(path: str, options: ReadOptions, adjust: Adjust | None = None) -> LoadedTrace:
    """Load one trace and its model, see `query_trace`.

    Args:
        path: a trace of any format.
        options: how to read it.
        adjust: changes what was read; a Perfetto trace is not loaded as it is then.

    Raises:
        InputError: the trace cannot be read.
        UsageError: the path leads to several traces.
        EngineError: the trace processor failed.
    """
    blob = only_trace(path)
    session = open_session(options.engine, deadline_s=options.deadline_s)
    try:
        loaded = _loaded(session, blob, options, adjust)
        prepare(session)
    except BaseException:
        session.close()
        raise
    return loaded


def only_trace(path: str) -> Blob:
    """The one trace to which a path leads.

    Raises:
        InputError: there is none, or it cannot be read.
        UsageError: there are several.
    """
    found = ""
    trace = None
    for blob in _named(path):
        if blob.skipped:
            continue
        if trace is not None:
            msg = f"{path!r} holds several traces, one a rank: name one, such as {found!r}"
            raise UsageError(msg)
        trace, found = blob, blob.path
    if trace is None:
        raise InputError(path, "holds no trace")
    return trace


def _named(path: str) -> Iterator[Blob]:
    """What a path leads to; one rank of an annotated trace of several may be named too."""
    whole, _, part = path.rpartition("!")
    if not re.fullmatch(r"part\d+", part) or os.path.lexists(path):
        return expand([path])
    return (b for blob in expand([whole]) for b in split_ranks(blob) if b.path == path)


def describe_schema() -> list[TableDoc]:
    """The public tables of the `perfdiag` package, module by module."""
    return [
        table
        for module, sql in sorted(model_sql().items())
        for table in parse_module(module, sql)
        if not table.private
    ]


def _loaded(
    session: Session, blob: Blob, options: ReadOptions, adjust: Adjust | None
) -> LoadedTrace:
    if blob.content != "perfetto" or adjust is not None:
        recording = read_blob(blob, options, keep_args=True)
        recording = recording if adjust is None else adjust(recording)
        session.load(canonical_trace(recording, options, TraceOptions()))
        return LoadedTrace(session, replace(blob, data=b""), options, recording)
    try:
        session.load([blob.data])
    except EngineError as error:
        raise InputError(blob.path, f"the trace processor refuses it: {error}") from error
    return LoadedTrace(session, blob, options, None)
