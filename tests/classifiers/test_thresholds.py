"""Thresholds that a user sets decide, and the report says which they were."""

from pathlib import Path
from typing import Any

import pytest
from examples import loader_stall

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.thresholds import fingerprint, tuned_diagnoses
from perfdiag.trace_schemas.errors import UsageError


def test_nothing_set_changes_nothing() -> None:
    """Without overrides the diagnoses are as they were written, with the same hash."""
    assert tuned_diagnoses({}) == all_diagnoses()
    assert fingerprint(tuned_diagnoses({})) == fingerprint(all_diagnoses())


def test_a_value_is_replaced_and_says_so() -> None:
    """The source names the usual value too; others stay as they are."""
    tuned = {d.id: d for d, _ in tuned_diagnoses({"loader_stall": {"share": 0.5}})}
    usual = {d.id: d for d, _ in all_diagnoses()}
    mine, before = tuned.pop("loader_stall"), usual.pop("loader_stall")
    assert tuned == usual
    assert mine.limits == {**before.limits, "share": 0.5}
    source = mine.thresholds["share"].source
    assert source.startswith("set in the configuration; 0.01 without it: ")
    assert source.endswith(before.thresholds["share"].source)


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"loader": {"share": 1.0}}, "'loader', which is no diagnosis: did you mean loader_stall"),
        ({"loader_stall": {"shares": 1.0}}, "no threshold 'shares': did you mean share\\?"),
    ],
)
def test_unknown_names_are_wrong_usage(overrides: Any, problem: str) -> None:
    """A typing error must not go unnoticed: the usual threshold would decide."""
    with pytest.raises(UsageError, match=problem):
        tuned_diagnoses(overrides)


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"gc_pause": {"share": 0.0}}, "'share' must be a share above 0, at most 1, not 0"),
        ({"gc_pause": {"remains": 1.5}}, "'remains' must be a share of at most 1, not 1.5"),
        ({"checkpoint_stall": {"faster": 0.0}}, "'faster' must be at least 1, not 0"),
    ],
)
def test_values_that_mean_nothing_are_wrong_usage(overrides: Any, problem: str) -> None:
    """With a share of nothing every diagnosis would fire; more than all is not there to save."""
    with pytest.raises(UsageError, match=problem):
        tuned_diagnoses(overrides)


def test_they_decide_and_are_reported(tmp_path: Path) -> None:
    """A loader that takes two thirds of a step is no fix where only 90 % count."""
    path = str(loader_stall.fires().write(tmp_path / "trace.json"))
    usual = analyze([path], Options())
    limits = {"loader_stall": {"share": 0.9}}
    strict = analyze([path], Options(thresholds=limits, config="perfdiag.toml"))
    assert [fix.id for fix in usual.fixes] == ["loader_stall"]
    assert strict.fixes == []
    assert strict.thresholds.overridden == limits
    assert strict.thresholds.config == "perfdiag.toml"
    assert strict.thresholds.sha256 != usual.thresholds.sha256
