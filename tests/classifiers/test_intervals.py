"""Unions and gaps, against what counting every nanosecond says."""

import numpy as np
import pytest

from perfdiag.classifiers.intervals import covered, gaps, instants, merge
from perfdiag.trace_schemas.recording import Int64s

Spans = list[tuple[int, int]]


def random_spans(seed: int) -> Spans:
    """Intervals between 0 and 60: overlapping, touching, equal and empty ones."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, 50, int(rng.integers(0, 20)))
    return [
        (int(s), int(s + n)) for s, n in zip(starts, rng.integers(0, 9, len(starts)), strict=True)
    ]


def columns(spans: Spans) -> tuple[Int64s, Int64s]:
    start, end = np.array(spans, np.int64).reshape(-1, 2).T
    return start, end


def moments(starts: Int64s, ends: Int64s) -> set[int]:
    return {t for s, e in zip(starts.tolist(), ends.tolist(), strict=True) for t in range(s, e)}


@pytest.mark.parametrize("seed", range(60))
def test_a_union_holds_the_moments_of_its_parts(seed: int) -> None:
    """In disjoint intervals, in order, with time between them."""
    spans = columns(random_spans(seed))
    starts, ends = merge(*spans)
    assert moments(starts, ends) == moments(*spans)
    assert (ends > starts).all()
    assert (starts[1:] > ends[:-1]).all()


@pytest.mark.parametrize("seed", range(60))
def test_gaps_are_the_rest_of_the_range(seed: int) -> None:
    """Every moment of the range is in the union or in a gap, and in one of them."""
    union = merge(*columns(random_spans(seed)))
    for begin, until in ((0, 60), (10, 30), (25, 26), (40, 40)):
        starts, ends = gaps(*union, begin, until)
        free = moments(starts, ends)
        assert free == set(range(begin, until)) - moments(*union)
        assert int((ends - starts).sum()) == len(free)


@pytest.mark.parametrize("seed", range(60))
def test_an_interval_covers_its_start_and_not_its_end(seed: int) -> None:
    """Asked for every moment, before, inside and after."""
    union = merge(*columns(random_spans(seed)))
    times = np.arange(-5, 70)
    inside = moments(*union)
    assert covered(*union, times).tolist() == [t in inside for t in times.tolist()]


@pytest.mark.parametrize("seed", range(20))
def test_instants_are_all_times_once_and_in_order(seed: int) -> None:
    """Of any number of columns, empty ones among them."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 40, n) for n in (0, 7, 30)]
    assert instants(*parts).tolist() == sorted({t for part in parts for t in part.tolist()})
    assert instants(parts[0]).tolist() == []


def test_times_need_not_be_small() -> None:
    """Nanoseconds since 1970 stay exact."""
    base = 1_751_328_000_000_000_000
    starts, ends = merge(np.array([base, base + 1]), np.array([base + 1, base + 3]))
    assert (starts.tolist(), ends.tolist()) == ([base], [base + 3])
