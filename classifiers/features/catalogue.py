"""All features, in the order of the table's columns."""

from perfdiag.classifiers.features import (
    budgets,
    collectives,
    context,
    counters,
    kernels,
    launches,
    replays,
)
from perfdiag.classifiers.features.feature import Feature

__all__ = ["FEATURES"]

FEATURES: tuple[Feature, ...] = (
    *budgets.FEATURES,
    *launches.FEATURES,
    *kernels.FEATURES,
    *collectives.FEATURES,
    *counters.FEATURES,
    *replays.FEATURES,
    *context.FEATURES,
)
"""They say what a trace shows, and neither the vendor nor the size of a device."""
