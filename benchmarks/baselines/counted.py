"""Means of counters over windows."""

import numpy as np

from baselines.spans import Windows
from perfdiag.classifiers.facts import RankFacts

__all__ = ["figure_means"]


def figure_means(facts: RankFacts, metric: str, windows: Windows) -> list[float]:
    """Mean of a counter in each window, over the time for which there are samples; nan for none."""
    counters = facts.counters
    if counters is None or metric not in counters.tracks:
        return [np.nan] * len(windows[0])
    figures = [
        counters.figure(metric, (windows[0][i : i + 1], windows[1][i : i + 1]))
        for i in range(len(windows[0]))
    ]
    return [np.nan if figure is None else figure.mean for figure in figures]
