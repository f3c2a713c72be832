"""Features of what runs on the device, by name and under the roofs of the device."""

import re
from functools import partial

import numpy as np

from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Floats, Running, ratio
from perfdiag.classifiers.features.view import View
from perfdiag.classifiers.roofline import Bound
from perfdiag.trace_schemas.kernels import FAMILIES

__all__ = ["FEATURES", "columns"]

FEATURES = (
    *described(
        "kernels",
        ("named_compute", "share", "Of the time of kernels, in families bound by arithmetic"),
        ("named_memory", "share", "Of the time of kernels, in families bound by memory traffic"),
        (
            "named_neither",
            "share",
            "Of the time of kernels, in families that may be bound by either",
        ),
        ("concurrency", "ratio", "Time of kernels over the time in which any kernel runs"),
        ("copy_to_device", "share", "Of the window, copies from the host to the device, added up"),
        ("copy_to_host", "share", "Of the window, copies from the device to the host, added up"),
    ),
    *described(
        "roofline",
        ("roof_compute", "share", "Of the time of kernels, in those under the roof of arithmetic"),
        ("roof_memory", "share", "Of the time of kernels, in those under the roof of memory"),
        ("roof_underfilled", "share", "Of the time of kernels, in those far below both roofs"),
        ("roof_above", "share", "Of the time of kernels, in those that would be above a roof"),
        ("roof_unknown", "share", "Of the time of kernels, in those without a cost"),
        (
            "compute_reached",
            "share",
            "Of the arithmetic of the device, what kernels with a cost reach",
        ),
        ("memory_reached", "share", "Of its memory traffic, what kernels with a cost reach"),
        ("intensity", "log2", "FLOPs a byte of kernels with a cost, over those of the ridge point"),
    ),
)

_BOUNDS = {
    "roof_compute": Bound.COMPUTE,
    "roof_memory": Bound.MEMORY,
    "roof_underfilled": Bound.UNDERFILLED,
    "roof_above": Bound.IMPOSSIBLE,
    "roof_unknown": Bound.UNKNOWN,
}

_WAYS = {
    "copy_to_device": re.compile(r"HtoD|H2D|HostToDevice", re.IGNORECASE),
    "copy_to_host": re.compile(r"DtoH|D2H|DeviceToHost", re.IGNORECASE),
}

MOST = 10.0
"""Doublings on either side of the ridge point, beyond which it makes no difference."""


def columns(view: View) -> dict[str, Floats]:
    """(n,) values by name of feature; without costs there are none of the roofline."""
    return _named(view) | _copies(view) | _roofs(view)


def _named(view: View) -> dict[str, Floats]:
    work, rows = view.facts.model.work, view.kernels
    bound = work.family.map(lambda name: FAMILIES.get(name, ""), object)[rows]
    compute = ratio(view.running.time(bound == "compute"), view.kernel_ns)
    memory = ratio(view.running.time(bound == "memory"), view.kernel_ns)
    return {
        "named_compute": compute,
        "named_memory": memory,
        "named_neither": np.maximum(0.0, 1.0 - compute - memory),
        "concurrency": ratio(view.kernel_ns, view.active_ns[:, 1::2].sum(axis=1)),
    }


def _copies(view: View) -> dict[str, Floats]:
    facts, window = view.facts, view.spans.length_ns
    work = facts.model.work
    rows = np.flatnonzero(facts.here & work.kind.where("copy"))
    running = Running(work.ts_ns[rows], work.end_ns[rows], view.spans)
    found = {}
    for name, way in _WAYS.items():
        goes = work.name.map(partial(_matches, way), np.bool_)[rows]
        found[name] = np.minimum(1.0, ratio(running.time(goes), window))
    return found


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


def _roofs(view: View) -> dict[str, Floats]:
    roofline, costs, rows = view.facts.roofline, view.facts.costs, view.kernels
    if roofline is None or costs is None:
        return {}
    bound = roofline.bound[rows]
    found = {
        name: ratio(view.running.time(bound == code), view.kernel_ns)
        for name, code in _BOUNDS.items()
    }
    fair = costs.known[rows] & (bound != Bound.IMPOSSIBLE)
    fair_ns = view.running.time(fair)
    compute = np.maximum(0.0, view.running.time(roofline.compute_share[rows] * fair))
    memory = np.maximum(0.0, view.running.time(roofline.memory_share[rows] * fair))
    found["compute_reached"] = np.minimum(1.0, ratio(compute, fair_ns))
    found["memory_reached"] = np.minimum(1.0, ratio(memory, fair_ns))
    with np.errstate(divide="ignore"):
        doublings = np.log2(ratio(compute, memory))
    found["intensity"] = np.clip(doublings, -MOST, MOST)
    return found
