"""Changes of a graph: each primitive on two lanes whose times can be added up by hand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdiag.classifiers.graph import NEVER, Graph
from perfdiag.classifiers.whatif import Change, advance, apply, cut, insert, overlap, remove, scale
from perfdiag.trace_schemas.recording import Int64s


def row(*values: int) -> Int64s:
    return np.array(values, np.int64)


LAUNCH, IDLE, KERNEL, SECOND, COPY = range(5)

GRAPH = Graph(
    lane=row(0, 0, 1, 1, 1),
    length_ns=row(10, 40, 100, 60, 30),
    gap_ns=row(0, 0, 0, 5, 0),
    release_ns=row(0, NEVER, NEVER, NEVER, NEVER),
    source=row(LAUNCH, IDLE),
    target=row(KERNEL, COPY),
    lag_ns=row(8, 150),
    from_start=np.array([False, False]),
)
"""A thread that launches at 10, and is done at 50. A stream: 18 to 118, 123 to 183, and what comes
150 after the thread is done, 200 to 230."""


def ends(*changes: Change) -> list[int]:
    """When the nodes end with changes made together."""
    length, lag = apply(GRAPH, changes)
    found: list[int] = GRAPH.replay(length[None], lag[None]).end_ns[0].tolist()
    return found


def test_without_changes_nothing_changes() -> None:
    """The times are those in the picture."""
    assert ends() == [10, 50, 118, 183, 230]


def test_scaled_nodes_take_a_share_of_their_time() -> None:
    """Twice as fast, and three times as slow: the copy then waits for the stream."""
    assert ends(scale(row(KERNEL), 0.5)) == [10, 50, 68, 133, 230]
    assert ends(scale(row(KERNEL, SECOND), [3.0, 0.5])) == [10, 50, 318, 353, 383]


def test_removed_nodes_take_none() -> None:
    """What follows starts as soon as the rest allows; the gap before it stays."""
    assert ends(remove(row(KERNEL, IDLE))) == [10, 10, 18, 83, 190]


def test_inserted_time_comes_on_top() -> None:
    """As much for all, or for each its own."""
    assert ends(insert(row(LAUNCH, KERNEL), 7)) == [17, 57, 132, 197, 237]
    assert ends(insert(row(LAUNCH, KERNEL), [1, 60])) == [11, 51, 179, 244, 274]


def test_overlapped_nodes_slow_what_hides_them() -> None:
    """Of 60 half are hidden: 30 are saved, or 20 where that slows the rest one and a half times."""
    assert ends(overlap(row(SECOND), 0.5, 1.0))[SECOND] == 183 - 30
    assert ends(overlap(row(SECOND), 0.5, 1.5))[SECOND] == 183 - 20
    assert ends(overlap(row(KERNEL, SECOND), [0.0, 1.0], 1.25))[SECOND] == 183 - 48


def test_advanced_edges_wait_less_long() -> None:
    """The copy starts earlier, up to where its stream is free."""
    assert ends(advance(row(1), 10))[COPY] == 220
    assert ends(advance(row(1), 40))[COPY] == 213
    assert ends(advance(row(0, 1), [3, 40])) == [10, 50, 115, 180, 210]


def test_two_changes_of_a_node_leave_the_product() -> None:
    """Half, and of that four fifths; what is inserted is not scaled, and adds up."""
    half, most = scale(row(KERNEL), 0.5), scale(row(KERNEL), 0.8)
    assert apply(GRAPH, [half, most])[0][KERNEL] == 40
    both = [insert(row(KERNEL), 5), half, insert(row(KERNEL), 6), most]
    assert apply(GRAPH, both)[0][KERNEL] == 51


def test_two_advances_of_an_edge_leave_the_larger() -> None:
    """It cannot be waited for twice."""
    lag = apply(GRAPH, [advance(row(1), 50), advance(row(1), 20)])[1]
    assert lag.tolist() == [8, 100]


def test_edges_that_are_cut_do_not_wait_at_all() -> None:
    """What came after the other lane starts as soon as its own is free."""
    assert ends(cut(row(1), 1.0)) == [10, 50, 118, 183, 213]
    assert ends(cut(row(1), 1.0), remove(row(SECOND))) == [10, 50, 118, 123, 153]


def test_a_cut_outdoes_an_advance_of_the_same_edge() -> None:
    """Whichever is made first: what does not wait cannot wait less long."""
    late, gone = advance(row(1), 5), cut(row(1), 1.0)
    assert ends(late, gone) == ends(gone, late) == ends(gone)


MANY = np.arange(1000)
MANY_EDGES = Graph(
    lane=np.append(0, np.arange(1, 1001)),
    length_ns=np.full(1001, 10),
    gap_ns=np.zeros(1001, np.int64),
    release_ns=np.append(0, np.full(1000, NEVER)),
    source=np.zeros(1000, np.int64),
    target=np.arange(1, 1001),
    lag_ns=np.full(1000, 7),
    from_start=np.zeros(1000, np.bool_),
)
"""A node for which each of a thousand lanes waits."""


def cut_of(*changes: Change) -> list[bool]:
    """Which of the many edges do not wait."""
    found: list[bool] = (apply(MANY_EDGES, changes)[1] != 7).tolist()
    return found


@pytest.mark.parametrize(("share", "part"), [(0.3, 1.0), (1.0, 0.3), (0.6, 0.5), (0.15, 2.0)])
def test_a_share_of_edges_is_cut_evenly(share: float, part: float) -> None:
    """Three in ten of them, also of any hundred, however that share comes about."""
    gone = np.array(cut_of(cut(MANY, share).part(part)))
    assert gone.sum() == pytest.approx(300, abs=2)
    assert gone.reshape(10, 100).sum(axis=1) == pytest.approx(30, abs=2)


def test_more_of_a_cut_cuts_the_same_edges_and_others() -> None:
    """None of nothing, all of everything and of more than that; none that less has cut waits."""
    shares = (0.0, 0.25, 0.5, 0.75, 1.0, 3.0)
    done = [np.array(cut_of(cut(MANY, 1.0).part(share))) for share in shares]
    assert [one.sum() for one in done] == pytest.approx([0, 250, 500, 750, 1000, 1000], abs=2)
    assert all((more >= less).all() for less, more in pairwise(done))


def test_edges_may_have_shares_of_their_own() -> None:
    """Of those with a share of nothing none is cut, of those with all of it all."""
    gone = cut_of(cut(MANY, np.repeat([0.0, 1.0], 500)))
    assert gone == [False] * 500 + [True] * 500


def test_a_cut_is_no_change_of_nodes() -> None:
    """They take as long as before."""
    assert apply(GRAPH, [cut(row(0, 1), 1.0)])[0].tolist() == GRAPH.length_ns.tolist()


EVERYTHING = [
    scale(row(KERNEL), 0.6),
    insert(row(IDLE), 20),
    overlap(row(SECOND), 0.5, 1.25),
    advance(row(1), 100),
]


@pytest.mark.parametrize(
    ("share", "lengths", "lags"),
    [
        (0.0, [10, 40, 100, 60, 30], [8, 150]),
        (0.25, [10, 45, 90, 54, 30], [8, 125]),
        (1.0, [10, 60, 60, 36, 30], [8, 50]),
        (2.0, [10, 80, 20, 12, 30], [8, -50]),
    ],
)
def test_a_part_of_a_change(share: float, lengths: list[int], lags: list[int]) -> None:
    """Nothing, a quarter, the whole, and twice as much of all kinds."""
    length, lag = apply(GRAPH, [change.part(share) for change in EVERYTHING])
    assert (length.tolist(), lag.tolist()) == (lengths, lags)


@pytest.mark.parametrize("share", [1.0, 1.5, 3.0, 100.0])
def test_more_than_all_is_all(share: float) -> None:
    """A node that is gone cannot be shortened further."""
    gone = [remove(row(KERNEL)).part(share), scale(row(SECOND), 0.01).part(100 * share)]
    assert apply(GRAPH, gone)[0].tolist() == [10, 40, 0, 0, 30]


CHANGES = st.one_of(
    st.builds(scale, st.just(row(*range(5))), st.floats(0.0, 4.0)),
    st.builds(overlap, st.just(row(KERNEL, COPY)), st.floats(0.0, 1.0), st.floats(1.0, 3.0)),
    st.builds(insert, st.just(row(IDLE, SECOND)), st.floats(0.0, 100.0)),
    st.builds(advance, st.just(row(0, 1)), st.floats(0.0, 500.0)),
    st.builds(cut, st.just(row(0, 1)), st.floats(0.0, 1.0)),
)


@settings(deadline=None)
@given(st.lists(st.tuples(CHANGES, st.floats(0.0, 5.0)), max_size=6))
def test_no_node_takes_less_than_no_time(made: list[tuple[Change, float]]) -> None:
    """Whatever is changed together, and in whatever part: no node ends before it starts."""
    length, lag = apply(GRAPH, [change.part(share) for change, share in made])
    assert (length >= 0).all()
    times = GRAPH.replay(length[None], lag[None])
    assert (times.end_ns >= times.start_ns).all()


def test_the_graph_itself_stays() -> None:
    """Changes make new lengths and lags."""
    before = GRAPH.length_ns.copy(), GRAPH.lag_ns.copy()
    apply(GRAPH, EVERYTHING)
    assert np.array_equal(before[0], GRAPH.length_ns)
    assert np.array_equal(before[1], GRAPH.lag_ns)
