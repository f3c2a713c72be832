"""The canonical Perfetto trace: a Recording as TrackEvents, written as numpy arrays.

Every lane becomes a track (and more tracks where its slices cross), every slice a begin and
an end packet. What the tracks cannot say - ranks, devices, lanes, notices, kernel classes -
is written as slices of category `perfdiag.*` on a track of its own, so that SQL can read it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiag.profiler.nesting import Tracks, assign_tracks
from perfdiag.profiler.selection import needed_for_verdict
from perfdiag.profiler.trace_events import event_encoder
from perfdiag.profiler.trace_packets import (
    MetaSlice,
    clock_packet,
    counter_packets,
    group_packet,
    meta_packets,
    process_packet,
    track_packet,
)
from perfdiag.trace_schemas.recording import (
    ABSENT,
    Int64s,
    Kind,
    Lane,
    Recording,
)

__all__ = ["MetaSlice", "TraceOptions", "write_trace"]


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How much goes into a trace.

    Attributes:
        complete: every slice, with its original arguments, and flows from launches to device
            work. Without it only what a verdict needs: a third of the time to load.
        clock: in which the events count, where that is not boot time: whoever writes the trace
            says what time it is then. The facts lie in a group below all other tracks.
        beside: each (n,) id of a further flow that passes through a slice, 0 for none.
    """

    complete: bool = True
    clock: int | None = None
    beside: Sequence[Int64s] = ()


COMPLETE = TraceOptions()
VERDICT_ONLY = TraceOptions(complete=False)


def write_trace(
    recording: Recording,
    meta: Sequence[MetaSlice] = (),
    options: TraceOptions = COMPLETE,
) -> Iterator[bytes]:
    """The canonical trace of one rank, in pieces that may be concatenated.

    Args:
        recording: times must be rebased: 0 is the start of the trace.
        meta: slices on perfdiag's own tracks.
        options: how much to write.
    """
    if not options.complete:
        needed = needed_for_verdict(recording)
        recording = replace(recording, slices=recording.slices.take(needed))
    shown = recording.slices
    tracks = assign_tracks(shown.ts_ns, shown.dur_ns, track_groups(recording))
    base = track_base(recording)
    uuids = base + FIRST_LANE + np.arange(len(tracks.lane))
    encoder, strings = event_encoder(recording, tracks, uuids, complete=options.complete)
    encoder = replace(encoder, beside=options.beside)
    own = options.clock is not None
    yield _tracks_preamble(recording, tracks, base, below=own)
    if own:
        yield _groups_preamble(recording, base)
    elif recording.clock.unix_ns is not None:
        yield clock_packet(recording.clock.unix_ns)
    yield strings.packet(options.clock)
    # First, so that a file that is cut short still says whose it is.
    about = [*lane_slices(recording, tracks, base), *counter_slices(recording, base)]
    yield meta_packets([*about, *meta], base + META, base + (FACTS if own else ROOT))
    yield from encoder.blocks()
    devices = _device_uuids(recording, base)
    for i, counter in enumerate(recording.counters):
        parent = devices.get(counter.device, base + (HOST if own else ROOT))
        yield counter_packets(counter, base + FIRST_COUNTER + i, parent)


def track_groups(recording: Recording) -> Int64s:
    """(n,) what shares a track: a lane's slices, those of its frames, those that are no work."""
    kind = recording.slices.kind
    group = np.zeros(len(kind), np.int64)
    group[kind == Kind.PYTHON] = 1
    group[(kind == Kind.DEVICE_ANNOTATION) | (kind == Kind.DEVICE_SYNC)] = 2
    group[kind == Kind.INSTANT] = 3
    return recording.slices.lane.astype(np.int64) * len(GROUP_NAMES) + group


GROUP_NAMES = ("", " frames", " marks", " instants")


def track_base(recording: Recording) -> int:
    """Where the track uuids of a source begin: two sources never share one."""
    seed = f"{recording.source}|{recording.rank}|{recording.clock.origin_ns}|{recording.host}"
    digest = hashlib.sha256(seed.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "little") & ~0xFFFFFFF & (1 << 62) - 1


