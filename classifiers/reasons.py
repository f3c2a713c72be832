"""Why the classifier says what it says of a step and its phases: the features that moved it."""

from collections.abc import Sequence

import msgspec
import numpy as np

from perfdiag.classifiers.analysis import Options
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.features import FEATURES, FeatureTable
from perfdiag.classifiers.features_of import features_of_job, read_job
from perfdiag.classifiers.labels import CLASSES
from perfdiag.classifiers.learned import Learned, learned
from perfdiag.classifiers.opinions import like_training
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.report import Label

__all__ = ["Reason", "RegionReasons", "explain_step"]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A feature, its value (None where the trace does not tell), and what it adds to the score.

    Scores are logarithms of odds: 0.7 more makes a class twice as likely beside the others.
    """

    feature: str
    unit: str
    meaning: str
    value: float | None
    adds: float


class RegionReasons(msgspec.Struct, frozen=True, kw_only=True):
    """A step or phase: the classifier's probabilities, and its reasons, the weightiest first.

    `asked`: whether the report asks the classifier about it; if not, the rules decide.
    """

    rank: int | None
    kind: str
    step: int
    name: str
    asked: bool
    label: Label
    probabilities: dict[str, float]
    reasons: list[Reason]


def explain_step(paths: Sequence[str], options: Options, step: int) -> list[RegionReasons]:
    """Ask the classifier about one step and its phases, on every rank.

    Args:
        paths: traces of one job.
        options: how they are read.
        step: its ordinal, as the report has it.

    Raises:
        InputError: an input cannot be read.
        UsageError: there is no such step, or no classifier.
    """
    model = learned()
    if model is None:
        msg = "this checkout holds no classifier yet: make model"
        raise UsageError(msg)
    job = read_job(paths, options)
    tables = features_of_job(job)
    known = sorted({int(one) for _, table in tables for one in table.step})
    if step not in known:
        listed = f"{known[0]} to {known[-1]}" if known else "none"
        msg = f"--step: there is no step {step}; the steps of the trace are {listed}"
        raise UsageError(msg)
    return [
        _region(model, facts, table, row)
        for facts, (_, table) in zip(job.ranks, tables, strict=True)
        for row in np.flatnonzero(table.step == step).tolist()
    ]


def _region(model: Learned, facts: RankFacts, table: FeatureTable, row: int) -> RegionReasons:
    step = int(np.searchsorted(facts.model.steps.ordinal, table.step[row]))
    values = table.values[row : row + 1]
    shares = model.forest.probabilities(values)[0]
    best = int(shares.argmax())
    adds = model.forest.contributions(values, best)[0]
    order = np.argsort(-np.abs(adds), kind="stable")
    return RegionReasons(
        rank=facts.rank,
        kind=table.kind[row],
        step=int(table.step[row]),
        name=table.name[row],
        asked=bool(like_training(facts)[step] and facts.trusted[step]),
        label=CLASSES[best],
        probabilities=dict(zip(map(str, CLASSES), shares.tolist(), strict=True)),
        reasons=[
            _reason(i, float(values[0, i]), float(adds[i])) for i in order.tolist() if adds[i]
        ],
    )


def _reason(column: int, value: float, adds: float) -> Reason:
    feature = FEATURES[column]
    return Reason(
        feature=feature.name,
        unit=feature.unit,
        meaning=feature.meaning,
        value=None if np.isnan(value) else value,
        adds=adds,
    )
