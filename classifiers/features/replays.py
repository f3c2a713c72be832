"""Features of the replayed job: what a region is worth with a class of resources twice as fast."""

import numpy as np

from perfdiag.classifiers.features.feature import described
from perfdiag.classifiers.features.spans import Floats, ratio
from perfdiag.classifiers.features.view import View
from perfdiag.classifiers.replayed_windows import ReplayedWindows
from perfdiag.trace_schemas.recording import ABSENT, Int64s
from perfdiag.trace_schemas.report import LABELS

__all__ = ["FEATURES", "columns"]

_SAVED = {f"saved_{label.removesuffix('-bound')}": label for label in LABELS[:-1]}

FEATURES = described(
    "replay",
    *(
        (
            name,
            "ratio",
            f"Of the window, what is saved if what makes a job {label} is twice as fast",
        )
        for name, label in _SAVED.items()
    ),
    ("replay_error", "ratio", "Of the window, what the replay of the unchanged job is off"),
)


def columns(view: View, rows: Int64s, replayed: ReplayedWindows | None) -> dict[str, Floats]:
    """(n,) values by name of feature; without a replay that is believed there are none.

    What is lost instead counts as saved below 0, the whole window at most.

    Args:
        view: the rank.
        rows: (n,) of steps in `Steps`, of phases in `Regions`.
        replayed: its windows.
    """
    if replayed is None:
        return {}
    base, faster = _base(view, rows, replayed)
    found = {
        name: np.clip(ratio(base - after, base), -1.0, 1.0)
        for name, after in zip(_SAVED, faster, strict=True)
    }
    window = view.spans.length_ns
    return found | {"replay_error": ratio(np.abs(base - window), window)}


def _base(view: View, rows: Int64s, replayed: ReplayedWindows) -> tuple[Floats, Floats]:
    """(n,) windows unchanged, and (scenarios, n) of each class of resources."""
    at = np.full(int(replayed.phase_row.max(initial=0)) + 1, ABSENT, np.int64)
    at[replayed.phase_row] = np.arange(len(replayed.phase_row))
    steps, phases = rows[view.is_step], at[rows[~view.is_step]]
    base = np.concatenate((replayed.base_ns[steps], replayed.phase_base_ns[phases]))
    faster = np.concatenate(
        (replayed.faster_ns[:, steps], replayed.phase_faster_ns[:, phases]), axis=1
    )
    return base.astype(np.float64), faster.astype(np.float64)
