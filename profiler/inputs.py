"""What operators were called with, and how kernels were launched, joined to rows of the model."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.model import Hosts, Work
from perfdiag.trace_schemas.kernels import grid_tells
from perfdiag.trace_schemas.recording import RANGE_CATEGORY, Kind, Recording

__all__ = ["only_inputs", "recorded_grids", "recorded_inputs"]

Bools = NDArray[np.bool_]


def only_inputs(recording: Recording) -> Recording:
    """The recording without original arguments that a verdict does not need.

    As if it had been read with `keep_args="inputs"`.
    """
    slices, raw = recording.slices, recording.slices.raw_args
    if raw is None:
        return recording
    wanted = slices.kind == Kind.HOST_OP
    ranges = [code for code, text in enumerate(recording.strings) if text == RANGE_CATEGORY]
    always = np.isin(slices.category, ranges)
    kernels = np.flatnonzero(slices.kind == Kind.KERNEL)
    names = np.unique(slices.name[kernels]).tolist()
    telling = [code for code in names if grid_tells(recording.strings[code])]
    always[kernels[np.isin(slices.name[kernels], telling)]] = True
    kept: list[bytes | None] = [None] * len(slices)
    for row in np.flatnonzero(wanted | always).tolist():
        text = raw[row]
        if text is not None and (always[row] or b'"Input' in text):
            kept[row] = text
    return replace(recording, slices=replace(slices, raw_args=kept))


def recorded_inputs(recording: Recording, hosts: Hosts) -> dict[int, bytes]:
    """Arguments of operators whose inputs were recorded, as JSON text, by row of `Hosts`.

    Slices are joined by lane, start, end and name: ids of the model are those of its session. Of
    operators that agree in all four the first has the inputs.
    """
    operators = recording.slices.kind == Kind.HOST_OP
    texts = _texts(recording, operators, hosts, hosts.kind.where("host_op"))
    return {row: text for row, text in texts if b'"Input' in text}


def recorded_grids(recording: Recording, work: Work) -> dict[int, tuple[int, ...]]:
    """Blocks in x, y and z of the kernels whose grid tells what they compute, by row of `Work`."""
    telling = np.asarray(work.name.map(grid_tells, np.bool_), np.bool_)
    if not telling.any():
        return {}
    kernels = recording.slices.kind == Kind.KERNEL
    grids = ((row, _grid(text)) for row, text in _texts(recording, kernels, work, telling))
    return {row: grid for row, grid in grids if grid}


class _Launch(msgspec.Struct, gc=False):
    grid: tuple[int, ...] = ()


def _grid(text: bytes) -> tuple[int, ...]:
    """The grid among a kernel's arguments; () where there is none."""
    try:
        return msgspec.json.decode(text, type=_Launch).grid
    except msgspec.DecodeError:
        return ()


def _texts(
    recording: Recording, theirs: Bools, table: Hosts | Work, ours: Bools
) -> Iterator[tuple[int, bytes]]:
    """Rows of a table and the arguments that were kept of their slices.

    Args:
        recording: its slices.
        theirs: (slices,) which may be wanted.
        table: of the model.
        ours: (table,) the rows that are wanted.
    """
    raw, slices = recording.slices.raw_args, recording.slices
    if raw is None:
        return
    told = np.array([text is not None for text in raw], np.bool_)
    rows, mine = np.flatnonzero(theirs & told), np.flatnonzero(ours)
    number = {name: code for code, name in enumerate(table.name.texts)}
    coded = np.array([number.get(name, -1) for name in recording.strings], np.int64)
    given = (slices.lane[rows], slices.ts_ns[rows], slices.end_ns[rows], coded[slices.name[rows]])
    held = (table.lane[mine], table.ts_ns[mine], table.end_ns[mine], table.name.codes[mine])
    _, at, row = np.intersect1d(_joined(held), _joined(given), return_indices=True)
    for a, r in zip(mine[at].tolist(), rows[row].tolist(), strict=True):
        text = raw[r]
        if text is not None:
            yield a, text


def _joined(columns: tuple[NDArray[np.integer], ...]) -> NDArray[np.void]:
    """(n,) one key of several columns."""
    whole = np.stack([column.astype(np.int64) for column in columns], axis=1)
    return np.ascontiguousarray(whole).view([("", np.int64)] * len(columns)).ravel()
