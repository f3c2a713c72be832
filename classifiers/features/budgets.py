"""Features of the time budget: shares of a region's window."""

import numpy as np

from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Floats, ratio
from perfdiag.classifiers.features.view import View
from perfdiag.classifiers.intervals import cut
from perfdiag.trace_schemas.report import LEAVES

__all__ = ["FEATURES", "columns"]

_BITS = {"compute": 1, "collective": 2, "copy": 4}
"""Of `Timeline.active`."""

_COMMON = _BITS["compute"] | _BITS["collective"]

FEATURES = described(
    "budget",
    *((f"leaf_{leaf}", "share", f"Of the window, in the leaf `{leaf}`") for leaf in LEAVES),
    ("busy", "share", "Of the window, in which the device does anything"),
    ("compute", "share", "Of the window, in which kernels run that are no collectives"),
    ("collective", "share", "Of the window, in which collectives run"),
    ("copy", "share", "Of the window, in which copies and fills run"),
    ("exposed_collective", "share", "Of the window, in which collectives run and no kernel does"),
    ("overlap", "share", "Of the time of collectives, in which kernels run too"),
    ("longest_idle", "share", "Of the window, the longest time in which the device is idle"),
)


def columns(view: View) -> dict[str, Floats]:
    """(n,) values by name of feature."""
    window = view.spans.length_ns
    found = {
        f"leaf_{leaf}": ratio(ns, window) for leaf, ns in zip(LEAVES, view.leaf_ns.T, strict=True)
    }
    bits = np.arange(view.active_ns.shape[1])
    on = {name: view.active_ns[:, (bits & bit) > 0].sum(axis=1) for name, bit in _BITS.items()}
    exposed = view.active_ns[:, (bits & _COMMON) == _BITS["collective"]].sum(axis=1)
    found |= {name: ratio(ns, window) for name, ns in on.items()}
    found["busy"] = ratio(view.active_ns[:, 1:].sum(axis=1), window)
    found["exposed_collective"] = ratio(exposed, window)
    found["overlap"] = ratio(on["collective"] - exposed, on["collective"])
    found["longest_idle"] = ratio(_longest_idle(view), window)
    return found


def _longest_idle(view: View) -> Floats:
    """(n,) how long the longest gap is, as far as it lies in each region."""
    spans, parts = view.spans, []
    for level in (slice(None, spans.steps), slice(spans.steps, None)):
        windows = (spans.start_ns[level], spans.end_ns[level])
        longest = np.zeros(len(windows[0]))
        found = cut(view.facts.idle_gaps, windows)
        np.maximum.at(longest, found.window, found.end_ns - found.start_ns)
        parts.append(longest)
    return np.concatenate(parts)
