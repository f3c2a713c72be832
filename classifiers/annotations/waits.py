"""Where a rank waits in collectives, and for whom."""

from collections.abc import Iterator

import numpy as np

from perfdiag.classifiers.annotations.budget import leaf_query
from perfdiag.classifiers.annotations.scene import Scene
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.profiler.annotations import SliceTrack, TrackSlice
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.texts import shortened

__all__ = ["wait_track"]

WAIT = "perfdiag.wait"


def wait_track(scene: Scene) -> SliceTrack | None:
    """From a rank's arrival in each collective until the last one's, where nothing hides it.

    None where no other rank's trace tells.
    """
    met = scene.job.met
    if met is None or scene.job.waits is None:
        return None
    return SliceTrack("waits", list(_waits(scene, met)))


def _waits(scene: Scene, met: Meetings) -> Iterator[TrackSlice]:
    mine, late = _arrivals(scene, met)
    start, length = met.start_ns[mine], (met.end_ns - met.start_ns)
    end = start + length[mine] - length[late]
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order]) if len(order) else end
    begin = np.maximum(start[order], np.concatenate((start[order][:1], reach[:-1])))
    exposed = scene.facts.timeline.time_in(["collective_wait"], (begin, end[order]))
    work = scene.facts.model.work
    names = work.name.take(met.work[mine][order])
    groups = work.group.take(met.work[mine][order])
    for i in np.flatnonzero(exposed > 0).tolist():
        bounds = int(begin[i]), int(end[order][i])
        yield _wait(
            scene, bounds, int(exposed[i]), int(met.rank[late[order[i]]]), (names[i], groups[i])
        )


def _arrivals(scene: Scene, met: Meetings) -> tuple[Int64s, Int64s]:
    """(k,) arrivals of this rank where another one came later, and (k,) those of the latest.

    Transfers between two ranks have no late one: which of them waits is a matter of schedule.
    """
    mine = np.flatnonzero(met.rank == scene.position)
    mine = mine[~met.pairwise[met.meeting[mine]]]
    length = met.end_ns - met.start_ns
    order = np.lexsort((length, met.meeting))
    late = order[met.first][met.meeting[mine]]
    waits = length[mine] > length[late]
    return mine[waits], late[waits]


def _wait(
    scene: Scene, bounds: tuple[int, int], exposed_ns: int, late: int, what: tuple[str, str]
) -> TrackSlice:
    number = scene.job.ranks[late].rank
    name = "?" if number is None else str(number)
    return TrackSlice(
        bounds[0],
        bounds[1] - bounds[0],
        f"waits for rank {name}",
        WAIT,
        f"rank {name}",
        {
            "late_rank": name,
            "exposed_ns": exposed_ns,
            "collective": shortened(what[0]),
            "group": shortened(what[1]),
            "sql": leaf_query(scene, bounds, "collective_wait"),
        },
    )
