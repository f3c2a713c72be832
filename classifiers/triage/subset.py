"""The part of a report that one team needs, a valid report itself."""

from collections.abc import Collection
from typing import Any

import msgspec

from perfdiag.trace_schemas.report import Rank, Report
from perfdiag.trace_schemas.texts import shortened_within

__all__ = ["subset"]


def subset(report: Report, fixes: Collection[str]) -> Report:
    """The report with some fixes, and without the regions of its steps.

    Everything that figures are shares or means of stays: totals of the job are those of all ranks
    and steps. Regions are most of a report, and lie in the slice; those of one step alone would be
    taken for those of all.

    Args:
        report: of the whole job.
        fixes: ids of the fixes that stay, with their findings.
    """
    part = msgspec.structs.replace(
        report,
        ranks=[_without_regions(rank) for rank in report.ranks],
        fixes=[fix for fix in report.fixes if fix.id in fixes],
        findings=[finding for finding in report.findings if finding.id in fixes],
    )
    plain: Any = msgspec.to_builtins(part)
    return msgspec.convert(shortened_within(plain), Report)


def _without_regions(rank: Rank) -> Rank:
    steps = [msgspec.structs.replace(step, regions=[]) for step in rank.steps]
    return msgspec.structs.replace(rank, steps=steps)
