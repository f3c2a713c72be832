"""From the slices of a recording to what their packets say: strings, arguments, flows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.nesting import Tracks
from perfdiag.profiler.trace_encoder import Annotation, EventEncoder
from perfdiag.profiler.trace_packets import interned_packet
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.recording import ABSENT, ArgColumn, Int64s, Kind, Recording

__all__ = ["Strings", "event_encoder"]

Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Strings:
    """Interned strings of one sequence: names, argument names, argument values, categories."""

    names: Mapping[str, int]
    values: dict[str, int] = field(default_factory=dict)
    arguments: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)

    def packet(self, clock: int | None = None) -> bytes:
        """The packet that declares them; ids start at 1. For `clock` see `interned_packet`."""
        tables = {1: self.categories, 2: self.names, 3: self.arguments, 29: self.values}
        return interned_packet(tables, clock)


def _used_names(recording: Recording) -> dict[str, int]:
    used = np.flatnonzero(np.bincount(recording.slices.name, minlength=1))
    return {recording.strings[code]: code + 1 for code in used.tolist()}


def intern(table: dict[str, int], text: str) -> int:
    """The id of `text`, given one if it has none."""
    return table.setdefault(text, len(table) + 1)


def event_encoder(
    recording: Recording, tracks: Tracks, track_uuid: Int64s, *, complete: bool
) -> tuple[EventEncoder, Strings]:
    """What the packets of a recording's slices say, and the strings that they refer to.

    Args:
        recording: the slices to write.
        tracks: where they lie.
        track_uuid: (tracks,) uuids.
        complete: also the original arguments, the ids that tie operators to each other, and
            flows from launches to device work.
    """
    slices, strings = recording.slices, Strings(_used_names(recording))
    annotations = [
        _integers(strings, "correlation", slices.correlation, slices.correlation != ABSENT),
        *(
            _sparse(strings, name, column, len(slices))
            for name, column in slices.args.items()
            if complete or name not in OPERATOR_IDS
        ),
    ]
    if complete:
        external = slices.external_id
        annotations.append(_integers(strings, "external_id", external, external != ABSENT))
        annotations.append(_source_categories(recording, strings))
    first_flow = int(track_uuid[0]) if len(track_uuid) else 1  # uuids are never shared by traces
    start, end = _flow_ids(recording, first_flow) if complete else (None, None)
    encoder = EventEncoder(
        slices,
        tracks,
        track_uuid,
        _categories(recording, strings),
        annotations,
        start,
        end,
        intern(strings.arguments, "raw_args") if complete else None,
    )
    return encoder, strings


OPERATOR_IDS = ("sequence_number", "fwd_thread", "python_id", "python_parent_id")


def _integers(strings: Strings, name: str, values: Int64s, rows: Bools) -> Annotation:
    return Annotation(intern(strings.arguments, name), False, values, rows)


def _sparse(strings: Strings, name: str, column: ArgColumn, n: int) -> Annotation:
    text = column.values.dtype == object
    values, rows = np.zeros(n, np.int64), np.zeros(n, bool)
    codes = [intern(strings.values, str(v)) for v in column.values] if text else column.values
    values[column.rows], rows[column.rows] = codes, True
    return Annotation(intern(strings.arguments, name), text, values, rows)


def _source_categories(recording: Recording, strings: Strings) -> Annotation:
    used = np.unique(recording.slices.category)
    ids = np.zeros(len(recording.strings) + 1, np.int64)
    ids[used] = [intern(strings.values, recording.strings[c]) for c in used.tolist()]
    values = ids[recording.slices.category]
    return Annotation(
        intern(strings.arguments, "source_category"), True, values, np.ones(len(values), bool)
    )


def _categories(recording: Recording, strings: Strings) -> Int64s:
    """(n,) the kind in lower case; runtime calls say what they do: `runtime.launch`."""
    slices = recording.slices
    ids = np.array([intern(strings.categories, kind.name.lower()) for kind in Kind], np.int64)
    category = ids[slices.kind]
    calls = slices.kind == Kind.RUNTIME
    names = np.unique(slices.name[calls])
    by_name = np.zeros(len(recording.strings) + 1, np.int64)
    by_name[names] = [
        intern(strings.categories, f"runtime.{classify_api(recording.strings[n])}")
        for n in names.tolist()
    ]
    category[calls] = by_name[slices.name[calls]]
    return category


def _flow_ids(recording: Recording, first: int) -> tuple[Int64s, Int64s]:
    """(n,) ids of the flows that start at launches, and of those that end at device work."""
    slices = recording.slices
    launch = launch_rows(slices)
    start, end = np.zeros(len(slices), np.int64), np.zeros(len(slices), np.int64)
    linked = np.flatnonzero(launch != ABSENT)
    launches, row = np.unique(launch[linked], return_index=True)
    start[launches] = end[linked[row]] = first + np.arange(len(launches))
    return start, end
