"""Copies between host and device: which way they go, and whether they stop the host."""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.diagnoses._shared import Intervals
from perfdiag.classifiers.facts import RankFacts
from perfdiag.profiler.model import Model
from perfdiag.trace_schemas.host_ranges import classify_range

__all__ = ["MOVES", "across", "after_copies", "blocking", "fetches", "to_device"]

Bools = NDArray[np.bool_]

MOVES = ("aten::to", "aten::_to_copy", "aten::copy_")
"""Operators that users call to copy a tensor; `Tensor.cuda()` and `.cpu()` are `aten::to` too."""

_TO_DEVICE = re.compile(r"HtoD|H2D|Host-?to-?Device|HOST_TO_DEVICE|\(Pageable ->", re.IGNORECASE)
_TO_HOST = re.compile(r"DtoH|D2H|Device-?to-?Host|DEVICE_TO_HOST", re.IGNORECASE)
_ACROSS = re.compile(r"HtoD|DtoH|HostToDevice|DeviceToHost")  # as `perfdiag_blocking_copy` has it


def to_device(facts: RankFacts) -> Bools:
    """(work,) the copies from the host to the device of the budget."""
    return facts.here & _copies(facts.model, _TO_DEVICE)


def across(facts: RankFacts) -> Bools:
    """(work,) the copies between the host and the device of the budget, either way."""
    return facts.here & (_copies(facts.model, _TO_DEVICE) | _copies(facts.model, _TO_HOST))


def blocking(model: Model) -> Bools:
    """(work,) copies on all devices that stop the host: the rows of `perfdiag_blocking_copy`."""
    work, calls = model.work, model.calls
    pageable = work.name.map(lambda name: "Pageable" in name, np.bool_)
    waited = np.isin(work.launch_id, calls.id[calls.role.where("sync")]) & (work.launch_id >= 0)
    stops = work.kind.where("copy") & pageable | (_copies(model, _ACROSS) & waited)
    return np.asarray(stops, np.bool_)


def fetches(name: str) -> bool:
    """Whether what is copied to the device under this range is no input of the step."""
    return classify_range(name) in ("backward", "optimizer")


def after_copies(facts: RankFacts, rows: NDArray[np.integer] | Bools) -> Intervals:
    """The idle times that begin where one of some copies ends."""
    starts, ends = facts.idle_gaps
    after = np.isin(starts, facts.model.work.end_ns[rows])
    return starts[after], ends[after]


def _copies(model: Model, pattern: re.Pattern[str]) -> Bools:
    named = model.work.name.map(lambda name: bool(pattern.search(name)), np.bool_)
    return np.asarray(model.work.kind.where("copy") & named, np.bool_)
