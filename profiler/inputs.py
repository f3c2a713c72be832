"""What operators were called with: recorded inputs, joined to the rows of the model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.model import Hosts
from perfdiag.trace_schemas.recording import Int32s, Int64s, Kind, Recording

__all__ = ["recorded_inputs"]


def recorded_inputs(recording: Recording, hosts: Hosts) -> dict[int, bytes]:
    """Arguments of operators whose inputs were recorded, as JSON text, by row of `Hosts`.

    Slices are joined by lane, start, end and name: ids of the model are those of its session. Of
    operators that agree in all four the first has the inputs.
    """
    raw = recording.slices.raw_args
    if raw is None:
        return {}
    slices = recording.slices
    told = np.array([text is not None for text in raw], np.bool_)
    rows = np.flatnonzero((slices.kind == Kind.HOST_OP) & told)
    ours = np.flatnonzero(hosts.kind.where("host_op"))
    number = {name: code for code, name in enumerate(hosts.name.texts)}
    coded = np.array([number.get(name, -1) for name in recording.strings], np.int64)
    theirs = _joined(
        (slices.lane[rows], slices.ts_ns[rows], slices.end_ns[rows], coded[slices.name[rows]])
    )
    mine = _joined(
        (hosts.lane[ours], hosts.ts_ns[ours], hosts.end_ns[ours], hosts.name.codes[ours])
    )
    _, at, row = np.intersect1d(mine, theirs, return_indices=True)
    texts = ((int(ours[a]), raw[rows[r]]) for a, r in zip(at.tolist(), row.tolist(), strict=True))
    return {where: text for where, text in texts if text is not None}


def _joined(columns: tuple[Int32s | Int64s, ...]) -> NDArray[Any]:
    """(n,) one key of several columns."""
    whole = np.stack([column.astype(np.int64) for column in columns], axis=1)
    return np.ascontiguousarray(whole).view([("", np.int64)] * len(columns)).ravel()
