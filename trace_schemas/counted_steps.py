"""Which steps the totals and budgets of a report are of."""

from perfdiag.trace_schemas.report import Rank, Report, Step

__all__ = ["LEAST_COVERAGE", "counted_steps", "steps_counted"]

LEAST_COVERAGE = 0.9
"""Below this no verdict on idle time: a tenth of the launches without records may hide any
amount of work. Real traces that are whole have 1.0 (36 of 36 that we hold)."""


def counted_steps(rank: Rank) -> list[Step]:
    """The steps of a rank that its totals add up: those with a verdict, or all if none has one."""
    covered = [step for step in rank.steps if step.coverage >= LEAST_COVERAGE]
    window = sum(step.totals_ns.window for step in covered)
    return covered if covered and window == rank.totals_ns.window else [*rank.steps]


def steps_counted(report: Report) -> int:
    """How many of all ranks' steps the totals of the job add up."""
    return sum(len(counted_steps(rank)) for rank in report.ranks)
