"""The scheduler: the same times as its definition, followed node by node, gives."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdiag.classifiers.graph import NEVER, Graph
from perfdiag.trace_schemas.recording import Int64s


@dataclass(frozen=True)
class Case:
    """A graph, and its nodes in an order in which each comes after all that it depends on."""

    graph: Graph
    order: list[int]


def row(values: list[int]) -> Int64s:
    return np.array(values, np.int64)


def graph_of(
    nodes: list[tuple[int, int, int, int]], edges: list[tuple[int, int, int, bool]]
) -> Graph:
    """From (lane, length, gap, release) of nodes and (source, target, lag, from start) of edges."""
    lane, length, gap, release = np.array(nodes, np.int64).reshape(-1, 4).T
    source, target, lag, from_start = np.array(edges, np.int64).reshape(-1, 4).T
    return Graph(lane, length, gap, release, source, target, lag, from_start.astype(np.bool_))


TIMES = st.integers(0, 50)
SHIFTS = st.integers(-20, 50)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """1 to 40 nodes on up to 5 lanes; edges lead on in the order in which nodes are drawn."""
    release = st.one_of(st.just(NEVER), st.integers(-10, 300))
    drawn = draw(
        st.lists(st.tuples(st.integers(0, 4), TIMES, SHIFTS, release), min_size=1, max_size=40)
    )
    count = len(drawn)
    ends = st.tuples(st.integers(0, max(0, count - 2)), st.integers(1, max(1, count - 1)))
    edge = st.tuples(ends.filter(lambda e: e[0] < e[1]), SHIFTS, st.booleans())
    edges = draw(st.lists(edge, max_size=60)) if count > 1 else []
    by_lane = sorted(range(count), key=lambda i: drawn[i][0])
    order = [by_lane.index(i) for i in range(count)]
    placed = [(order[a], order[b], lag, starts) for (a, b), lag, starts in edges]
    return Case(graph_of([drawn[i] for i in by_lane], placed), order)


def naive(case: Case, length: Int64s, lag: Int64s) -> tuple[list[int], list[int]]:
    """When nodes start and end: each when its lane is free and all that it depends on is done."""
    g = case.graph
    start, end = [0] * g.nodes, [0] * g.nodes
    for node in case.order:
        times = [int(g.release_ns[node])]
        if node and g.lane[node - 1] == g.lane[node]:
            times.append(end[node - 1] + int(g.gap_ns[node]))
        for e in np.flatnonzero(g.target == node).tolist():
            done = start if g.from_start[e] else end
            times.append(done[g.source[e]] + int(lag[e]))
        start[node] = max(times)
        end[node] = start[node] + int(length[node])
    return known(np.array(start)).tolist(), known(np.array(end)).tolist()


def known(times: Int64s) -> Int64s:
    """Times; all that nothing has released are before all others, how long before is no matter."""
    return np.where(times < NEVER // 2, NEVER, times)


def same(one: Int64s, other: Int64s) -> bool:
    return np.array_equal(known(one), known(other))


def scenarios(graph: Graph, seed: int, count: int = 3) -> tuple[Int64s, Int64s]:
    """Other lengths and lags."""
    chance = np.random.default_rng(seed)
    length = chance.integers(0, 80, (count, graph.nodes))
    return length, chance.integers(-20, 80, (count, len(graph.source)))


@settings(deadline=None)
@given(cases())
def test_times_are_those_of_the_definition(case: Case) -> None:
    """Lanes, gaps, releases and lags, also negative ones, from ends and from starts."""
    found = case.graph.replay()
    start, end = naive(case, case.graph.length_ns, case.graph.lag_ns)
    assert known(found.start_ns).tolist() == [start]
    assert known(found.end_ns).tolist() == [end]


@settings(deadline=None)
@given(cases(), st.integers(0, 1 << 32))
def test_other_lengths_and_lags_give_other_times(case: Case, seed: int) -> None:
    """Every scenario is timed as the definition says, whatever the others are."""
    length, lag = scenarios(case.graph, seed)
    found = case.graph.replay(length, lag)
    for number in range(len(length)):
        start, end = naive(case, length[number], lag[number])
        assert known(found.start_ns[number]).tolist() == start
        assert known(found.end_ns[number]).tolist() == end


@settings(deadline=None)
@given(cases(), st.integers(0, 1 << 32))
def test_scenarios_at_once_and_one_by_one(case: Case, seed: int) -> None:
    """Several in one call are what each is alone; lengths or lags may stay as they are."""
    length, lag = scenarios(case.graph, seed)
    graph = case.graph
    both, lengths, lags = graph.replay(length, lag), graph.replay(length), graph.replay(None, lag)
    for n in range(len(length)):
        one, by = slice(n, n + 1), (length[n : n + 1], lag[n : n + 1])
        assert same(both.end_ns[one], graph.replay(*by).end_ns)
        assert same(lengths.end_ns[one], graph.replay(by[0]).end_ns)
        assert same(lags.start_ns[one], graph.replay(None, by[1]).start_ns)


@settings(deadline=None)
@given(cases(), st.integers(0, 1 << 32))
def test_joined_nodes_end_when_they_did(case: Case, seed: int) -> None:
    """What is wanted of a graph is the same with neighbours joined, under any lengths and lags."""
    graph, (length, lag) = case.graph, scenarios(case.graph, seed)
    chance = np.random.default_rng(seed)
    starts, ends = (np.flatnonzero(chance.random(graph.nodes) < 0.3) for _ in range(2))
    small = graph.contracted(starts, ends)
    whole, found = graph.replay(length, lag), small.graph.replay(small.lengths(length), lag)
    assert same(found.start_ns[:, small.group[starts]], whole.start_ns[:, starts])
    assert same(found.end_ns[:, small.group[ends]], whole.end_ns[:, ends])
    unchanged = small.graph.replay().end_ns[:, small.group[ends]]
    assert same(unchanged, graph.replay().end_ns[:, ends])


def test_neighbours_that_nothing_tells_apart_are_joined() -> None:
    """Of a lane of six remain: up to the source, up to before the target, and from it on."""
    nodes = [(0, 10, 1, NEVER)] * 6 + [(1, 5, 0, NEVER)]
    graph = graph_of([(0, 10, 0, 0), *nodes[1:]], [(1, 6, 0, False), (6, 4, 0, False)])
    small = graph.contracted(row([]), row([5]))
    assert small.first.tolist() == [0, 2, 4, 6]
    assert small.graph.length_ns.tolist() == [21, 21, 21, 5]
    assert small.between_ns.tolist() == [1, 1, 1, 0]


def test_a_first_node_waits_for_no_lane() -> None:
    """Its gap counts from a node that is not there; another lane's last node is not it."""
    graph = graph_of([(0, 10, 0, 0), (3, 10, 7, 2), (3, 10, 7, NEVER)], [])
    assert graph.replay().start_ns.tolist() == [[0, 2, 19]]


