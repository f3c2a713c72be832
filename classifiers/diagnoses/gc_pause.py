"""Python's garbage collector stops the step.

What it finds:
    Time in which the device is idle while the garbage collector runs.

Why it costs time:
    A collection of the oldest generation walks all objects of the process and stops its Python
    meanwhile. Launches stop too; what is queued hides a short pause, not a long one.

How it is told apart:
    A range or frame of the collector must cover idle time. A collection under a full queue costs
    nothing and is not counted.

Example:
    A collection of 9 ms in the middle of a forward pass; the queue held 1 ms of work.

What to do:
    Take the objects that live as long as the job out of the collector's sight, and collect at a
    moment of your choice, on all ranks in the same step: a rank that pauses alone makes the others
    wait. Nothing is left of a pause that is likely so; half of it, where collecting by hand takes
    as long.

References:
    https://docs.python.org/3/library/gc.html#gc.freeze
    https://github.com/pytorch/torchtitan/blob/main/torchtitan/tools/utils.py
"""

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_range
from perfdiag.classifiers.diagnoses._shared import (
    HOST_IDLE,
    count_of,
    leaf_in,
    per_step,
    ranges,
    share_of,
    spell,
    threads_of,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.host_ranges import classify_range

REMAINS = Threshold(
    0.5, "share", "a choice: collections by hand every N steps leave half of a pause at worst"
)

DIAGNOSIS = Diagnosis(
    id="gc_pause",
    layer="framework",
    title="Garbage collection stops the step",
    title_ok="No garbage collection that the device waits for",
    needs=("device", "host"),
    confidence=0.8,
    thresholds={"share": MATERIAL, "remains": REMAINS},
    how=(
        "After the first steps gc.collect(); gc.freeze() (Python 3.7 or later), then gc.disable() "
        "and gc.collect(1) every N steps, at the same step on all ranks (torchtitan: "
        "--training.gc_freq; Megatron-LM: --manual-gc --manual-gc-interval 100)."
    ),
    verify="Record again: no range of the collector lies in a step.",
    refuted_by="the step takes as long with gc.disable() for a few steps",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time that the collector covers."""
    pauses = ranges(facts, lambda name: classify_range(name) == "gc")
    paused = union_of(facts.model.hosts, pauses)
    lost = leaf_in(facts, paused, *HOST_IDLE)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Garbage collection holds up the device for {share:.1%} of the time."
        )
    name, total, count, proof = longest_range(facts, pauses)
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) while "
        f"Python collects garbage: {count_of(count, 'range')} {name!r}, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(
        why,
        [
            claim(
                paused,
                HOST_IDLE,
                low=1.0 - limits["remains"],
                mid=1.0,
                high=1.0,
                verb="remove",
                threads=threads_of(facts, pauses),
            )
        ],
        [proof],
    )
