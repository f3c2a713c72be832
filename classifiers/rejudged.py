"""Kernels judged again by hardware counters, which are believed before shapes and names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.budget import build_timeline
from perfdiag.classifiers.counter_regions import Judged
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Coded
from perfdiag.trace_schemas.recording import ABSENT, Int64s

__all__ = ["rejudge"]

_ROOFS = ("compute", "memory")
_NOBODY = -1


def rejudge(facts: RankFacts, parts: Sequence[Judged]) -> RankFacts:
    """The rank with its kernels under the roof that counters name, and the budget that follows.

    Where counters contradict a part's budget, all its kernels change sides: a mean over the part
    does not say which of them are the others. Where they agree, shapes and names keep the finer
    split, and kernels of which neither tells take the counters' word. Kernels that counters told
    of one by one stay as they are.

    Args:
        facts: of the rank.
        parts: what counters say, parts inside others behind them: the last one decides.
    """
    decided = _deciding(facts, parts)
    bound = facts.model.work.bound
    codes = np.where(bound.codes >= 0, bound.codes + len(_ROOFS), ABSENT).astype(np.int32)
    unknown = ~bound.where(*_ROOFS)
    for number, part in enumerate(parts):
        if part.roof in _ROOFS:
            changed = decided == number if part.against else (decided == number) & unknown
            codes[changed] = _ROOFS.index(part.roof)
    if not ((codes >= 0) & (codes < len(_ROOFS))).any():
        return facts
    work = replace(facts.model.work, bound=Coded(codes, [*_ROOFS, *bound.texts]))
    model = replace(facts.model, work=work)
    timeline = build_timeline(model, facts.states, facts.timeline.device, facts.trusted)
    return replace(facts, model=model, timeline=timeline)


def _deciding(facts: RankFacts, parts: Sequence[Judged]) -> NDArray[np.int64]:
    """(work,) the last part in which a kernel starts and of which counters can tell anything."""
    starts = facts.model.work.ts_ns
    found = np.full(len(starts), _NOBODY, np.int64)
    for number, part in enumerate(parts):
        if part.roof != "unknown":
            found[_inside(starts, *part.windows)] = number
    found[~facts.kernels] = _NOBODY
    if facts.counted is not None:
        found[facts.counted] = _NOBODY
    return found


def _inside(times_ns: Int64s, starts_ns: Int64s, ends_ns: Int64s) -> NDArray[np.bool_]:
    """Whether each time lies in one of some windows, disjoint and in order."""
    at = np.searchsorted(starts_ns, times_ns, "right") - 1
    return np.asarray((at >= 0) & (times_ns < ends_ns[np.maximum(at, 0)]), np.bool_)