def test_lags_keep_to_their_edges() -> None:
    """Edges are sorted by their targets, each with its lag; lags of scenarios are in that order."""
    nodes = [(lane, 10, 0, 0 if lane == 0 else NEVER) for lane in range(3)]
    graph = graph_of(nodes, [(0, 2, 5, False), (0, 1, 3, True)])
    assert graph.target.tolist() == [1, 2]
    assert graph.replay().start_ns.tolist() == [[0, 3, 15]]
    assert graph.replay(None, row([100, 200])[None]).start_ns.tolist() == [[0, 100, 210]]


CIRCLES = {
    "two lanes": [(0, 2, 0, False), (3, 1, 0, False)],
    "its own lane": [(1, 0, 0, False)],
    "itself": [(1, 1, 0, False)],
    "three lanes": [(1, 2, 0, False), (3, 4, 0, True), (5, 0, -90, False)],
}


@pytest.mark.parametrize("circle", CIRCLES)
def test_a_circle_is_refused(circle: str) -> None:
    """Nodes that wait for each other have no times, whatever their lags."""
    edges = CIRCLES[circle] + ([(2, 0, 0, False)] if circle == "two lanes" else [])
    graph = graph_of([(lane, 10, 0, 0) for lane in (0, 0, 1, 1, 2, 2)], edges)
    with pytest.raises(ValueError, match="in a circle"):
        graph.replay()


def test_a_graph_of_nothing() -> None:
    """It has no times, and nothing to be joined."""
    graph = graph_of([], [])
    assert graph.replay().end_ns.shape == (1, 0)
    small = graph.contracted(row([]), row([]))
    assert small.graph.nodes == 0
    assert small.lengths(np.empty((2, 0), np.int64)).shape == (2, 0)


def test_long_lanes_that_meet_often() -> None:
    """Thousands of nodes, of which lanes wait for each other by turns: more than one stretch."""
    chance, count, lanes = np.random.default_rng(1), 500, 6
    time = np.sort(chance.random((lanes, count)), axis=1).ravel()
    source, target = chance.integers(0, lanes * count, (2, 3000))
    swap = time[source] > time[target]
    source, target = np.where(swap, target, source), np.where(swap, source, target)
    apart = source != target
    source, target = source[apart], target[apart]
    graph = Graph(
        np.repeat(np.arange(lanes), count),
        chance.integers(0, 100, lanes * count),
        chance.integers(-5, 5, lanes * count),
        np.where(chance.random(lanes * count) < 0.1, chance.integers(0, 9999, lanes * count), 0),
        source,
        target,
        chance.integers(-50, 50, len(source)),
        chance.random(len(source)) < 0.5,
    )
    assert len(graph.stretches) > lanes
    case = Case(graph, np.argsort(time, kind="stable").tolist())
    assert graph.replay().end_ns[0].tolist() == naive(case, graph.length_ns, graph.lag_ns)[1]
