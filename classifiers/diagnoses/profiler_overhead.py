"""The profiler itself holds up the device.

What it finds:
    Idle time under ranges in which the trace names overhead of the profiler: buffers that are
    requested or flushed, instrumentation.

Why it costs time:
    The profiler collects its records in buffers. While it asks for one or empties it, launches
    wait. The job without the profiler does not pay for this.

How it is told apart:
    By the names that CUPTI and Kineto give to these ranges. A full command buffer is none of them:
    the host is so far ahead that it is blocked. Nor is loading code.

Example:
    `Activity Buffer Request` for 4 ms in the middle of a step, while the device runs dry.

What to do:
    Record less, and judge the other findings with this time taken off. Nothing is gained in the
    job itself.

References:
    https://docs.nvidia.com/cupti/main/main.html#cupti-activity-api
    https://docs.pytorch.org/docs/stable/profiler.html
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    leaf_ns,
    per_step,
    share_of,
    spell,
    windows,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import classify_range

LIGHTER = Threshold(0.5, "share", "a choice: a lighter recording still has half the overhead")

DIAGNOSIS = Diagnosis(
    id="profiler_overhead",
    layer="runtime",
    title="The profiler holds up the device (no cost without it)",
    title_ok="The profiler names no overhead that the device waits for",
    needs=("device", "host"),
    confidence=0.9,
    thresholds={"share": MATERIAL, "lighter": LIGHTER},
    how=(
        "Record fewer steps after a warm-up: torch.profiler.schedule(wait=1, warmup=3, active=2) "
        "(PyTorch 1.8.1 or later), without with_stack, profile_memory and record_shapes, and only "
        "the activities that you need. The job itself has nothing to change."
    ),
    verify="Record again: the leaf `profiler` is gone.",
    refuted_by="the step takes as long when nothing is recorded",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time under overhead that the trace names."""
    held = leaf_ns(facts, "profiler")
    share = share_of(facts, held)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"The profiler holds up the device for {share:.1%} of the time.")
    name, total, _, proof = longest_range(facts, _named(facts))
    why = (
        f"The device is idle for {spell(per_step(facts, held))} of a step ({share:.0%}) while the "
        f"profiler is busy: {name!r} takes {spell(total)} in all. Without recording this time is "
        "gone."
    )
    return DIAGNOSIS.fires(
        why,
        [claim(windows(facts), ["profiler"], low=1.0 - limits["lighter"], high=1.0)],
        [proof],
    )


def _named(facts: RankFacts) -> NDArray[np.bool_]:
    """(hosts,) the ranges in which the host is said to work for the profiler."""
    hosts = facts.model.hosts
    activity = hosts.name.map(classify_range, np.object_)
    unknown = hosts.kind.where("overhead") & (activity == "")
    return np.asarray((activity == "profiler_overhead") | unknown)
