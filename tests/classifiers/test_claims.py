"""Claims on the time budget."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_builder import ELEMENTWISE, GEMM, KinetoBuilder

from perfdiag.classifiers.claims import Pieces, claim
from perfdiag.trace_schemas.report import LEAVES

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def intervals(*pairs: tuple[int, int]) -> tuple[Any, Any]:
    bounds = np.array(pairs, np.int64).reshape(-1, 2)
    return bounds[:, 0], bounds[:, 1]


@pytest.fixture
def facts(examine: Any) -> Any:
    """Three steps of 206 us: launch, 100 us bound by arithmetic, 100 us by memory."""
    b = KinetoBuilder()
    for _ in range(3):
        with b.step():
            b.launch(GEMM, 100)
            b.launch(ELEMENTWISE, 100)
            b.sync()
    return examine(b).facts


def test_where_claims_overlap_the_earlier_one_keeps_the_time() -> None:
    """Intervals come in any order and leave disjoint ones, each with its own share."""
    one = claim(intervals((30, 60), (0, 40), (5, 20)), ["copy"], low=0, high=[0.3, 0.1, 0.2])
    assert one.start_ns.tolist() == [0, 40]
    assert one.end_ns.tolist() == [40, 60]
    assert one.high.tolist() == [0.1, 0.3]
    assert one.mid.tolist() == [0.05, 0.15]


def test_shares_stay_between_nothing_and_all() -> None:
    """A share outside 0 to 1 is none."""
    one = claim(intervals((0, 9)), ["copy"], low=-3, high=7)
    assert (one.low.tolist(), one.high.tolist()) == ([0], [1])


@given(INTERVALS)
def test_a_claim_covers_what_its_intervals_cover(pairs: list[tuple[int, int]]) -> None:
    """Nothing is counted twice, and nothing is lost."""
    one = claim(intervals(*pairs), ["copy"], low=0, high=1)
    covered = {t for start, end in pairs for t in range(start, end)}
    claimed = [
        t
        for start, end in zip(one.start_ns.tolist(), one.end_ns.tolist(), strict=True)
        for t in range(start, end)
    ]
    assert sorted(claimed) == sorted(covered)


def test_a_claim_on_everything_takes_the_budget(facts: Any) -> None:
    """Leaf by leaf a claim on all of the time takes what the budget holds."""
    whole = (facts.model.steps.ts_ns, facts.model.steps.end_ns)
    budget = facts.timeline.budget(*facts.span_ns)
    for leaf in LEAVES:
        one = claim(whole, [leaf], low=0, high=1)
        pieces = Pieces.of(facts, [one], NOTHING)
        take = pieces.take([one])
        assert pieces.saved(take.high, take.taken).sum() == budget.get(leaf, 0)


NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64))


def test_only_the_named_leaves_are_taken(facts: Any) -> None:
    """From 50 us on either side of the end of the first kernel only memory time is taken."""
    middle = int(facts.model.work.end_ns[0])
    one = claim(intervals((middle - 50_000, middle + 50_000)), ["memory_kernel"], low=0, high=0.5)
    pieces = Pieces.of(facts, [one], NOTHING)
    take = pieces.take([one])
    assert pieces.saved(take.high, take.taken).tolist() == [25_000, 0, 0]


def test_one_finding_takes_a_piece_once(facts: Any) -> None:
    """Two claims of a finding on the same time count as the first of them."""
    whole = (facts.model.steps.ts_ns, facts.model.steps.end_ns)
    both = [claim(whole, ["memory_kernel"], low=0, high=high) for high in (0.25, 1.0)]
    pieces = Pieces.of(facts, both, NOTHING)
    take = pieces.take(both)
    assert pieces.saved(take.high, take.taken).tolist() == [25_000, 25_000, 25_000]


def test_steps_without_a_verdict_are_not_claimed(facts: Any) -> None:
    """Nothing is taken from a step that is not trusted."""
    facts.trusted[1] = False
    whole = (facts.model.steps.ts_ns, facts.model.steps.end_ns)
    one = claim(whole, ["memory_kernel"], low=0, high=1)
    pieces = Pieces.of(facts, [one], NOTHING)
    take = pieces.take([one])
    assert pieces.saved(take.high, take.taken).tolist() == [100_000, 0, 100_000]