ROOT, META = 1, 2
"""Offsets of uuids from `track_base`: the rank's process, perfdiag's own tracks from 2 on."""
FACTS, HOST, FIRST_ANNOTATION = 1 << 10, (1 << 10) + 1, 1 << 11
FIRST_DEVICE, FIRST_COUNTER, FIRST_LANE = 1 << 12, 1 << 16, 1 << 20
LAST = 1 << 20
"""Among the tracks of a process."""

GROUP = "perfdiag"
"""The group of what is drawn over a trace. The UI (v52) orders the tracks of a process by name
alone, so that all others get names that come after it."""


def _device_uuids(recording: Recording, base: int) -> dict[int, int]:
    """Uuids of the devices' tracks by ordinal."""
    used = {lane.device for lane in recording.lanes if lane.kind == "stream"}
    used |= {counter.device for counter in recording.counters if counter.device != ABSENT}
    return {device: base + FIRST_DEVICE + i for i, device in enumerate(sorted(used))}


def _groups_preamble(recording: Recording, base: int) -> bytes:
    """Groups of what would else lie between the tracks of a process."""
    packets = [group_packet(base + FACTS, base + ROOT, "trace facts", LAST)]
    if any(counter.device == ABSENT for counter in recording.counters):
        packets.append(group_packet(base + HOST, base + ROOT, "samples of the host", LAST))
    return b"".join(packets)


def _tracks_preamble(recording: Recording, tracks: Tracks, base: int, *, below: bool) -> bytes:
    """The process and its tracks; `below`: with names that come after that of `GROUP`."""
    rank = "?" if recording.rank is None else recording.rank
    devices = _device_uuids(recording, base)
    device = "streams of device" if below else "device"
    packets = [
        process_packet(base + ROOT, (recording.rank or 0) + 1, f"rank {rank}"),
        *(track_packet(uuid, base + ROOT, f"{device} {d}") for d, uuid in devices.items()),
    ]
    for i, (key, _) in enumerate(_track_rows(tracks)):
        lane = recording.lanes[key // len(GROUP_NAMES)]
        parent = base + ROOT if lane.kind == "thread" else devices[lane.device]
        name = lane.name + GROUP_NAMES[key % len(GROUP_NAMES)]
        if below and lane.kind == "thread" and name <= GROUP:
            name = f"thread {name}"
        packets.append(track_packet(base + FIRST_LANE + i, parent, name))
    return b"".join(packets)


def _track_rows(tracks: Tracks) -> list[tuple[int, int]]:
    return list(zip(tracks.lane.tolist(), tracks.level.tolist(), strict=True))


def lane_slices(recording: Recording, tracks: Tracks, base: int) -> list[MetaSlice]:
    """What SQL must know of every track: the lane behind it. Lanes without one have uuid 0.

    They stand at the end of time, so that the ids of slices do not depend on how many there are.
    """
    after = int(recording.slices.end_ns.max(initial=-1)) + 1
    shown = [
        (key // len(GROUP_NAMES), level, base + FIRST_LANE + i)
        for i, (key, level) in enumerate(_track_rows(tracks))
    ]
    empty = sorted(set(range(len(recording.lanes))) - {index for index, _, _ in shown})
    return [
        MetaSlice(
            "perfdiag.lane",
            recording.lanes[index].name,
            _lane_args(recording.lanes[index], index, level, uuid),
            ts_ns=after,
        )
        for index, level, uuid in [*shown, *((index, 0, 0) for index in empty)]
    ]


def _lane_args(lane: Lane, index: int, level: int, uuid: int) -> dict[str, int | float | str]:
    return {
        "uuid": uuid,
        "lane": index,
        "level": level,
        "kind": lane.kind,
        "process": lane.process,
        "thread": lane.thread,
        "device": lane.device,
        "stream": lane.stream,
    }


def counter_slices(recording: Recording, base: int) -> list[MetaSlice]:
    """What a counter track cannot say of its counter."""
    return [
        MetaSlice(
            "perfdiag.counter",
            counter.name,
            {
                "uuid": base + FIRST_COUNTER + i,
                "unit": counter.unit,
                "scale": counter.scale,
                "semantics": counter.semantics,
                "device": counter.device,
                "period_ns": counter.period_ns,
                "has_spans": int(counter.spans is not None),
            },
        )
        for i, counter in enumerate(recording.counters)
    ]
