"""Slow links: told by the groups of a rank, all of which must be slow."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from kineto_builder import COMM_STREAM, COMPUTE_STREAM, GEMM, KinetoBuilder
from plain_groups import grouped_facts_of

from perfdiag.classifiers.links import SlowLinks, find_links
from perfdiag.classifiers.rendezvous import Meetings
from perfdiag.classifiers.waits import split_timelines

Members = tuple[int, ...]

ROWS = [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
COLUMNS = [(0, 3, 6), (1, 4, 7), (2, 5, 8)]
PAIRS = list(pairwise(range(6)))


def links(
    durations_us: Mapping[Any, float],
    *,
    pairs: bool = False,
    hidden: bool = False,
    sizes: Mapping[Any, int] | None = None,
) -> SlowLinks:
    """Of a job in which each group meets once, for so long, after 100 us of compute.

    Args:
        durations_us: of the transfer, by the members of the group.
        pairs: whether they are transfers from one rank to another.
        hidden: compute goes on meanwhile.
        sizes: elements that are moved, where it is not a million.
    """
    count = 1 + max(max(members) for members in durations_us)
    builders = [KinetoBuilder(rank, count) for rank in range(count)]
    for b in builders:
        with b.step():
            b.launch(GEMM, 100)
            for members, duration in durations_us.items():
                if b.rank in members:
                    b.collective("allreduce", (sizes or {}).get(members, 1_000_000), duration)
                    if hidden:
                        b.launch(GEMM, duration)
            b.wait_event(COMPUTE_STREAM, on=COMM_STREAM)
            b.sync()
    ranks = [grouped_facts_of(b) for b in builders]
    taken = [iter(facts.model.collectives.work.tolist()) for facts in ranks]
    rows = [(i, r, next(taken[r])) for i, who in enumerate(durations_us) for r in who]
    meeting, rank, work = np.array(rows, np.int64).T
    spans = [(ranks[r].model.work.ts_ns[w], ranks[r].model.work.end_ns[w]) for _, r, w in rows]
    start, end = np.array(spans, np.int64).T
    flags = np.full(len(durations_us), pairs), np.ones(len(durations_us), bool)
    group = np.zeros(len(durations_us), np.int64)
    met = Meetings(meeting, rank, work, start, end, flags[0], group, flags[1], 0)
    return find_links(split_timelines(ranks, met), met)


def mesh(slow: Mapping[Any, float], column_us: float = 30) -> dict[Members, float]:
    return {**dict.fromkeys(ROWS, 30.0), **dict.fromkeys(COLUMNS, column_us), **slow}


def test_the_rank_all_of_whose_groups_are_slow_is_named() -> None:
    """Rank 4 is in the middle row and the middle column: 60 us in each, twice as long as others."""
    found = links(mesh({(3, 4, 5): 90, (1, 4, 7): 90}))
    assert found.rank == 4
    assert found.neighbours == (1, 3, 5, 7)
    assert found.excess_ns[4] == pytest.approx(120_000)
    assert found.least_ns.tolist() == pytest.approx([0, 0, 0, 0, 60_000, 0, 0, 0, 0])
    assert found.times[4] == pytest.approx(3.0)


def test_a_slow_row_is_no_slow_link() -> None:
    """What all of its ranks share, a switch or the size of its work, tells none of them apart."""
    found = links(mesh({(3, 4, 5): 150}))
    assert found.rank is None
    assert found.excess_ns[4] == pytest.approx(120_000)
    assert not found.least_ns.any()


def test_where_most_rows_are_slow_none_is() -> None:
    """Two of three rows: what is usual is unknown, and a little more than another is not slow."""
    slow = {(0, 1, 2): 90.0, (3, 4, 5): 80.0, (1, 4, 7): 90.0}
    assert links(mesh(slow)).rank is None


def test_two_slow_links_accuse_nobody() -> None:
    """Ranks 0 and 5 of sixteen: ranks 1 and 4 are in a slow row and a slow column as well."""
    rows = [tuple(range(r, r + 4)) for r in range(0, 16, 4)]
    columns = [tuple(range(c, 16, 4)) for c in range(4)]
    slow = dict.fromkeys((*rows[:2], *columns[:2]), 90.0)
    found = links(dict.fromkeys((*rows, *columns), 30.0) | slow)
    assert found.rank is None
    assert np.flatnonzero(found.least_ns).tolist() == [0, 1, 4, 5]


def test_columns_through_a_network_are_compared_with_columns() -> None:
    """That they are slower than rows within hosts is nobody's fault, and hides no slow link."""
    assert links(mesh({}, column_us=120)).rank is None
    assert links(mesh({(3, 4, 5): 90, (1, 4, 7): 200}, column_us=120)).rank == 4


def test_what_compute_hides_costs_nothing() -> None:
    """A slow link under kernels is not the culprit."""
    found = links(mesh({(3, 4, 5): 90, (1, 4, 7): 90}), hidden=True)
    assert found.rank is None
    assert found.excess_ns[4] < 5_000


def test_other_sizes_are_no_peers() -> None:
    """Groups that move more take longer."""
    slow = {(3, 4, 5): 90.0, (1, 4, 7): 90.0}
    found = links(mesh(slow), sizes=dict.fromkeys(slow, 3_000_000))
    assert found.rank is None
    assert not found.excess_ns.any()


def test_a_single_group_tells_nobody() -> None:
    """In collectives of all ranks a slow link is felt by all."""
    found = links({tuple(range(9)): 500.0})
    assert found.rank is None
    assert not found.times.any()


def test_a_stage_whose_neighbours_both_get_little_has_the_slow_link() -> None:
    """Transfers between pairs: stage 2 is in both slow ones."""
    usual = dict.fromkeys(PAIRS, 30.0)
    found = links(usual | {(1, 2): 90, (2, 3): 90}, pairs=True)
    assert found.rank == 2
    assert found.neighbours == (1, 3)


@pytest.mark.parametrize("slow", [{(1, 2): 150.0}, {(0, 1): 150.0}, {(0, 1): 90, (3, 4): 90}])
def test_a_slow_pair_may_be_either_of_the_two(slow: dict[Members, float]) -> None:
    """A cable has two ends: none is named."""
    assert links(dict.fromkeys(PAIRS, 30.0) | slow, pairs=True).rank is None


def test_a_chain_of_which_most_pairs_are_slow_accuses_nobody() -> None:
    """The last two stages share a host: that their link is fast makes the others' not slow."""
    assert links({(0, 1): 90.0, (1, 2): 90.0, (2, 3): 30.0}, pairs=True).rank is None
