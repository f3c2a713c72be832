"""Features of where a region lies, and of what its trace can show at all."""

import numpy as np

from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Floats, ratio
from perfdiag.classifiers.features.view import View
from perfdiag.trace_schemas.recording import ABSENT
from perfdiag.trace_schemas.report import LABELS, LEAF_LABEL

__all__ = ["FEATURES", "PHASES", "columns"]

PHASES = ("data", "forward", "backward", "optimizer", "other")

_SIDES = {label.removesuffix("-bound"): label for label in LABELS[:-1]} | {"no_class": None}
"""What the leaves of a step speak for."""

FEATURES = described(
    "context",
    ("is_step", "0 or 1", "Whether it is a step; else it is a phase"),
    *((f"is_{name}", "0 or 1", f"Whether it is the phase `{name}`") for name in PHASES),
    ("of_step", "share", "Of the window of its step; 1 for steps"),
    *(
        (f"step_{side}", "share", f"Of its step, in leaves that speak for {label or 'no class'}")
        for side, label in _SIDES.items()
    ),
    ("of_usual_step", "ratio", "The window of its step over the median of all steps"),
    ("steps", "log2", "Steps in the trace"),
    ("world_size", "log2", "Ranks of the job"),
    ("has_peers", "0 or 1", "Whether collectives could be matched with those of other ranks"),
    ("has_costs", "0 or 1", "Whether the cost of any kernel is known"),
    ("has_counters", "0 or 1", "Whether counters were sampled beside the trace"),
    ("linked", "share", "Of the device work, what has its launch in the trace"),
)


def columns(view: View) -> dict[str, Floats]:
    """(n,) values by name of feature."""
    facts = view.facts
    steps = facts.model.steps
    window = (steps.end_ns - steps.ts_ns).astype(np.float64)
    own = window[view.step]
    found = {
        "is_step": view.is_step,
        **{f"is_{name}": view.names == name for name in PHASES},
        "of_step": ratio(view.spans.length_ns, own),
        "of_usual_step": ratio(own, np.median(window)),
        "steps": np.log2(len(window)),
        "world_size": np.log2(facts.world_size) if facts.world_size else np.nan,
        "has_peers": facts.transfer_ns is not None,
        "has_costs": facts.roofline is not None,
        "has_counters": facts.counters is not None,
        "linked": _linked(view),
    } | _of_step(view)
    count = len(view.step)
    return {name: np.broadcast_to(np.asarray(v, np.float64), count) for name, v in found.items()}


def _of_step(view: View) -> dict[str, Floats]:
    """(n,) for phases what their step consists of; steps say it themselves."""
    of_row = np.full(len(view.facts.model.steps.ts_ns), ABSENT, np.int64)
    of_row[view.step[view.is_step]] = np.flatnonzero(view.is_step)
    row = of_row[view.step]
    shares = ratio(view.leaf_ns, view.spans.length_ns[:, None])[row]
    shares[view.is_step] = np.nan
    sides = {side: [label == one for one in LEAF_LABEL.values()] for side, label in _SIDES.items()}
    return {f"step_{side}": shares[:, mine].sum(axis=1) for side, mine in sides.items()}


def _linked(view: View) -> Floats:
    work, here = view.facts.model.work, view.facts.here
    starts = view.spans.place(work.ts_ns[here])
    return ratio(starts.sums(work.launch_id[here] != ABSENT), starts.sums())
