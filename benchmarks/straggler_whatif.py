"""What straggler_ops.py runs: who slows a job down, by replaying its operations.

Usage: python straggler_whatif.py trace.parquet figures.json

The figures have the names of the published results (`straggler_jobs` says whose). `step_t_*` are
seconds per step: as recorded (`base`), replayed (`nodelay`: T), and replayed with operations that
all take what is usual for their type (`noblk`: T_ideal). `blocking_*` are slowdowns against that,
`blocking_decompose_by_*` those of steps in which one type of operation, replica or stage alone
takes its own time. `mw` and `ms` say what is won if the slowest workers, or the last stage, take
what is usual.

Those groups contain each other: a slow worker makes its stage slow, and its type. `causes` splits
the time of forward and backward passes into parts that do not overlap, and takes one away at once:

- workers: by how much the slowest workers differ from the median worker of their stage
- stages: by how much that median differs between stages
- microbatches: by how much a pass differs from the mean of its worker, as it does where sequences
  differ in length
- others: what operations that are no passes take beyond what is usual for them

A cause is worth its share of T - T_ideal; what is worth most is the culprit.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from straggler_jobs import Job, read_job
from straggler_schedule import COMPUTE

from perfdiag.trace_schemas.recording import Int64s

__all__ = ["figures"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Slowdowns = dict[tuple[str, str], Floats]

SLOWEST = 0.03
"""Share of the workers that may be what slows a job down, as in the published program."""

_BETWEEN_STAGES = {
    f"{way}-{end}": f"{way}-pp-comm" for way in ("forward", "backward") for end in ("send", "recv")
}


def main(trace: str, output: str) -> None:
    """Write the figures of a trace."""
    Path(output).write_text(json.dumps(figures(read_job(Path(trace)))), encoding="utf-8")


def figures(job: Job) -> dict[str, Any]:
    """All slowdowns and shares of one job, ready for JSON."""
    groups = _groups(job.ops)
    last = (job.ops["stage"] == job.ops["stage"].max()).to_numpy()
    everyone = np.ones_like(last)
    own = [everyone, ~everyone, ~last, last, *groups.values()]
    actual, ideal, without, alone, *of_groups = _replay(job, own)
    slowdowns = dict(zip(groups, np.divide(of_groups, ideal), strict=True))
    slowest = _slowest(job.ops, slowdowns)
    return {
        "step_t_base": _by_step(job, job.recorded_ns / 1e9),
        "step_t_nodelay": _by_step(job, actual / 1e9),
        "step_t_noblk": _by_step(job, ideal / 1e9),
        "blocking_slowdown": actual.mean() / ideal.mean(),
        "blocking_step_slowdown": _by_step(job, actual / ideal),
        **_decompositions(job, slowdowns),
        "mw": _explain(actual, ideal, *_replay(job, [~slowest, slowest])),
        "ms": _explain(actual, ideal, without, alone),
        "slowest": job.ops[slowest].groupby(["dp_rank", "stage"]).size().index.tolist(),
        "causes": _causes(job, slowest, actual, ideal),
    }


def _groups(ops: pd.DataFrame) -> dict[tuple[str, str], Bools]:
    """(n,) who is in each group, by what they have in common and its value."""
    labels = {
        "optype": ops["optype"].replace(_BETWEEN_STAGES),
        "dp_rank": ops["dp_rank"].astype(str),
        "stage": ops["stage"].astype(str),
    }
    return {
        (by, name): (label == name).to_numpy()
        for by, label in labels.items()
        for name in label.unique()
    }


def _replay(job: Job, own: Sequence[Bools]) -> Floats:
    """(k, steps) in ns: operations take their own time in (n,) `own`, else what is usual."""
    return job.replay(len(own), (np.where(mask, job.length_ns, job.ideal_ns) for mask in own))


def _by_step(job: Job, values: Floats) -> dict[str, float]:
    return dict(zip(map(str, job.steps), values.tolist(), strict=True))


def _decompositions(job: Job, slowdowns: Slowdowns) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (by, name), slowdown in slowdowns.items():
        overall = found.setdefault(f"blocking_decompose_by_{by}", {})
        overall[name] = slowdown.mean()
        per_step = found.setdefault(f"blocking_decompose_by_{by}_per_step", {})
        for step, value in _by_step(job, slowdown).items():
            per_step.setdefault(step, {})[name] = value
    return found


def _slowest(ops: pd.DataFrame, slowdowns: Slowdowns) -> Bools:
    """(n,) whether an operation is of one of the workers with the highest slowdown.

    A worker's is the lower of its replica's and its stage's: it cannot have caused more.
    """
    score = np.minimum.reduce(
        [ops[by].map(lambda i, by=by: slowdowns[by, str(i)].mean()) for by in ("dp_rank", "stage")]
    )
    worker = ops.assign(score=-score).groupby(["score", "stage", "dp_rank"]).ngroup().to_numpy()
    return np.asarray(worker < math.ceil(SLOWEST * (worker.max() + 1)))


def _explain(actual: Floats, ideal: Floats, without: Floats, alone: Floats) -> dict[str, float]:
    """Mean seconds of a step without what is unusual in a group, and with that alone."""
    tori, tideal, trem, tadd = (float(t.mean()) / 1e9 for t in (actual, ideal, without, alone))
    rem, add = (tori - trem) / (tori - tideal), (tadd - tideal) / (tori - tideal)
    return {"trem": trem, "tadd": tadd, "tori": tori, "tideal": tideal, "rem": rem, "add": add}


def _causes(job: Job, slowest: Bools, actual: Floats, ideal: Floats) -> dict[str, float]:
    """The share of each cause, the largest first."""
    lengths = _without(job, slowest)
    times = job.replay(len(lengths), lengths.values()).mean(axis=1)
    won = (actual.mean() - times) / (actual.mean() - ideal.mean())
    shares = dict(zip(lengths, won.tolist(), strict=True))
    return dict(sorted(shares.items(), key=lambda share: -share[1]))


def _without(job: Job, slowest: Bools) -> dict[str, Int64s]:
    """(steps, n) lengths without what each cause adds."""
    mean, of_stage, usual = _usual_passes(job)
    passes, length = job.ops["optype"].isin(COMPUTE).to_numpy(), job.length_ns
    return {
        "workers": np.where(passes & slowest, np.maximum(length + of_stage - mean, 0), length),
        "stages": np.where(passes, np.maximum(length + usual - of_stage, 0), length),
        "microbatches": np.where(passes, mean, length),
        "others": np.where(passes, length, job.ideal_ns),
    }


def _usual_passes(job: Job) -> tuple[Int64s, Int64s, Int64s]:
    """(n,) each: the mean of the worker, the median worker of the stage, the mean of those."""
    ops = job.ops.assign(mean=job.length_ns.mean(axis=0))
    ops["mean"] = ops.groupby(["dp_rank", "stage", "optype"])["mean"].transform("mean")
    ops["of_stage"] = ops.groupby(["stage", "optype"])["mean"].transform("median")
    ops["usual"] = ops.groupby("optype")["of_stage"].transform("mean")
    mean, of_stage, usual = ops[["mean", "of_stage", "usual"]].to_numpy().T.round().astype(np.int64)
    return mean, of_stage, usual


if __name__ == "__main__":
    main(*sys.argv[1:])
