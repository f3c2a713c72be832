"""All that is drawn over the traces of a job, and these traces on one clock."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from perfdiag.classifiers.annotations.budget import budget_track
from perfdiag.classifiers.annotations.counters import counter_tracks
from perfdiag.classifiers.annotations.fixes import fix_track
from perfdiag.classifiers.annotations.scene import Scene
from perfdiag.classifiers.annotations.verdicts import region_tracks, step_track, verdict_track
from perfdiag.classifiers.annotations.waits import wait_track
from perfdiag.classifiers.counter_tracks import CounterFiles, counter_adder
from perfdiag.classifiers.job import Job
from perfdiag.classifiers.judging import Judged
from perfdiag.classifiers.options import Options
from perfdiag.classifiers.rereading import read_again
from perfdiag.profiler.annotated_trace import RankTrace
from perfdiag.profiler.annotations import Annotations
from perfdiag.profiler.facts_in_trace import facts_in_trace

__all__ = ["annotations_of", "rank_traces"]


class _Placed(NamedTuple):
    """When a rank's time 0 is on the common clock, and what time it was."""

    shift_ns: int
    unix_ns: int | None


def annotations_of(judged: Judged, start_ns: int = 0) -> list[Annotations]:
    """What is drawn over the trace of each rank, in the order of the report.

    Args:
        judged: the job.
        start_ns: time of the file at which the first rank's time 0 lies; queries see it.
    """
    return [
        _annotations(Scene(judged, position, start_ns + at.shift_ns))
        for position, at in enumerate(_placed(judged.job))
    ]


def _annotations(scene: Scene) -> Annotations:
    waits = wait_track(scene)
    tracks = (
        verdict_track(scene),
        fix_track(scene),
        step_track(scene),
        *region_tracks(scene),
        budget_track(scene),
        *(() if waits is None else (waits,)),
    )
    return Annotations(scene.facts.rank, tracks, tuple(counter_tracks(scene)))


def rank_traces(judged: Judged, options: Options) -> Iterator[RankTrace]:
    """The whole trace of each rank with what is drawn over it, one after the other.

    What the analysis did not keep is read again; files of counters become tracks.

    Args:
        judged: the job.
        options: with which it was analysed.

    Raises:
        InputError: a trace is not there any more, or files of counters cannot be read.
        UsageError: a trace came through a pipe, which cannot be read twice.
    """
    files = CounterFiles(
        options.counters, options.counters_offset_ns, options.counters_utc_offset_s
    )
    adder = counter_adder(files)
    drawn = zip(judged.ranks, annotations_of(judged), _placed(judged.job), strict=True)
    for item, annotations, at in drawn:
        whole = item.whole or _read_again(item.input.path, options)
        recording = whole.recording if adder is None else adder(whole.recording)
        yield replace(
            whole,
            recording=recording,
            annotations=annotations,
            shift_ns=at.shift_ns,
            unix_ns=at.unix_ns,
        )


def _read_again(path: str, options: Options) -> RankTrace:
    recording, steps, regions = read_again(path, options.reading)
    return RankTrace(recording, facts_in_trace(recording, steps, regions))


def _placed(job: Job) -> list[_Placed]:
    """The ranks on one clock: by their meetings, else by what time they recorded.

    Where neither tells, each begins at 0.
    """
    unix = [facts.clock_unix_ns for facts in job.ranks]
    if len(unix) == 1:
        return [_Placed(0, unix[0])]
    known = [ns for ns in unix if ns is not None]
    clocks = job.clocks if job.waits is not None else None
    if clocks is not None:
        shifts = [int(ns) for ns in clocks.shift_ns]
        offsets = [int(ns) for ns in clocks.offset_ns]
        moved = [ns - off for ns, off in zip(known, offsets, strict=False)]
        times: list[int | None] = [*moved] if clocks.known else [None] * len(unix)
        return [_Placed(s - min(shifts), t) for s, t in zip(shifts, times, strict=True)]
    if len(known) == len(unix):
        return [_Placed(ns - min(known), ns) for ns in known]
    return [_Placed(0, None)] * len(unix)
