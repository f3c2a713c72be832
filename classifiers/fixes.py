"""stub."""

from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas import report


def rank_fixes(ranks: list[RankFacts]) -> list[report.Fix]:
    return []
