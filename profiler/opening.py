"""From an input to an open model: read, normalise, find steps, write the trace, load it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from perfdiag.profiler.engine import EngineName, Session, open_session
from perfdiag.profiler.facts_in_trace import facts_in_trace
from perfdiag.profiler.limits import WIDE_SLICES, check_room
from perfdiag.profiler.model import prepare
from perfdiag.profiler.normalise import normalise, rebase
from perfdiag.profiler.regions import Region, find_regions
from perfdiag.profiler.sources.files import NOT_READ, Blob
from perfdiag.profiler.sources.kineto import KinetoOptions, read_kineto
from perfdiag.profiler.sources.perfetto import PerfettoOptions, read_perfetto
from perfdiag.profiler.steps import Step, find_steps
from perfdiag.profiler.trace_writer import VERDICT_ONLY, MetaSlice, TraceOptions, write_trace
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.recording import KeepArgs, Recording

__all__ = [
    "Adjust",
    "EngineStart",
    "OpenModel",
    "ReadOptions",
    "TimeUnit",
    "canonical_trace",
    "open_model",
    "read_blob",
]

TimeUnit = Literal["ns", "us", "ms"]

Adjust = Callable[[Recording], Recording]
"""A change of a normalised recording, before it is written."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read.

    Attributes:
        engine: trace processor to use.
        step_marker: regular expression for names of steps.
        device_track: regular expression for names of device tracks in foreign traces.
        time_unit: unit of the times of a JSON trace, where it is not the format's.
        deadline_s: for a call to the trace processor.
        max_memory_bytes: refuse inputs that need more; None for what the machine has.
        time_range_ns: look only at this part of the trace, counted from its first event.
        keep_whole: keep what was read, all original arguments included, for those who write it.
    """

    engine: EngineName = "wasm"
    step_marker: str | None = None
    device_track: str | None = None
    time_unit: TimeUnit | None = None
    deadline_s: float = 600.0
    max_memory_bytes: int | None = None
    time_range_ns: tuple[int, int] | None = None
    keep_whole: bool = False


def read_blob(blob: Blob, options: ReadOptions, *, keep_args: KeepArgs = False) -> Recording:
    """Read one input of any format and normalise it.

    Args:
        blob: the input.
        options: how to read it.
        keep_args: the original arguments as JSON text: of all events, of none, or of operators with
            recorded inputs.

    Raises:
        InputError: it is no trace that perfdiag reads.
        InputTooLargeError: it needs more memory than it may take.
    """
    if blob.content == "json":
        if options.time_range_ns is None:
            check_room(blob.path, blob.data, options.max_memory_bytes)
        how = KinetoOptions(options.time_unit or "us", keep_args, options.time_range_ns)
        recording = read_kineto(blob.data, blob.path, how)
    elif blob.content == "perfetto":
        as_asked = PerfettoOptions(
            options.engine,
            options.deadline_s,
            options.device_track,
            options.step_marker,
            keep_args,
        )
        recording = read_perfetto(blob.data, blob.path, as_asked)
        recording = _within(recording, options.time_range_ns)
    else:
        raise InputError(blob.path, NOT_READ[blob.content])
    return normalise(recording.noting(*blob.notices))


def _within(recording: Recording, range_ns: tuple[int, int] | None) -> Recording:
    """What starts and ends in a part of the recording, counted from its first event."""
    slices = recording.slices
    if range_ns is None or not len(slices):
        return recording
    start, end = (int(slices.ts_ns.min()) + bound for bound in range_ns)
    kept = (slices.ts_ns >= start) & (slices.end_ns <= end)
    if not kept.any():
        raise InputError(recording.source, "holds no event in this time range")
    counters = [counter.within(start, end) for counter in recording.counters]
    cut = replace(recording, slices=slices.take(kept), counters=counters)
    return rebase(cut) if cut.normalised else cut


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A recording with its structure, and the session that holds its model.

    Attributes:
        recording: with the notices about its steps.
        steps, regions: found in it.
        facts: what was written into the trace beside its slices.
        session: holds the model.
    """

    recording: Recording
    steps: list[Step]
    regions: list[Region]
    facts: list[MetaSlice]
    session: Session

    def __enter__(self) -> "OpenModel":
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the session."""
        self.session.close()


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


class EngineStart:
    """An engine that starts in the background while the input is being read."""

    def __init__(self, options: ReadOptions) -> None:
        """Begin."""
        self._options = options
        pool = ThreadPoolExecutor(1)
        self._future = pool.submit(open_session, options.engine, deadline_s=options.deadline_s)
        pool.shutdown(wait=False)

    def take(self, slices: int) -> Session:
        """The session, one with 64-bit memory where that many slices need it."""
        session = self._future.result()
        if slices < WIDE_SLICES or self._options.engine == "native":
            return session
        session.close()
        return open_session(self._options.engine, deadline_s=self._options.deadline_s, wide=True)

    def discard(self) -> None:
        """Close the session, which nobody took, as soon as it is there.

        Nobody waits for that: whoever interrupts an import leaves its lock taken, and an engine
        that still imports its modules then never starts.
        """
        self._future.add_done_callback(_close)


def _close(started: Future[Session]) -> None:
    if started.exception() is None:
        started.result().close()


def open_model(
    recording: Recording,
    options: ReadOptions,
    content: TraceOptions = VERDICT_ONLY,
    engine: EngineStart | None = None,
) -> OpenModel:
    """Load the recording's model into a trace processor; the caller closes it."""
    recording, steps, regions = find_structure(recording, options)
    session = (engine or EngineStart(options)).take(len(recording.slices))
    try:
        facts = facts_in_trace(recording, steps, regions)
        session.load(write_trace(recording, facts, content))
        prepare(session)
    except BaseException:
        session.close()
        raise
    return OpenModel(recording, steps, regions, facts, session)
