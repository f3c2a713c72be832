"""gpu-idle 0.1.0: one cause by the busy share, the loader, the mean kernel and copies.

Published: `analyzer.py` of the distribution, `measure` and `analyze`. Kernels, collectives among
them, count in full where they start in the window; busy is their union. From 80 % busy on nothing
is found. Else causes are collected and the most confident leads: `dataloader` where annotations of
PyTorch's loader take 20 % of the window, `smallbatch` where kernels are 25 us long or less in the
mean and the loader does not explain half of the idle time, `h2d_copy` where copies of any
direction take 10 %; `unattributed` where there is none of them.

Its thresholds are calibrated on four traces of one network. It knows no collective: a device that
waits in one is busy, hence healthy.

Our mapping: nothing found is compute-bound, which is what the tool says of a busy device and all
that it can say; `dataloader` and `smallbatch` are host-bound; `h2d_copy` is memory-bound, as copies
are in this project; `unattributed` is unknown. The tool looks at whole traces and at their loader
as a whole; here the window stands for the trace.
"""

import re
from typing import NamedTuple

import numpy as np

from baselines.rule import Baseline
from baselines.seen import LOADER, host_spans, time_of
from baselines.spans import Cover, Windows, rows_from
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s
from perfdiag.trace_schemas.report import Label

__all__ = ["CAUSES", "GPU_IDLE", "Measured", "leading_cause"]

HEALTHY, LOADER_SHARE, SMALL_US, EXPLAINED, COPIES = 0.8, 0.2, 25.0, 0.5, 0.1

CAUSES: dict[str, Label] = {
    "": "compute-bound",
    "dataloader": "host-bound",
    "smallbatch": "host-bound",
    "h2d_copy": "memory-bound",
    "unattributed": "unknown",
}
"""Our label for each of the tool's causes; '' where it finds none."""


class Measured(NamedTuple):
    """Shares of the window, and the mean length of a kernel in us."""

    busy: float
    loader: float
    kernel_us: float
    copies: float


def leading_cause(found: Measured) -> str:
    """The cause that the tool lists first; '' where it finds none."""
    if found.busy >= HEALTHY:
        return ""
    sure = {}
    if found.loader >= LOADER_SHARE:
        sure["dataloader"] = min(1.0, found.loader)
    unexplained = found.loader < EXPLAINED * (1 - found.busy)
    if found.kernel_us <= SMALL_US and unexplained:
        sure["smallbatch"] = min(1.0, SMALL_US / max(found.kernel_us, 1.0))
    if found.copies >= COPIES:
        sure["h2d_copy"] = min(1.0, found.copies / 0.5)
    return max(sure, key=lambda cause: sure[cause]) if sure else "unattributed"


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    work = facts.model.work
    kernel, copy = work.kind.where("kernel", "collective"), work.kind.where("copy")
    kernels = work.ts_ns[kernel], work.end_ns[kernel]
    copies = work.ts_ns[copy], work.end_ns[copy]
    loader = host_spans(facts, re.compile(f".*{re.escape(LOADER)}"), *_ANY)
    parts = [rows_from(spans[0], windows) for spans in (kernels, copies, loader)]
    lengths = (windows[1] - windows[0]).tolist()
    labels: list[Label] = []
    for ran, copied, loaded, length in zip(*parts, lengths, strict=True):
        own = kernels[0][ran], kernels[1][ran]
        mean_us = time_of(own) / max(len(own[0]), 1) / 1000
        spent = [_total(own), time_of(_rows(loader, loaded)), time_of(_rows(copies, copied))]
        busy, waited, moved = (ns / max(length, 1) for ns in spent)
        labels.append(CAUSES[leading_cause(Measured(busy, waited, mean_us, moved))])
    return labels


_ANY = ("host_op", "annotation", "python")


def _rows(spans: tuple[Int64s, Int64s], rows: slice) -> tuple[Int64s, Int64s]:
    return spans[0][rows], spans[1][rows]


def _total(spans: tuple[Int64s, Int64s]) -> int:
    """Length of the union."""
    return int(np.asarray(Cover.of(spans).before_ns)[-1])


GPU_IDLE = Baseline("gpu-idle", "gpu-idle 0.1.0, analyzer.py", _judge)
