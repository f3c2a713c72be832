"""What compilers leave in a trace while they run."""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._shared import ranges
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import classify_range

__all__ = ["compiling"]


def compiling(facts: RankFacts) -> NDArray[np.bool_]:
    """(hosts,) the ranges and frames of compilers on threads that launch work."""
    return ranges(facts, lambda name: classify_range(name) == "compile")
