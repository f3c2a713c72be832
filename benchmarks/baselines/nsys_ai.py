"""nsys-ai 0.3.0: the class of the "critical path", which is the busiest device's timeline.

Published: `nsys_ai/skills/builtins/critical_path.py` and `overlap.py` of the distribution. Of the
device whose kernels are longest in sum, kernels that lie in the window as a whole are taken;
communication is what has "nccl" in its name in any case of letters. Three buckets share the
window: compute with what it overlaps, exposed communication, and the rest of the window, which is
called the host's. A class is given where it holds half of the path, leads by 0.15 and the path is
a millisecond long; else the tool says "mixed".

Copies are no kernels there, so that their time is the host's; communication that is not NCCL's by
name is compute; kernels that reach beyond the window are the host's too.

Our mapping: gpu-compute-bound is compute-bound (the rule cannot tell arithmetic from memory: its
roofline wants the FLOPs of the model from the user), comm-bound is collective-bound, cpu-bound is
host-bound; mixed and n/a are unknown.
"""

import re

import numpy as np
from numpy.typing import NDArray

from baselines.rule import Baseline
from baselines.seen import named
from baselines.spans import Cover, Windows, rows_from
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Work
from perfdiag.trace_schemas.report import Label

__all__ = ["NSYS_AI"]

SHARE, MARGIN, LEAST_MS = 0.5, 0.15, 1.0

_NCCL = re.compile(".*nccl", re.IGNORECASE)
_CLASSES: tuple[Label, ...] = ("compute-bound", "collective-bound", "host-bound")


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    work = facts.model.work
    kernel = work.kind.where("kernel", "collective")
    rows = np.flatnonzero(kernel & (work.device == _spine(work, kernel)))
    starts, ends, nccl = work.ts_ns[rows], work.end_ns[rows], named(work, _NCCL)[rows]
    labels: list[Label] = []
    for part, begin, until in zip(rows_from(starts, windows), *windows, strict=True):
        whole = ends[part] <= until
        spans = starts[part][whole], ends[part][whole]
        labels.append(_class(spans, nccl[part][whole], int(until - begin)))
    return labels


def _spine(work: Work, kernel: NDArray[np.bool_]) -> int:
    """The device with the longest sum of kernels, the first of equal ones; -1 without any."""
    devices = np.unique(work.device[kernel])
    length = np.where(kernel, work.end_ns - work.ts_ns, 0)
    busy = [int(length[work.device == device].sum()) for device in devices.tolist()]
    return int(devices[int(np.argmax(busy))]) if busy else -1


def _class(
    spans: tuple[NDArray[np.int64], NDArray[np.int64]], nccl: NDArray[np.bool_], window_ns: int
) -> Label:
    if not len(nccl):
        return "unknown"
    busy = int(Cover.of(spans).before_ns[-1])
    compute = int(Cover.of((spans[0][~nccl], spans[1][~nccl])).before_ns[-1])
    parts_ms = [round(ns / 1e6, 2) for ns in (compute, busy - compute, window_ns - busy)]
    path_ms = sum(parts_ms)
    if path_ms < LEAST_MS:
        return "unknown"
    top, second = sorted((part / path_ms for part in parts_ms), reverse=True)[:2]
    if top < SHARE or round(top - second, 4) < MARGIN:
        return "unknown"
    return _CLASSES[int(np.argmax(parts_ms))]


NSYS_AI = Baseline("nsys-ai", "nsys-ai 0.3.0, skills/builtins/critical_path.py", _judge)
