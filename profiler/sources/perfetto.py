"""Perfetto traces: our own, read back as they were written, and anybody's TrackEvents."""

from perfdiag.profiler.engine import EngineName, open_session
from perfdiag.profiler.model import model_sql
from perfdiag.profiler.sources.perfetto_canonical import read_canonical
from perfdiag.trace_schemas.errors import EngineError, InputError
from perfdiag.trace_schemas.recording import Recording

__all__ = ["read_perfetto"]


def read_perfetto(
    data: bytes | memoryview,
    path: str,
    *,
    engine: EngineName = "wasm",
    deadline_s: float = 600.0,
    device_track: str | None = None,
    step_marker: str | None = None,
    keep_args: bool = False,
) -> Recording:
    """Read a Perfetto trace; one of our own comes normalised.

    Args:
        data: the trace.
        path: what the user named, for messages.
        engine: trace processor to use.
        deadline_s: for a call to it.
        device_track: regular expression for names of tracks that are device lanes.
        step_marker: regular expression for names of steps.
        keep_args: keep the original arguments of every event as JSON text.

    Raises:
        InputError: the trace processor refuses the trace, or nothing is in it.
        EngineError: the trace processor failed.
    """
    with open_session(engine, deadline_s=deadline_s) as session:
        try:
            session.load([data])
        except EngineError as error:
            raise InputError(path, f"the trace processor refuses it: {error}") from error
        session.register_package("perfdiag", model_sql())
        session.query("INCLUDE PERFETTO MODULE perfdiag.canonical;")
        if len(session.query("SELECT 1 FROM _canonical_rank")):
            return read_canonical(session, path, keep_args=keep_args)
        raise InputError(path, "foreign")
