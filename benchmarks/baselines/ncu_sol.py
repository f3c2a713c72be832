"""Nsight Compute: its rule on the two speeds of light, from counters of the device.

Published: `sections/SpeedOfLight.py`, rule SOLBottleneck, of its installation. Below 80 % of both
peaks: below 60 % of both there are latency issues; else the larger side is named if it is 10 points
ahead, and the two are balanced if not. From 80 % on the larger is at its roof.

The rule is for one kernel that runs alone. Here the counters of a window stand for it, by the share
of the window in which kernels run that are no collectives; the busiest pipe stands for the
multiprocessors. The rule knows nothing but kernels: neither idle time nor collectives.

Our mapping: compute is compute-bound, memory is memory-bound; balanced, latency and no counters
are unknown.
"""

import numpy as np
from numpy.typing import NDArray

from baselines.counted import figure_means
from baselines.rule import Baseline
from baselines.seen import device_spans
from baselines.spans import Cover, Windows
from perfdiag.classifiers.counted_figures import bound_by_throughput
from perfdiag.classifiers.counter_roofs import COMPUTE_METRICS
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.roofline import Bound
from perfdiag.trace_schemas.report import Label

__all__ = ["NCU_SOL"]

_LABELS: dict[int, Label] = {Bound.COMPUTE: "compute-bound", Bound.MEMORY: "memory-bound"}


def _judge(facts: RankFacts, windows: Windows) -> list[Label]:
    pipes = np.array([figure_means(facts, metric, windows) for metric in COMPUTE_METRICS])
    memory = np.array(figure_means(facts, "dram_active", windows))
    busiest: NDArray[np.float64] = np.fmax.reduce(pipes)  # nan only where no pipe was counted
    running = Cover.of(device_spans(facts.model.work, facts.kernels)).inside(windows)
    share = running / np.maximum(windows[1] - windows[0], 1)
    share[share == 0] = np.nan
    bounds = bound_by_throughput(np.minimum(busiest / share, 1), np.minimum(memory / share, 1))
    return [_LABELS.get(bound, "unknown") for bound in bounds.tolist()]


NCU_SOL = Baseline("Nsight Compute SOL", "Nsight Compute, sections/SpeedOfLight.py", _judge)
