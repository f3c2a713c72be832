"""A recording with pseudonyms for all that is secret in it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from perfdiag.classifiers.triage.redaction import region_kind
from perfdiag.classifiers.triage.redactor import Redactor
from perfdiag.classifiers.triage.vocabulary import is_public_name, is_public_value
from perfdiag.profiler.regions import Region
from perfdiag.profiler.steps import Step
from perfdiag.trace_schemas.recording import ArgColumn, Kind, Lane, Recording, Slices

__all__ = ["redact_recording", "redact_regions", "redact_steps"]

_NAMED = {
    Kind.HOST_OP: "op",
    Kind.ANNOTATION: "range",
    Kind.PYTHON: "frame",
    Kind.RUNTIME: "call",
    Kind.KERNEL: "kernel",
    Kind.COPY: "kernel",
    Kind.FILL: "kernel",
    Kind.COLLECTIVE: "kernel",
    Kind.DEVICE_SYNC: "call",
    Kind.DEVICE_ANNOTATION: "range",
    Kind.OVERHEAD: "op",
    Kind.INSTANT: "range",
    Kind.OTHER: "range",
}
"""What kind of name slices have."""

_ARGS = frozenset(
    """
    Input Dims|Input dims|Input Strides|Input type|Concrete Inputs|grid|block|stream|device|context
    |correlation|External id|registers per thread|shared memory|est. achieved occupancy %|bytes
    |blocks per SM|warps per SM|memory bandwidth (GB/s)|Sequence number|Fwd thread id|cbid|Ev Idx
    |In msg nelems|Out msg nelems|In msg size|Out msg size|dtype|Group size|Collective name|queued
    |Record function id|Rank|Total|Device Id|Device Type|Addr|Bytes
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
"""Arguments of Kineto that may stay: numbers, sizes, and names of types."""

_LANE = re.compile(r"(stream|thread|queue|engine|device)\s*#?\d+\s*", re.IGNORECASE)


def redact_recording(recording: Recording, redactor: Redactor) -> Recording:
    """The recording as an outsider may see it.

    Frames of Python go altogether; so do arguments that are not known to be harmless, and what the
    source says of itself.
    """
    if not redactor.active:
        return recording
    slices = recording.slices.take(recording.slices.kind != Kind.PYTHON)
    slices, strings = _renamed(slices, recording.strings, redactor)
    return replace(
        recording,
        source=redactor.name("path", recording.source),
        host=redactor.name("host", recording.host),
        strings=strings,
        slices=_without_secret_args(slices, redactor),
        lanes=[_lane(lane, redactor) for lane in recording.lanes],
        groups=[
            replace(group, name=redactor.name("group", group.name), description="")
            for group in recording.groups
        ],
        counters=[
            replace(one, name=redactor.name("counter", one.name)) for one in recording.counters
        ],
        notices=[replace(one, message=redactor.prose(one.message)) for one in recording.notices],
        metadata={},
    )


def _renamed(
    slices: Slices, strings: Sequence[str], redactor: Redactor
) -> tuple[Slices, list[str]]:
    """Slices under their new names: one text may be a kernel here and a range there."""
    table: dict[str, int] = {}
    keys, at = np.unique(slices.name.astype(np.int64) * 64 + slices.kind, return_inverse=True)
    new = [redactor.name(_NAMED[Kind(key % 64)], strings[key // 64]) for key in keys.tolist()]
    names = np.array([table.setdefault(text, len(table)) for text in new], np.int32)
    codes, place = np.unique(slices.category, return_inverse=True)
    texts = [strings[code] for code in codes.tolist()]
    plain = [text if is_public_name(text) else "other" for text in texts]
    categories = np.array([table.setdefault(text, len(table)) for text in plain], np.int32)
    named = replace(slices, name=names[at] if len(names) else slices.name)
    category = categories[place] if len(categories) else slices.category
    return replace(named, category=category), list(table)


def _without_secret_args(slices: Slices, redactor: Redactor) -> Slices:
    changes: dict[str, Callable[[str], str]] = {
        "group_name": lambda text: redactor.name("group", text),
        "reason": str,
    }

    def other(text: str) -> str:
        return text if is_public_value(text) else ""

    args = {name: _mapped(column, changes.get(name, other)) for name, column in slices.args.items()}
    raw = None if slices.raw_args is None else [_bare(text) for text in slices.raw_args]
    return replace(slices, args=args, raw_args=raw)


def _mapped(column: ArgColumn, change: Callable[[str], str]) -> ArgColumn:
    if column.values.dtype != object:
        return column
    values = np.array([change(str(value)) for value in column.values.tolist()], object)
    return replace(column, values=values)


def _bare(text: bytes | None) -> bytes | None:
    """Arguments without those that are not known to be harmless."""
    if text is None:
        return None
    try:
        args = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if not isinstance(args, dict):
        return None
    return msgspec.json.encode({k: _harmless(v) for k, v in args.items() if k in _ARGS})


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_public_value(value) and "/" not in value else ""
    if isinstance(value, list):
        return [_harmless(one) for one in value]
    return None if isinstance(value, dict) else value


def _lane(lane: Lane, redactor: Redactor) -> Lane:
    def number(text: str) -> str:
        return text if text.lstrip("-").isdigit() else redactor.name("thread", text)

    name = lane.name if _LANE.fullmatch(lane.name) else redactor.name("thread", lane.name)
    return replace(lane, process=number(lane.process), thread=number(lane.thread), name=name)


def redact_steps(steps: Sequence[Step], redactor: Redactor) -> list[Step]:
    """Steps under names that an outsider may see."""
    return [replace(step, name=redactor.name("range", step.name)) for step in steps]


def redact_regions(regions: Sequence[Region], redactor: Redactor) -> list[Region]:
    """Likewise for regions."""
    return [
        replace(one, name=redactor.name(region_kind(one.kind, one.name), one.name))
        for one in regions
    ]
