"""From an input to an open model: read, normalise, find steps, write the trace, load it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from perfdiag.profiler.engine import EngineName, Session, open_session
from perfdiag.profiler.facts_in_trace import facts_in_trace
from perfdiag.profiler.model import prepare
from perfdiag.profiler.normalise import normalise
from perfdiag.profiler.regions import Region, find_regions
from perfdiag.profiler.sources.files import Blob
from perfdiag.profiler.sources.kineto import read_kineto
from perfdiag.profiler.steps import Step, find_steps
from perfdiag.profiler.trace_writer import VERDICT_ONLY, TraceOptions, write_trace
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import Recording

__all__ = ["ReadOptions", "TimeUnit", "canonical_trace", "open_model", "read_blob"]

TimeUnit = Literal["ns", "us", "ms"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read.

    Attributes:
        engine: trace processor to use.
        step_marker: regular expression for names of steps.
        device_track: regular expression for names of device tracks in foreign traces.
        time_unit: unit of the times of a JSON trace, where it is not the format's.
        deadline_s: for a call to the trace processor.
    """

    engine: EngineName = "wasm"
    step_marker: str | None = None
    device_track: str | None = None
    time_unit: TimeUnit | None = None
    deadline_s: float = 600.0


def read_blob(blob: Blob, options: ReadOptions, *, keep_args: bool = False) -> Recording:
    """Read one input of any format and normalise it.

    Raises:
        InputError: it is no trace that perfdiag reads.
    """
    if blob.content == "json":
        recording = read_kineto(
            blob.data, blob.path, unit=options.time_unit or "us", keep_args=keep_args
        )
    else:
        raise InputError(blob.path, f"{blob.content} input is not read yet")
    return normalise(recording.noting(*blob.notices))


def find_structure(
    recording: Recording, options: ReadOptions
) -> tuple[Recording, list[Step], list[Region]]:
    """Steps and regions of a recording, which takes their notices along."""
    steps, notices = find_steps(recording, options.step_marker)
    return recording.noting(*notices), steps, find_regions(recording, steps)


def canonical_trace(
    recording: Recording, options: ReadOptions, content: TraceOptions
) -> Iterator[bytes]:
    """The canonical trace of a recording, in pieces."""
    recording, steps, regions = find_structure(recording, options)
    return write_trace(recording, facts_in_trace(recording, steps, regions), content)


def open_model(
    recording: Recording, options: ReadOptions, content: TraceOptions = VERDICT_ONLY
) -> Session:
    """A session that holds the recording's model; the caller closes it."""
    session = open_session(options.engine, deadline_s=options.deadline_s)
    try:
        session.load(canonical_trace(recording, options, content))
        prepare(session)
    except BaseException:
        session.close()
        raise
    return session
