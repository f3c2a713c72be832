"""The clocks of a job's ranks, aligned by the ends of the collectives in which they meet.

A collective ends on all of its ranks at about the same moment. The median of how far a rank's ends
lie from those of the others is the offset of its clock; what is left says how far it can be
believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["Clocks", "align"]


@dataclass(frozen=True, slots=True)
class Clocks:
    """How to bring times of ranks onto one clock: add `shift_ns`.

    Attributes:
        shift_ns: (ranks,) to be added to times of each rank.
        offset_ns: (ranks,) how far the recorded clock of each was off; 0 where none was recorded.
        known: whether all ranks recorded what time it was.
        residual_ns: (3,) median, 90th and 99th percentile of what ends differ after alignment.
        meetings: on how many it rests.
    """

    shift_ns: Int64s
    offset_ns: Int64s
    known: bool
    residual_ns: Int64s
    meetings: int


def align(ranks: Sequence[RankFacts], met: Meetings) -> Clocks:
    """Align the clocks of ranks.

    Args:
        ranks: of one job.
        met: where they meet; transfers between two ranks do not count, whose ends may differ.
    """
    origins = [facts.clock_unix_ns for facts in ranks]
    known = all(origin is not None for origin in origins)
    base = np.array([(origin or 0) if known else 0 for origin in origins], np.int64)
    base -= base.min(initial=int(base[0])) if len(base) else 0
    counted = ~met.pairwise[met.meeting] if len(met.meeting) else np.zeros(0, bool)
    ends = met.end_ns + base[met.rank]
    offset = np.zeros(len(ranks), np.int64)
    for _ in range(2):  # the middle of a meeting moves when the clocks of its ranks do
        off = _from_middle(ends - offset[met.rank], met, counted)
        for rank in range(len(ranks)):
            mine = counted & (met.rank == rank)
            offset[rank] += int(np.median(off[mine])) if mine.any() else 0
    left = np.abs(_from_middle(ends - offset[met.rank], met, counted)[counted])
    residual = np.percentile(left, (50, 90, 99)) if len(left) else np.zeros(3)
    meetings = len(np.unique(met.meeting[counted]))
    shown = offset if known else np.zeros_like(offset)
    return Clocks(base - offset, shown, known, residual.astype(np.int64), meetings)


def _from_middle(ends_ns: Int64s, met: Meetings, counted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n,) how far each arrival's end lies behind the median one of its meeting."""
    behind = np.zeros(len(ends_ns))
    order = np.lexsort((ends_ns, met.meeting))
    first = np.searchsorted(met.meeting, np.arange(len(met.pairwise)))
    size = np.diff(np.append(first, len(ends_ns)))
    low, high = first + (size - 1) // 2, first + size // 2
    middle = (ends_ns[order[low]] + ends_ns[order[high]]) / 2 if len(first) else np.empty(0)
    behind[counted] = (ends_ns - middle[met.meeting])[counted] if len(first) else 0
    return behind
