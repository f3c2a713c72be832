"""Which slices a verdict needs: what is left out is quick to name and slow to load."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from perfdiag.profiler.links import launch_rows
from perfdiag.profiler.nesting import nest
from perfdiag.trace_schemas.apis import classify_api
from perfdiag.trace_schemas.host_ranges import classify_range, step_marker
from perfdiag.trace_schemas.recording import ABSENT, DEVICE_WORK, Int64s, Kind, Recording

__all__ = ["needed_for_verdict"]

Mask = NDArray[np.bool_]

TELLING = ("input", "compile", "gc", "checkpoint", "logging", "profiler_overhead")
"""Activities that Python frames may show where nothing else does."""


def needed_for_verdict(recording: Recording) -> Mask:
    """(n,) which slices a verdict rests on.

    Left out are frames that tell nothing, runtime calls that neither start, await, capture nor
    allocate anything, and operators inside others that make none of the calls that remain: the
    budget only asks whether an operator was open, and diagnoses which one made a call.
    """
    kind = recording.slices.kind
    calls = _calls(recording)
    frames = (kind == Kind.PYTHON) & _by_name(recording, kind == Kind.PYTHON, _tells)
    always = np.isin(kind, (*DEVICE_WORK, Kind.ANNOTATION, Kind.OVERHEAD))
    return np.asarray(always | calls | frames | _operators(recording, calls), np.bool_)


def _calls(recording: Recording) -> Mask:
    slices = recording.slices
    runtime = slices.kind == Kind.RUNTIME
    launch = launch_rows(slices)
    launches = np.zeros(len(slices), bool)
    launches[launch[launch != ABSENT]] = True
    telling = _by_name(recording, runtime, _matters)
    return np.asarray(launches | (runtime & telling), np.bool_)


def _operators(recording: Recording, calls: Mask) -> Mask:
    """Outermost operators, those that directly make a call, and those with a telling name.

    Where inputs are recorded, also all with inputs around a call: one of them prices its kernels.

    One that outlasts its parent, since slices cross on its lane, counts as outermost.
    """
    slices = recording.slices
    operators = slices.kind == Kind.HOST_OP
    rows = np.flatnonzero(operators | calls)
    parent = nest(slices.ts_ns[rows], slices.dur_ns[rows], slices.lane[rows]).parent
    end = slices.end_ns[rows]
    outermost = (parent == ABSENT) | (end > end[parent])
    kept = np.zeros(len(slices), bool)
    kept[rows[outermost & operators[rows]]] = True
    makes = parent[(parent != ABSENT) & calls[rows]]
    kept[rows[makes]] = True
    if slices.raw_args is not None:
        around = rows[_around(parent, makes)].tolist()
        kept[[row for row in around if slices.raw_args[row] is not None]] = True
    return np.asarray((kept | _by_name(recording, operators, _marks)) & operators, np.bool_)


def _around(parent: Int64s, within: Int64s) -> Int64s:
    """What encloses some slices, by (n,) the parent of each; themselves included."""
    found = np.zeros(len(parent), bool)
    above = np.unique(within)
    while len(above):
        found[above] = True
        above = np.unique(parent[above])
        above = above[above != ABSENT]
        above = above[~found[above]]
    return np.flatnonzero(found)


def _matters(name: str) -> bool:
    return classify_api(name) != "other" or "Capture" in name


def _tells(name: str) -> bool:
    return classify_range(name) in TELLING


def _marks(name: str) -> bool:
    return bool(classify_range(name)) or step_marker(name) is not None


def _by_name(recording: Recording, rows: Mask, wanted: Callable[[str], bool]) -> Mask:
    """(n,) whether the name of each of some slices is wanted; asked once for each name."""
    names = recording.slices.name
    chosen = np.zeros(len(recording.strings) + 1, bool)
    used = np.unique(names[rows])
    chosen[used] = [wanted(recording.strings[n]) for n in used.tolist()]
    return np.asarray(chosen[names], np.bool_)
