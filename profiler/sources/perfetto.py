"""Perfetto traces: our own, read back as they were written, and anybody's TrackEvents."""

import re
from dataclasses import dataclass

from perfdiag.profiler.engine import EngineName, Session, open_session
from perfdiag.profiler.model import model_sql
from perfdiag.profiler.sources.perfetto_canonical import read_canonical
from perfdiag.profiler.sources.perfetto_foreign import read_foreign
from perfdiag.profiler.wire import read_varint
from perfdiag.trace_schemas.errors import EngineError, InputError
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import KeepArgs, Recording

__all__ = ["PerfettoOptions", "read_perfetto"]

_PACKET_TAG = 0x0A
_OPTIONS = "perfdiag.options"
_NAMES = """
SELECT track.id, track.name, parent.name AS parent, thread.name AS thread, process.name AS process
FROM track
LEFT JOIN track AS parent ON parent.id = track.parent_id
LEFT JOIN thread ON thread.utid = extract_arg(track.dimension_arg_set_id, 'utid')
LEFT JOIN process ON process.upid = coalesce(
  extract_arg(track.dimension_arg_set_id, 'upid'),
  extract_arg(parent.dimension_arg_set_id, 'upid'),
  thread.upid
)
"""


@dataclass(frozen=True, slots=True)
class PerfettoOptions:
    """How a Perfetto trace is read.

    Attributes:
        engine: trace processor to use.
        deadline_s: for a call to it.
        device_track: regular expression for names of tracks that are device lanes.
        step_marker: regular expression for names of steps.
        keep_args: keep the original arguments of every event as JSON text.
    """

    engine: EngineName = "wasm"
    deadline_s: float = 600.0
    device_track: str | None = None
    step_marker: str | None = None
    keep_args: KeepArgs = False


def read_perfetto(
    data: bytes | memoryview, path: str, options: PerfettoOptions | None = None
) -> Recording:
    """Read a Perfetto trace; one of our own comes normalised.

    Args:
        data: the trace.
        path: what the user named, for messages.
        options: those of `PerfettoOptions()` by default.

    Raises:
        InputError: the trace processor refuses the trace, or nothing is in it.
        EngineError: the trace processor failed.
    """
    how = options or PerfettoOptions()
    with open_session(how.engine, deadline_s=how.deadline_s) as session:
        try:
            session.load([data])
        except EngineError as error:
            raise InputError(path, f"the trace processor refuses it: {error}") from error
        session.register_package("perfdiag", _package(session, how.device_track))
        session.query("INCLUDE PERFETTO MODULE perfdiag.canonical;")
        if len(session.query("SELECT 1 FROM _canonical_rank")):
            recording = read_canonical(session, path, keep_args=how.keep_args)
        else:
            session.query("INCLUDE PERFETTO MODULE perfdiag.adapter;")
            recording = read_foreign(
                session, path, step_marker=how.step_marker, keep_args=how.keep_args is True
            )
    cut = _truncation(data)
    if not len(recording.slices) and not recording.counters:
        raise InputError(path, f"holds no slice and no counter: nothing to analyse. {cut.message}")
    return recording.noting(cut)


def _truncation(data: bytes | memoryview) -> Notice:
    """That the last packet is incomplete; the trace processor does not say so."""
    at, end = 0, len(data)
    while at < end and data[at] == _PACKET_TAG:
        try:
            length, start = read_varint(data, at + 1)
        except EngineError:  # the cut is in the length itself
            length, start = end, end
        if start + length > end:
            message = f"The input ends inside the packet at byte {at}; what is before it is read."
            return Notice("input.truncated", "error", 1, message)
        at = start + length
    return Notice("input.truncated", "error", 0, "")


def _package(session: Session, device_track: str | None) -> dict[str, str]:
    """The SQL package, with the tracks that the user calls device lanes put in."""
    modules = model_sql()
    if device_track is not None:
        table = session.query(_NAMES)
        names = zip(*(table.texts(name) for name in table.names[1:]), strict=True)
        matching = [
            str(track)
            for track, texts in zip(table.ints("id").tolist(), names, strict=True)
            if any(re.search(device_track, text) for text in texts if text)
        ]
        numbers = "|".join(["", *matching, ""])
        modules[_OPTIONS] = modules[_OPTIONS].replace("''", f"'{numbers}'")
    return modules
