"""Nesting and tracks, against what comparing all pairs says."""

import numpy as np
import pytest

from perfdiag.profiler.nesting import assign_tracks, count_crossings, nest
from perfdiag.trace_schemas.recording import ABSENT, Int64s

Spans = list[tuple[int, int, int]]
"""Start, end and lane."""


def columns(spans: Spans) -> tuple[Int64s, Int64s, Int64s]:
    start, end, lane = np.array(spans, np.int64).reshape(-1, 3).T
    return start, end - start, lane


def random_spans(seed: int) -> Spans:
    """Few different times, so that many are equal, and many lengths of zero."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    start = rng.integers(0, 12, n)
    length = rng.integers(0, 6, n) * rng.integers(0, 2, n)
    lane = rng.integers(0, 3, n)
    return list(zip(start.tolist(), (start + length).tolist(), lane.tolist(), strict=True))


def nested_spans(seed: int) -> Spans:
    """Spans of two lanes that never cross."""
    rng = np.random.default_rng(seed)
    spans: Spans = []
    for start, end, lane in random_spans(seed):
        if not any(cross(a, (start, end, lane)) or cross((start, end, lane), a) for a in spans):
            spans.append((start, end, lane))
    return [spans[i] for i in rng.permutation(len(spans)).tolist()]


def cross(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Whether b starts inside a and outlasts it."""
    return a[2] == b[2] and a[0] < b[0] < a[1] < b[1]


def encloses(spans: Spans, a: int, b: int) -> bool:
    """Whether a is open when b begins, and not closed before b ends; of equals the first is."""
    (start, end, lane), (begin, until, other) = spans[a], spans[b]
    if a == b or lane != other or not (start <= begin < end and until <= end):
        return False
    return a < b if (start, end) == (begin, until) else True


def parent_of(spans: Spans, b: int) -> int:
    around = [a for a in range(len(spans)) if encloses(spans, a, b)]
    return max(around, key=lambda a: (spans[a][0], -spans[a][1], a), default=ABSENT)


@pytest.mark.parametrize("seed", range(60))
def test_the_parent_is_the_narrowest_slice_around(seed: int) -> None:
    """Where nothing crosses, nesting finds for every slice what a search of all pairs finds."""
    spans = nested_spans(seed)
    found = nest(*columns(spans))
    assert found.parent.tolist() == [parent_of(spans, b) for b in range(len(spans))]
    assert not found.crossing.any()


@pytest.mark.parametrize("seed", range(60))
def test_crossings_are_those_of_all_pairs(seed: int) -> None:
    """A slice counts once, however many it crosses; each lane with crossings is marked."""
    spans = random_spans(seed)
    late = [b for b in spans if any(cross(a, b) for a in spans)]
    assert count_crossings(*columns(spans)) == len(late)
    crossing = nest(*columns(spans)).crossing
    assert {spans[i][2] for i in np.flatnonzero(crossing)} == {b[2] for b in late}


@pytest.mark.parametrize("seed", range(60))
def test_slices_of_one_track_never_cross(seed: int) -> None:
    """Every slice is on a track of its lane, and no two of a track cross."""
    spans = random_spans(seed)
    tracks = assign_tracks(*columns(spans))
    assert [int(tracks.lane[t]) for t in tracks.track] == [lane for _, _, lane in spans]
    on = [(s, e, int(t)) for (s, e, _), t in zip(spans, tracks.track, strict=True)]
    assert not any(cross(a, b) for a in on for b in on)


@pytest.mark.parametrize("seed", range(60))
def test_a_slice_leaves_a_track_only_where_it_must(seed: int) -> None:
    """On each lower track of its lane there is a slice that it crosses."""
    spans = random_spans(seed)
    tracks = assign_tracks(*columns(spans))
    level = tracks.level[tracks.track].tolist()
    for i, span in enumerate(spans):
        for lower in range(level[i]):
            assert any(cross(a, span) for a, at in zip(spans, level, strict=True) if at == lower)


@pytest.mark.parametrize("seed", range(60))
def test_begins_and_ends_pair_up_in_order(seed: int) -> None:
    """Read in order, the end of a slice closes the one that was opened last on its track."""
    spans = random_spans(seed)
    n, tracks = len(spans), assign_tracks(*columns(spans))
    opened: dict[int, list[int]] = {}
    for entry in tracks.order.tolist():
        row, begins = entry % n, entry < n
        stack = opened.setdefault(int(tracks.track[row]), [])
        if begins:
            stack.append(row)
        else:
            assert stack.pop() == row
    assert not any(opened.values())
    assert sorted(tracks.order.tolist()) == list(range(2 * n))


@pytest.mark.parametrize("seed", range(20))
def test_times_never_go_back_on_a_track(seed: int) -> None:
    """The order of begins and ends is by track and then by time."""
    spans = random_spans(seed)
    n, tracks = len(spans), assign_tracks(*columns(spans))
    at = [(int(tracks.track[e % n]), spans[e % n][e >= n]) for e in tracks.order.tolist()]
    assert at == sorted(at)


def test_an_end_comes_before_a_begin_at_the_same_time() -> None:
    """Slices back to back are siblings, and one without length behind another is outside it."""
    found = nest(*columns([(0, 5, 0), (5, 9, 0), (5, 5, 0), (9, 9, 0)]))
    assert found.parent.tolist() == [ABSENT, ABSENT, 1, ABSENT]


def test_what_crosses_gets_a_track_of_its_own() -> None:
    """Of two that cross, the later one moves; a third that fits in neither takes a third track."""
    tracks = assign_tracks(*columns([(0, 10, 4), (5, 15, 4), (7, 17, 4), (20, 30, 4)]))
    assert tracks.track.tolist() == [0, 1, 2, 0]
    assert tracks.level.tolist() == [0, 1, 2]


def test_nothing_nests_in_nothing() -> None:
    """No slices are no error."""
    empty = columns([])
    assert len(nest(*empty).order) == len(assign_tracks(*empty).track) == 0
    assert count_crossings(*empty) == 0


def test_very_many_crossing_slices_take_little_time() -> None:
    """Twenty thousand slices that all cross each other are placed without trying every track."""
    n = 20_000
    ts_ns, dur_ns = np.arange(n) * 10, np.full(n, 20 * n)
    tracks = assign_tracks(ts_ns, dur_ns, np.zeros(n, np.int64))
    assert len(tracks.lane) == n
    assert not nest(ts_ns, dur_ns, tracks.track).crossing.any()


def test_levels_are_used_again_where_they_are_free() -> None:
    """A hundred slices that cross need a hundred tracks, and the next hundred no more."""
    ts_ns = np.concatenate((np.arange(100), 10_000 + np.arange(100)))
    tracks = assign_tracks(ts_ns, np.full(200, 1000), np.zeros(200, np.int64))
    assert len(tracks.lane) == 100
