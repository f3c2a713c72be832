"""Real jobs with known stragglers: the graph's scheduler finds what its authors found."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from straggler_jobs import read_job
from straggler_ops import CULPRITS, TOLERANCE, culprit, differences, published
from straggler_schedule import meetings
from straggler_whatif import figures

JOBS = Path(__file__).parents[2] / "../shared/traces/straggler-ops"

real = pytest.mark.skipif(not JOBS.is_dir(), reason="needs the collection of real traces")
each_job = pytest.mark.parametrize("job", CULPRITS)


@cache
def found(job: str) -> dict[str, Any]:
    return figures(read_job(JOBS / f"trace-{job}.parquet"))


@real
@each_job
def test_slowdown(job: str) -> None:
    """S, the replayed step against the step without stragglers, is the published one."""
    expected = published(JOBS, job)["blocking_slowdown"]
    assert found(job)["blocking_slowdown"] == pytest.approx(expected, rel=TOLERANCE)


@real
@each_job
def test_every_scenario(job: str) -> None:
    """So are all steps, and what each type of operation, replica, stage and worker is worth."""
    off = list(differences(found(job), published(JOBS, job)))
    assert len(off) > 600
    # The published program computes in float32: 5e-7 apart. A missing edge costs more than 1e-4.
    assert max(off) <= 1e-5


@real
@each_job
def test_culprit(job: str) -> None:
    """What wins most time is what ailed the job, by far."""
    assert culprit(found(job)) == CULPRITS[job]
    most, second, *_ = found(job)["causes"].values()
    assert most > 0.5
    assert second < 0.1


@real
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda trace: trace.drop(index=5), "same operations"),
        (lambda trace: trace.assign(dp_rank=trace["dp_rank"] * 2), "same operations"),
        (lambda trace: trace.assign(mc=1), "does not cover"),
    ],
    ids=["an operation is missing", "a replica is missing", "stages are interleaved"],
)
def test_refusal(tmp_path: Path, change: Any, message: str) -> None:
    """A trace that the model does not fit is refused, not replayed."""
    change(pd.read_parquet(JOBS / "trace-ST.parquet")).to_parquet(tmp_path / "trace.parquet")
    with pytest.raises(ValueError, match=message):
        read_job(tmp_path / "trace.parquet")


def test_sender_meets_receiver_of_its_replica() -> None:
    """A send meets the receive of the next stage, and replicas only in collectives."""
    ops = pd.DataFrame(
        [
            (0, "forward-send", 0, 0),
            (1, "forward-recv", 0, 0),
            (1, "backward-send", 0, 0),
            (0, "forward-send", 0, 1),
            (0, "grads-reduce-scatter", 0, 0),
            (0, "grads-reduce-scatter", 0, 1),
            (1, "optimizer", 0, 0),
        ],
        columns=["stage", "optype", "seq_id", "dp_rank"],
    )
    meeting, communicator = meetings(ops)
    same = meeting[:, None] == meeting
    expected = np.eye(len(ops), dtype=bool)
    expected[[0, 1, 4, 5], [1, 0, 5, 4]] = True
    assert np.array_equal(same, expected)
    assert meeting[-1] == -1
    assert len(communicator) == 4
