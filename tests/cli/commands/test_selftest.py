"""`perfdiag selftest`: a verdict on the installation."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_fakes import Runner

from perfdiag.classifiers.selftest import SelfTest, score
from perfdiag.classifiers.selftest_cases import Outcome, Problem, Said
from perfdiag.classifiers.selftest_plan import Case
from perfdiag.trace_schemas.errors import EngineError

SAID = Said("compute-bound")
LABELS = (("compute-bound", "compute-bound"),)
HEALTHY = Outcome(Case("dense"), "compute-bound", None, SAID, LABELS)
FOUND = Outcome(Case("dense", "garbage", 0.2), "compute-bound", None, SAID, LABELS)
MISSED = Outcome(
    Case("dense", "garbage", 0.1),
    "compute-bound",
    None,
    SAID,
    LABELS,
    (Problem("finding", "gc_pause", "nothing"),),
)


@dataclass
class FakeSelfTest:
    """A self-test that answers with a result or an error, and remembers how it was asked."""

    answer: SelfTest | Exception
    asked: Mapping[str, object] = field(default_factory=dict)

    def run_selftest(self, **asked: object) -> SelfTest:
        """Answer."""
        self.asked = asked
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def tested(install_module: Callable[..., None]) -> FakeSelfTest:
    """What the command calls."""
    fake = FakeSelfTest(score([HEALTHY, FOUND]))
    install_module("perfdiag.classifiers", "selftest", run_selftest=fake.run_selftest)
    return fake


def test_all_right_is_exit_code_0(perfdiag: Runner, tested: FakeSelfTest) -> None:
    """Faults by dose, classes with their shares, and a last line that says so."""
    result = perfdiag("selftest")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    row = next(line.split() for line in lines if line.startswith("garbage"))
    assert row == ["garbage", "1/1"]
    assert next(line.split() for line in lines if line.startswith("compute-bound")) == [
        *("compute-bound", "100%", "100%", "2", "90%")
    ]
    assert lines[-1].startswith("All right: 2 jobs")


def test_wrong_ones_are_named(perfdiag: Runner, tested: FakeSelfTest) -> None:
    """Exit code 1, and what was expected and said of each."""
    tested.answer = score([HEALTHY, FOUND, MISSED])
    result = perfdiag("selftest")
    assert result.code == 1
    assert "dense, garbage 10%: finding: expected gc_pause, said nothing" in result.out
    assert "Something is wrong (3 jobs): fault garbage." in result.out


def test_it_can_fail_to_run(perfdiag: Runner, tested: FakeSelfTest) -> None:
    """Without an engine nothing is known: exit code 2, and no result."""
    tested.answer = EngineError("no trace_processor_shell")
    result = perfdiag("selftest", "--engine", "native")
    assert (result.code, result.out) == (2, "")
    assert "could not be run: no trace_processor_shell" in result.err


def test_options_reach_the_library(perfdiag: Runner, tested: FakeSelfTest) -> None:
    """How much, by which engine, and on how many processors."""
    perfdiag("selftest", "--quick", "--engine", "native", "--jobs", "3")
    asked = dict(tested.asked)
    assert asked.pop("progress") is None
    assert asked == {"quick": True, "engine": "native", "jobs": 3}


def test_json_is_for_programs(perfdiag: Runner, tested: FakeSelfTest, tmp_path: Path) -> None:
    """Scores and cases; the exit code is the same."""
    tested.answer = score([HEALTHY, MISSED])
    path = tmp_path / "selftest.json"
    assert perfdiag("selftest", "--format", "json", "-o", str(path)).code == 1
    found = json.loads(path.read_bytes())
    assert found["ok"] is False
    (fault,) = [one for one in found["scores"] if one["kind"] == "fault"]
    assert (fault["name"], fault["recall"], fault["precision"]) == ("garbage", 0.0, None)
    assert found["cases"][1]["problems"] == [
        {"aspect": "finding", "expected": "gc_pause", "said": "nothing"}
    ]


def test_a_small_dose_is_shown_as_not_judged(perfdiag: Runner, tested: FakeSelfTest) -> None:
    """It is named, and costs nothing."""
    case = Case("dense", "garbage", 0.05)
    small = Outcome(case, "compute-bound", None, SAID, LABELS, MISSED.problems)
    tested.answer = score([HEALTHY, small])
    result = perfdiag("selftest")
    assert result.code == 0
    assert "said nothing (dose too small to be judged)" in result.out
