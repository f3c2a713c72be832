"""`perfdiag features`: one row a region, and what its columns mean."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from cli_fakes import FakeAnalysis, Runner

from perfdiag.classifiers.features import FEATURES, FeatureTable

REGION = ["rank", "kind", "step", "name", "start_ns", "dur_ns"]


class FakeFeatures:
    """Describes two regions of rank 3, and remembers what it was asked."""

    def __init__(self) -> None:
        self.paths: Sequence[str] = ()
        self.options: dict[str, object] = {}

    def job_features(
        self, paths: Sequence[str], options: dict[str, object]
    ) -> list[tuple[int | None, FeatureTable]]:
        self.paths, self.options = paths, options
        values = np.full((2, len(FEATURES)), np.nan)
        values[:, 0] = (0.25, 1 / 3)
        bounds = np.array([0, 0]), np.array([100, 40])
        step = np.array([7, 7])
        return [(3, FeatureTable(("step", "phase"), step, ("s7", "forward"), *bounds, values))]


@pytest.fixture
def described(install_module: Callable[..., None], analysis: FakeAnalysis) -> FakeFeatures:
    fake = FakeFeatures()
    install_module("perfdiag.classifiers", "features_of", job_features=fake.job_features)
    return fake


def test_csv(perfdiag: Runner, described: FakeFeatures) -> None:
    """A header and one line a region, its rank first; what is missing is empty."""
    result = perfdiag("features", "a.json", "b.json", "--format", "csv")
    assert (result.code, described.paths) == (0, ["a.json", "b.json"])
    head, step, phase = csv.reader(io.StringIO(result.out))
    assert head == [*REGION, *(feature.name for feature in FEATURES)]
    assert step[:7] == ["3", "step", "7", "s7", "0", "100", "0.25"]
    assert phase[:6] == ["3", "phase", "7", "forward", "0", "40"]
    assert float(phase[6]) == 1 / 3
    assert set(step[7:] + phase[7:]) == {""}


def test_json(perfdiag: Runner, described: FakeFeatures) -> None:
    """Each region is an object; what is missing is null."""
    rows: list[dict[str, Any]] = json.loads(perfdiag("features", "a", "--format", "json").out)
    assert [list(row) for row in rows] == [[*REGION, *(f.name for f in FEATURES)]] * 2
    assert rows[1]["name"] == "forward"
    assert rows[1][FEATURES[0].name] == 1 / 3
    assert rows[1][FEATURES[1].name] is None


def test_a_table_for_people(perfdiag: Runner, described: FakeFeatures) -> None:
    """Numbers have four digits."""
    text = perfdiag("features", "a").out
    assert [line.split() for line in text.splitlines() if FEATURES[0].name in line] == [
        [FEATURES[0].name, "0.25"],
        [FEATURES[0].name, "0.3333"],
    ]


def test_options(perfdiag: Runner, described: FakeFeatures) -> None:
    """Counters and the device are passed on."""
    perfdiag("features", "a", "--counters", "gpu.csv", "--device", "H100", "--jobs", "1")
    asked = {name: described.options[name] for name in ("counters", "device", "jobs")}
    assert asked == {"counters": ("gpu.csv",), "device": "H100", "jobs": 1}


def test_schema(perfdiag: Runner) -> None:
    """Each feature has a row that says what it means; no trace is needed."""
    rows = json.loads(perfdiag("features", "--schema", "--format", "json").out)
    assert [(row["name"], row["unit"], row["meaning"]) for row in rows] == [
        (one.name, one.unit, one.meaning) for one in FEATURES
    ]


@pytest.mark.parametrize("arguments", [[], ["a.json", "--schema"]])
def test_a_trace_or_the_schema(arguments: list[str], perfdiag: Runner) -> None:
    """With neither or both there is nothing to print."""
    result = perfdiag("features", *arguments)
    assert (result.code, result.out) == (2, "")
    assert "one of the two" in result.err


def test_the_result_is_no_input(perfdiag: Runner, tmp_path: Any) -> None:
    """A trace is not overwritten."""
    trace = tmp_path / "a.json"
    trace.write_text("{}")
    assert perfdiag("features", str(trace), "-o", str(trace)).code == 2
    assert trace.read_text() == "{}"
