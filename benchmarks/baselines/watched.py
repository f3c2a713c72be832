"""The baselines asked about the regions that samples are made of."""

from collections.abc import Mapping

import numpy as np

from baselines import BASELINES
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import FeatureTable
from perfdiag.classifiers.training.samples import CLASSES
from perfdiag.trace_schemas.recording import Int64s

__all__ = ["watch_baselines"]


def watch_baselines(facts: RankFacts, table: FeatureTable) -> Mapping[str, Int64s]:
    """(regions,) class by each rule, as a position in `CLASSES`; -1 where it abstains."""
    starts, ends = table.start_ns.tolist(), (table.start_ns + table.dur_ns).tolist()
    windows = list(zip(starts, ends, strict=True))
    code = {label: position for position, label in enumerate(CLASSES)}
    return {
        name: np.array([code.get(label, -1) for label in rule.labels(facts, windows)], np.int64)
        for name, rule in BASELINES.items()
    }
