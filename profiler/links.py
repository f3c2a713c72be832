"""Which launch started which device work: by correlation id, never by time."""

import numpy as np

from perfdiag.trace_schemas.recording import ABSENT, DEVICE_WORK, Int64s, Kind, Slices

__all__ = ["launch_rows"]


def launch_rows(slices: Slices) -> Int64s:
    """(n,) row of the runtime call that launched each device slice, or `ABSENT`.

    One call may launch many kernels (a graph). Where several calls share an id, a driver call
    inside a runtime call, the first one counts.
    """
    launch = np.full(len(slices), ABSENT, np.int64)
    known = slices.correlation != ABSENT
    calls = np.flatnonzero((slices.kind == Kind.RUNTIME) & known)
    work = np.flatnonzero(np.isin(slices.kind, DEVICE_WORK) & known)
    if len(calls) and len(work):
        calls = calls[np.lexsort((slices.ts_ns[calls], slices.correlation[calls]))]
        ids = slices.correlation[calls]
        at = np.searchsorted(ids, slices.correlation[work])
        at[at == len(ids)] = 0
        found = ids[at] == slices.correlation[work]
        launch[work[found]] = calls[at[found]]
    return launch
