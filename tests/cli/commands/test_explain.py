"""`perfdiag explain`: what is known of a diagnosis."""

import json
from pathlib import Path

import pytest
from cli_fakes import Runner

from perfdiag.classifiers.diagnoses import all_diagnoses


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_are_listed(perfdiag: Runner) -> None:
    """Without an id every diagnosis has a line, under its layer."""
    out = perfdiag("explain").out
    assert [one.id for one, _ in all_diagnoses() if f"  {one.id} " not in out] == []
    assert f"{len(all_diagnoses())} diagnoses" in out
    assert out.index("input-pipeline") < out.index("loader_stall") < out.index("framework")


def test_one_is_explained_in_full(perfdiag: Runner) -> None:
    """The parts of the docstring, what to do, and the thresholds with their sources."""
    out = perfdiag("explain", "loader_stall").out
    for head in ("What it finds", "How it is told apart", "How to verify", "Refuted if"):
        assert f"\n{head}\n" in out
    assert "num_workers" in out
    assert "nsys-ai 0.3.0" in " ".join(out.split())


def test_a_typing_error_gets_a_hint(perfdiag: Runner) -> None:
    """A name that comes close is wrong usage with a way out."""
    result = perfdiag("explain", "loaderstall")
    assert (result.code, result.out) == (2, "")
    assert "did you mean loader_stall" in result.err


def test_json_is_for_programs(perfdiag: Runner) -> None:
    """The same as objects, whose thresholds are numbers."""
    (one,) = json.loads(perfdiag("explain", "gc_pause", "--format", "json").out)
    assert one["id"] == "gc_pause"
    assert one["thresholds"]["share"]["value"] == 0.01
    assert one["explanation"]["What it finds"]
    assert len(json.loads(perfdiag("explain", "--format", "json").out)) == len(all_diagnoses())


def test_it_shows_thresholds_as_they_are_set(perfdiag: Runner, tmp_path: Path) -> None:
    """A configuration beside the user counts here as it does for analyze."""
    (tmp_path / "perfdiag.toml").write_text("[thresholds.gc_pause]\nshare = 0.25\n")
    (one,) = json.loads(perfdiag("explain", "gc_pause", "--format", "json").out)
    assert one["thresholds"]["share"]["value"] == 0.25


def test_a_step_needs_its_trace(perfdiag: Runner) -> None:
    """Wrong usage, and what is lacking."""
    result = perfdiag("explain", "--step", "1")
    assert (result.code, result.out) == (2, "")
    assert "--step needs the trace" in result.err


def test_a_step_is_explained(perfdiag: Runner) -> None:
    """Probabilities, and the features that moved them, for people and for programs."""
    demo = str(Path(__file__).parents[3] / "fixtures" / "demo.pftrace")
    out = perfdiag("explain", demo, "--step", "1").out
    assert "step ProfilerStep#1" in out
    assert "twice as likely" in " ".join(out.split())
    (step, *_) = json.loads(perfdiag("explain", demo, "--step", "1", "--format", "json").out)
    assert sum(step["probabilities"].values()) == pytest.approx(1)
    assert step["reasons"][0]["feature"]
