"""Counters over parts of the time: weights, deciles, coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiag.classifiers.counters import RankCounters, Track, Windows, summary, weighted_quantiles


def track(starts: list[int], ends: list[int], values: list[float], metric: str = "power") -> Track:
    spans = (np.array(starts, np.int64), np.array(ends, np.int64))
    return Track(metric, "W", "gpu.csv", 10, *spans, np.array(values, np.float64))


def windows(*bounds: tuple[int, int]) -> Windows:
    starts, ends = zip(*bounds, strict=True)
    return np.array(starts, np.int64), np.array(ends, np.int64)


def test_samples_weigh_by_the_time_that_they_stand_for() -> None:
    """100 W for 30 ns and 200 W for 10 ns are 125 W."""
    figure = summary(track([0, 30], [30, 60], [100, 200]), windows((0, 40)))
    assert figure is not None
    assert figure.mean == 125
    assert figure.coverage == 1
    assert figure.samples == 2


def test_only_what_lies_in_the_windows_counts() -> None:
    """A sample that spans two windows counts in both, and not between them."""
    figure = summary(track([0, 50], [50, 100], [100, 200]), windows((0, 10), (40, 50), (90, 100)))
    assert figure is not None
    assert figure.mean == pytest.approx(400 / 3)


def test_a_gap_is_no_zero() -> None:
    """Half of the time without a sample halves the coverage, not the mean."""
    figure = summary(track([0], [50], [100]), windows((0, 100)))
    assert figure is not None
    assert (figure.mean, figure.coverage) == (100, 0.5)


def test_without_a_sample_there_is_no_figure() -> None:
    """Before, after, and where the counter was not sampled at all."""
    counters = RankCounters({"power": track([0], [50], [100])})
    assert counters.figure("power", windows((50, 60))) is None
    assert counters.figure("sm_clock", windows((0, 60))) is None


def test_one_counter_at_the_samples_of_another() -> None:
    """Where no sample stands for that moment there is none."""
    heat = track([0, 20], [10, 30], [60, 61], "temperature")
    clock = track([0, 10, 20, 30], [10, 20, 30, 40], [1, 2, 3, 4], "sm_clock")
    found = RankCounters({"temperature": heat}).at("temperature", clock)
    assert found is not None
    assert found.tolist() == pytest.approx([60, np.nan, 61, np.nan], nan_ok=True)


samples = st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 50)), min_size=1, max_size=30)


@given(samples)
def test_whole_weights_are_repeated_samples(values: list[tuple[float, int]]) -> None:
    """A sample that stands for n nanoseconds is one of n that stand for one each."""
    numbers, weights = (np.array(column, np.float64) for column in zip(*values, strict=True))
    each = np.repeat(numbers, weights.astype(int))
    found = weighted_quantiles(numbers, weights, (0.1, 0.9))
    expected = np.quantile(each, (0.1, 0.9), method="inverted_cdf")
    assert found == pytest.approx(expected.tolist())


@given(samples, st.integers(0, 1500), st.integers(1, 500))
def test_figures_lie_within_the_samples(
    values: list[tuple[float, int]], start: int, length: int
) -> None:
    """Mean and deciles are between the least and the largest sample, coverage between 0 and 1."""
    numbers, lengths = zip(*values, strict=True)
    ends = np.cumsum(lengths)
    figure = summary(
        track((ends - lengths).tolist(), ends.tolist(), list(numbers)),
        windows((start, start + length)),
    )
    if figure is None:
        assert start >= ends[-1]
        return
    slack = 1e-9 * max(numbers)
    assert min(numbers) - slack <= figure.mean <= max(numbers) + slack
    assert min(numbers) <= figure.p10 <= figure.p90 <= max(numbers)
    assert 0 < figure.coverage <= 1
