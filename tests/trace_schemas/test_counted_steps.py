"""Which steps totals are of."""

from hand_report import MS, rank
from msgspec import structs

from perfdiag.trace_schemas.counted_steps import counted_steps
from perfdiag.trace_schemas.report import Rank


def with_lost(*lost: int) -> Rank:
    """Four steps, of which some have lost their records and are not in the totals."""
    whole = rank(0)
    steps = [
        structs.replace(step, coverage=0.2 if i in lost else 1.0)
        for i, step in enumerate(whole.steps)
    ]
    window = sum(step.totals_ns.window for i, step in enumerate(steps) if i not in lost)
    totals = structs.replace(whole.totals_ns, window=window)
    return structs.replace(whole, steps=steps, totals_ns=totals)


def test_steps_without_a_verdict_are_not_counted() -> None:
    """Totals leave them out."""
    assert [step.ordinal for step in counted_steps(with_lost(1, 3))] == [0, 2]


def test_all_are_counted_where_none_has_a_verdict() -> None:
    """Totals are of all then."""
    lost = with_lost(0, 1, 2, 3)
    window = sum(step.totals_ns.window for step in lost.steps)
    totals = structs.replace(lost.totals_ns, window=window)
    assert len(counted_steps(structs.replace(lost, totals_ns=totals))) == 4


def test_totals_decide() -> None:
    """Where they add up all steps, all are counted, whatever is covered."""
    late = rank(2)
    assert min(step.coverage for step in late.steps) < 0.9
    assert len(counted_steps(late)) == 4
    assert sum(step.totals_ns.window for step in late.steps) == late.totals_ns.window > 320 * MS
