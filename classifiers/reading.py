"""From inputs to the facts of each rank, several at a time in processes of their own."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfdiag.profiler.annotated_trace import RankTrace
from perfdiag.profiler.inputs import only_inputs
from perfdiag.profiler.model import read_model
from perfdiag.profiler.opening import EngineStart, ReadOptions, open_model, read_blob
from perfdiag.profiler.sources.files import Blob
from perfdiag.profiler.trace_writer import MetaSlice
from perfdiag.trace_schemas import report
from perfdiag.trace_schemas.devices import DevicePeaks, recognise
from perfdiag.trace_schemas.recording import Recording

if TYPE_CHECKING:
    from perfdiag.classifiers.facts import RankFacts

__all__ = ["Read", "read_all", "read_one"]

WORTH_BYTES = 4_000_000
"""Of the first trace: a process takes longer to start than a smaller one to analyse."""


@dataclass(frozen=True, slots=True)
class Read:
    """One input with its facts.

    Attributes:
        input: as the report shows it.
        facts: of the rank alone.
        recording: what is needed to name slices, and its notices.
        meta: the facts that were written into the trace.
        engine: that answered.
        whole: everything that was read; None unless it is to be kept and no other process read it.
    """

    input: report.Input
    facts: "RankFacts"
    recording: Recording
    meta: Sequence[MetaSlice]
    engine: report.EngineInfo
    whole: RankTrace | None = None


Tell = Callable[[str, float], None]


def read_all(
    blobs: Iterator[Blob],
    options: ReadOptions,
    jobs: int,
    tell: Tell,
    beside: Callable[[], object],
    peaks: DevicePeaks | None = None,
) -> Iterator[Read]:
    """Read inputs, in any order; at most `jobs` of them are in memory at a time.

    Args:
        blobs: the inputs.
        options: how to read them.
        jobs: processes; 1 does without any.
        tell: is told what is being done.
        beside: called once while a trace is being loaded.
        peaks: of the devices, where they are not to be looked up.
    """
    first = next(blobs, None)
    second = None if first is None or jobs < 2 else next(blobs, None)
    if first is None:
        return
    if second is None or len(first.data) < WORTH_BYTES:
        for blob in _chain(first, second, blobs):
            yield read_one(blob, options, tell, beside, peaks)
        return
    beside()
    yield from _in_processes(_chain(first, second, blobs), options, jobs, tell, peaks)


def _chain(first: Blob, second: Blob | None, rest: Iterator[Blob]) -> Iterator[Blob]:
    yield first
    if second is not None:
        yield second
    yield from rest


def _in_processes(
    blobs: Iterator[Blob], options: ReadOptions, jobs: int, tell: Tell, peaks: DevicePeaks | None
) -> Iterator[Read]:
    """Started afresh, not forked: the engine's threads would not survive a fork."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=gc.disable) as pool:
        running: set[Future[Read]] = set()
        for blob in blobs:
            tell(f"reading {blob.path}", 0.05)
            whole = replace(blob, data=bytes(blob.data))
            running.add(pool.submit(_in_process, whole, options, peaks))
            if len(running) >= jobs:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in running:
            yield future.result()


def _in_process(blob: Blob, options: ReadOptions, peaks: DevicePeaks | None) -> Read:
    return read_one(blob, replace(options, keep_whole=False), _silent, _nothing, peaks)


def _silent(text: str, share: float) -> None:
    """Nobody watches a process."""


def _nothing() -> None:
    """There is nothing to do beside."""


def read_one(
    blob: Blob,
    options: ReadOptions,
    tell: Tell,
    beside: Callable[[], object],
    peaks: DevicePeaks | None = None,
) -> Read:
    """Read one input, model it, and derive its facts.

    Args:
        blob: the input.
        options: how to read it.
        tell: is told what is being done.
        beside: called once while the trace is being loaded.
        peaks: of its device, where they are not to be looked up.

    Raises:
        InputError: it cannot be read.
        EngineError: the trace processor failed.
    """
    tell(f"reading {blob.path}", 0.05)
    engine = EngineStart(options)
    try:
        whole = read_blob(blob, options, keep_args=options.keep_whole or "inputs")
    except BaseException:
        engine.discard()
        raise
    blob = replace(blob, data=b"")  # its memory is wanted for the model
    recording = only_inputs(whole) if options.keep_whole else whole
    tell(f"modelling {blob.path}", 0.4)
    beside()
    with open_model(_for_model(recording, peaks), options, engine=engine) as opened:
        model = read_model(opened.session)
        info = report.EngineInfo(name=opened.session.name, version=opened.session.version)
    from perfdiag.classifiers.rank_facts import facts_of  # imported meanwhile: see `analysis`

    facts = facts_of(recording, opened.recording, model, peaks)
    bare = replace(opened.recording.slices, args={}, raw_args=None)
    kept = replace(opened.recording, slices=bare, strings=(), metadata={})
    read = Read(_input(blob, recording), facts, kept, opened.facts, info)
    if not options.keep_whole:
        return read
    whole = replace(opened.recording, slices=whole.slices)
    return replace(read, whole=RankTrace(whole, opened.facts))


def _for_model(recording: Recording, peaks: DevicePeaks | None) -> Recording:
    """A recording whose operators inside others are modelled only if their inputs are of use.

    No kernel is priced where no device is known.
    """
    if peaks is not None or any(recognise(device) for device in recording.devices):
        return recording
    return replace(recording, slices=replace(recording.slices, raw_args=None))


def _input(blob: Blob, recording: Recording) -> report.Input:
    aside = len(recording.set_aside) + recording.events_skipped
    return report.Input(
        path=blob.path,
        format=recording.format,
        bytes=blob.disk_bytes,
        sha256=blob.sha256,
        events_read=recording.events_read,
        events_kept=recording.events_read - aside,
        events_set_aside=aside,
        rank=recording.rank,
        world_size=recording.world_size,
        host=recording.host,
        devices=[
            report.Device(
                ordinal=d.ordinal,
                name=d.name,
                vendor=d.vendor,
                sm_count=d.sm_count,
                memory_bytes=d.memory_bytes,
            )
            for d in recording.devices
        ],
    )
