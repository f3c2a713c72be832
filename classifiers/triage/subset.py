"""The part of a report that one team needs, a valid report itself."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from perfdiag.trace_schemas.report import Rank, Report

__all__ = ["subset"]


def subset(
    report: Report, fixes: Collection[str], positions: Sequence[int], steps: Collection[int]
) -> Report:
    """The report with some fixes, and only the ranks and steps that are shown.

    The job, the clocks and thresholds stay: a fix is judged against them.

    Args:
        report: of the whole job.
        fixes: ids of the fixes that stay, with their findings.
        positions: of the ranks that stay.
        steps: ordinals of the steps that stay.
    """
    ranks = [_rank(report.ranks[i], steps) for i in positions]
    inputs = [report.inputs[i] for i in positions]
    paths, numbers = {one.path for one in inputs}, {one.rank for one in ranks}
    part = msgspec.structs.replace(
        report,
        inputs=inputs,
        ranks=ranks,
        fixes=[fix for fix in report.fixes if fix.id in fixes],
        findings=[finding for finding in report.findings if finding.id in fixes],
        notices=[one for one in report.notices if one.input is None or one.input in paths],
        collectives=[one for one in report.collectives if one.rank in numbers],
    )
    return msgspec.convert(_short(msgspec.to_builtins(part)), Report)


LONGEST = 4000
"""Characters of a text: a name may be a megabyte, and occur a hundred times."""


def _short(value: Any) -> Any:
    """The same with texts that somebody can read."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[: LONGEST // 2]}…{value[-LONGEST // 2 :]}"
    return value


def _rank(rank: Rank, steps: Collection[int]) -> Rank:
    kept = [step for step in rank.steps if step.ordinal in steps]
    return msgspec.structs.replace(rank, steps=kept)
