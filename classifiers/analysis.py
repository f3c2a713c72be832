"""From inputs to the report: the whole way, rank by rank."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Literal

import numpy as np

from perfdiag.classifiers.budget import Timeline, build_timeline, busiest_device
from perfdiag.classifiers.collectives import collective_rows
from perfdiag.classifiers.coverage import Coverage
from perfdiag.classifiers.fixes import rank_fixes
from perfdiag.classifiers.labels import Verdict, add_budgets, judge, withheld
from perfdiag.profiler.engine import EngineName
from perfdiag.profiler.model import Model, read_model
from perfdiag.profiler.opening import ReadOptions, TimeUnit, open_model, read_blob
from perfdiag.profiler.sources.files import Blob, expand
from perfdiag.trace_schemas.errors import InputError
from perfdiag.trace_schemas.notices import Notice
from perfdiag.trace_schemas.recording import Recording
from perfdiag.trace_schemas import report as rows

__all__ = ["Options", "analyze"]

Progress = Callable[[str, float], None]
