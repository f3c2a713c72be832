"""Real jobs, replayed unchanged, take as long as they did; those that do not are not believed."""

from functools import cache
from pathlib import Path

import pytest

from perfdiag.classifiers.analysis import Options, analyze
from perfdiag.classifiers.replay import LABEL_OF
from perfdiag.trace_schemas.report import Report

KINETO = Path(__file__).parents[1] / "../shared/traces/kineto"

pytestmark = pytest.mark.skipif(not KINETO.is_dir(), reason="needs the collection of real traces")

MEDIAN, P90 = 0.01, 0.03
"""Of a step, by which the replay may be off."""


@cache
def report_of(trace: str) -> Report:
    """The report of a trace of the collection; made once."""
    return analyze([str(KINETO / f"{trace}.json.gz")], Options())


TRAINING = [
    "training/a100_8rank_control",
    "training/v100_2rank_test",
    "training/mi300_8rank_resnet_act_checkpoint",
    "nvidia/v100_ns_resolution_resnet",
    "nvidia/h100_qwen1.5_0.5b",
]

WITHHELD = "amd/mi300_vllm_hipgraph_decode"
"""Its first graph was launched before the trace began, and what follows waits for the device."""


@pytest.mark.parametrize("trace", TRAINING)
def test_the_unchanged_replay(trace: str) -> None:
    """Steps of eager training, with collectives and without, are as long as recorded."""
    found = report_of(trace).replay
    assert found.error is not None
    assert found.error.median <= MEDIAN
    assert found.error.p90 <= P90
    assert found.believed
    assert found.nodes > found.edges > 0


@pytest.mark.parametrize("trace", TRAINING)
def test_savings_are_replayed(trace: str) -> None:
    """No fix saves more than its step takes, nor less when more of it is done."""
    report = report_of(trace)
    step_ns = report.ranks[0].totals_ns.window / len(report.ranks[0].steps)
    for fix in report.fixes:
        assert fix.basis == "replay"
        assert fix.curve_ns == sorted(fix.curve_ns)
        assert fix.saving_low_ns <= fix.saving_ns_per_step <= fix.saving_high_ns
        assert fix.saving_ns_per_step < step_ns
    assert sum(fix.saving_after_previous_ns for fix in report.fixes) < step_ns


@pytest.mark.parametrize("trace", TRAINING)
def test_the_chain_bounds_what_resources_save(trace: str) -> None:
    """Twice as fast, they save at most half of what the longest chain holds of them."""
    found = report_of(trace).replay
    assert sum(found.critical_path.values()) == pytest.approx(1)
    assert max(found.twice_as_fast.values()) > 0
    for label, saved in found.twice_as_fast.items():
        on_chain = sum(
            found.critical_path.get(name, 0) for name in LABEL_OF if LABEL_OF[name] == label
        )
        assert saved <= on_chain / 2 + 1e-6


def test_a_job_that_does_not_replay_is_not_believed() -> None:
    """Graphs launched before the trace: its savings are bounds, and nothing else is said of it."""
    report = report_of(WITHHELD)
    assert not report.replay.believed
    assert report.replay.error is not None
    assert report.replay.error.median > 0.05
    assert report.replay.twice_as_fast == {}
    assert report.replay.why.startswith("Savings are static bounds")
    assert report.fixes
    for fix in report.fixes:
        assert (fix.basis, fix.curve_ns) == ("static bound", [])
