"""What the tracks of a trace cannot say, written into it as slices for SQL to read."""

from collections.abc import Sequence

import numpy as np

from perfdiag.profiler.regions import Region
from perfdiag.profiler.steps import Step
from perfdiag.profiler.trace_packets import MetaSlice
from perfdiag.trace_schemas.kernels import KernelClass, classify_kernel
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import ABSENT, DEVICE_WORK, Kind, Recording

__all__ = ["facts_in_trace"]


def facts_in_trace(
    recording: Recording, steps: Sequence[Step], regions: Sequence[Region]
) -> list[MetaSlice]:
    """All facts: ranks, devices, groups, notices, classes, what was set aside, steps, regions."""
    return [
        _rank(recording),
        *_devices(recording),
        *_groups(recording),
        *(_notice(notice) for notice in recording.notices),
        *_metadata(recording),
        *_kernel_classes(recording),
        *_set_aside(recording),
        *(_step(step) for step in steps),
        *(_region(region) for region in regions),
    ]


def _rank(recording: Recording) -> MetaSlice:
    clock = recording.clock
    return MetaSlice(
        "perfdiag.rank",
        "rank",
        {
            "rank": ABSENT if recording.rank is None else recording.rank,
            "world_size": recording.world_size or ABSENT,
            "host": recording.host,
            "source": recording.source,
            "format": recording.format,
            "clock_unix_ns": ABSENT if clock.unix_ns is None else clock.unix_ns,
            "clock_origin_ns": clock.origin_ns,
            "clock_quality": clock.quality,
            "events_read": recording.events_read,
            "events_skipped": recording.events_skipped,
        },
    )


def _devices(recording: Recording) -> list[MetaSlice]:
    return [
        MetaSlice(
            "perfdiag.device",
            device.name,
            {
                "ordinal": device.ordinal,
                "vendor": device.vendor,
                "sm_count": device.sm_count,
                "memory_bytes": device.memory_bytes,
            },
        )
        for device in recording.devices
    ]


def _groups(recording: Recording) -> list[MetaSlice]:
    return [
        MetaSlice(
            "perfdiag.group",
            group.name,
            {
                "description": group.description,
                "size": group.size,
                "ranks": ",".join(map(str, group.ranks)),
            },
        )
        for group in recording.groups
    ]


def _notice(notice: Notice) -> MetaSlice:
    return MetaSlice(
        "perfdiag.notice",
        notice.kind,
        {"severity": notice.severity, "count": notice.count, "message": notice.message},
    )


def _kernel_classes(recording: Recording) -> list[MetaSlice]:
    """One for each name of device work, so that SQL can join them by name."""
    slices = recording.slices
    work = np.isin(slices.kind, DEVICE_WORK)
    names = sorted({recording.strings[n] for n in np.unique(slices.name[work]).tolist()})
    classes = [(name, classify_kernel(name)) for name in names]
    return [
        MetaSlice(
            "perfdiag.kernel_class",
            name,
            {"family": c.family, "bound": c.bound, "collective": c.collective, **_guessed(c)},
        )
        for name, c in classes
    ]


def _guessed(found: KernelClass) -> dict[str, float]:
    """What the table knows is certain, and SQL takes it so where nothing is written."""
    return {"probability": found.probability} if found.probability < 1 else {}


def _metadata(recording: Recording) -> list[MetaSlice]:
    return [
        MetaSlice("perfdiag.metadata", key, {"value": value})
        for key, value in recording.metadata.items()
    ]


def _set_aside(recording: Recording) -> list[MetaSlice]:
    """One for each event that has no place in time, with all that is known of it."""
    slices = recording.set_aside
    args: list[dict[str, int | float | str]] = [{} for _ in range(len(slices))]
    for name, column in slices.args.items():
        for row, value in zip(column.rows.tolist(), column.values.tolist(), strict=True):
            args[row][name] = value
    return [
        MetaSlice(
            "perfdiag.set_aside",
            recording.strings[slices.name[i]],
            {
                "ts_ns": int(slices.ts_ns[i]),
                "dur_ns": int(slices.dur_ns[i]),
                "lane": int(slices.lane[i]),
                "kind": Kind(slices.kind[i]).name.lower(),
                "source_category": recording.strings[slices.category[i]],
                "correlation": int(slices.correlation[i]),
                "external_id": int(slices.external_id[i]),
                "reason": "",
                **args[i],
                **_raw(slices.raw_args, i),
            },
        )
        for i in range(len(slices))
    ]


def _raw(raw_args: Sequence[bytes | None] | None, row: int) -> dict[str, str]:
    text = None if raw_args is None else raw_args[row]
    return {} if text is None else {"raw_args": text.decode("utf-8", "replace")}


def _step(step: Step) -> MetaSlice:
    return MetaSlice(
        "perfdiag.step",
        step.name,
        {
            "ordinal": step.ordinal,
            "source": step.source,
            "host_ts": step.host_ts_ns,
            "host_dur": step.host_dur_ns,
        },
        "steps",
        step.ts_ns,
        step.dur_ns,
    )


def _region(region: Region) -> MetaSlice:
    return MetaSlice(
        "perfdiag.region",
        region.name,
        {"step": region.step, "kind": region.kind, "host_ts": region.host_ts_ns},
        f"{region.kind}s",
        region.ts_ns,
        region.dur_ns,
    )
