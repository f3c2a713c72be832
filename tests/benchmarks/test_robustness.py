"""What the table of damaged traces calls a failure."""

import pytest
from robustness import Answer, judge

from perfdiag.profiler.simulator.corruptions import CORRUPTIONS

WHOLE = Answer("compute-bound", None, frozenset(), frozenset(), reason=True)


def damaged(label: str, *kinds: str, culprit: int | None = None, reason: bool = True) -> Answer:
    """An answer on a damaged trace, all of whose notices warn."""
    return Answer(label, culprit, frozenset(kinds), frozenset(kinds), reason)


@pytest.mark.parametrize(
    ("damage", "answer", "verdict"),
    [
        ("durations_hour", damaged("compute-bound", "duration.impossible"), "stands (dur"),
        ("durations_hour", damaged("compute-bound"), "STANDS without a notice"),
        ("durations_hour", damaged("unknown", "duration.impossible"), "WITHHELD, but could"),
        ("durations_hour", damaged("memory-bound", "duration.impossible"), "WRONG: memory"),
        ("durations_hour", damaged("compute-bound", culprit=1), "WRONG: compute"),
        ("lost_device", damaged("unknown", "device.missing"), "withheld (device.missing)"),
        ("lost_device", damaged("compute-bound", "device.missing"), "STANDS on what is not"),
        ("renamed_collectives", damaged("unknown"), "withheld (its sentence)"),
        ("renamed_collectives", damaged("unknown", reason=False), "WITHHELD for no reason"),
        ("lost_host", damaged("unknown", "host.missing"), "withheld (host.missing)"),
        ("lost_host", damaged("compute-bound", "host.missing"), "stands (host.missing)"),
    ],
)
def test_verdicts_are_judged(damage: str, answer: Answer, verdict: str) -> None:
    """A verdict may stand or be withheld as it should, with what must be said; all else fails."""
    assert judge(CORRUPTIONS[damage], WHOLE, answer).startswith(verdict)
