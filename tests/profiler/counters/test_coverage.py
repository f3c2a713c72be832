"""For which time samples speak."""

from itertools import pairwise
from typing import Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perfdiag.profiler.counters import Timeline, spans
from perfdiag.trace_schemas.recording import Counter


def timeline(
    times: list[int], period_ns: int, semantics: Literal["gauge", "backward"] = "gauge"
) -> Timeline:
    ts_ns = np.array(times, np.int64)
    counter = Counter("x", "", 1.0, semantics, 0, ts_ns, np.zeros(len(times)))
    return Timeline(counter, "", {}, "x", False, period_ns)


def pairs(of: Timeline) -> list[tuple[int, int]]:
    start, end = spans(of)
    return list(zip(start.tolist(), end.tolist(), strict=True))


def test_a_state_holds_until_the_next_sample() -> None:
    """And for a period after the last one."""
    assert pairs(timeline([0, 10, 20], 10)) == [(0, 10), (10, 20), (20, 30)]


def test_a_state_does_not_hold_over_a_gap() -> None:
    """It is known for a period and a half at most."""
    assert pairs(timeline([0, 10, 90], 10)) == [(0, 10), (10, 25), (90, 100)]


def test_a_mean_speaks_for_the_time_before() -> None:
    """From the sample before on, and not over a gap."""
    found = pairs(timeline([10, 20, 90], 10, "backward"))
    assert found == [(0, 10), (10, 20), (75, 90)]


def test_one_sample_covers_nothing() -> None:
    """Without a second one nothing tells for how long it holds."""
    assert pairs(timeline([7], 0)) == [(7, 7)]
    assert pairs(timeline([], 0)) == []


@given(
    st.lists(st.integers(0, 10**6), max_size=20, unique=True).map(sorted),
    st.integers(0, 10**5),
    st.sampled_from(["gauge", "backward"]),
)
def test_spans_never_overlap(
    times: list[int], period_ns: int, semantics: Literal["gauge", "backward"]
) -> None:
    """No moment has two values."""
    found = pairs(timeline(times, period_ns, semantics))
    assert all(start <= end for start, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))
