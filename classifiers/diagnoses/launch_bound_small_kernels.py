"""Kernels so small that the host cannot launch them fast enough.

What it finds:
    Idle time in short gaps while the host dispatches operators, in work made of many kernels that
    run for a few microseconds each.

Why it costs time:
    An operator of an eager framework costs the host some 5 to 50 us before its kernel starts. A
    kernel that is shorter than that leaves the device waiting for the next one, every time.

How it is told apart:
    The device must really be idle: a long time between launch and start under a full queue is
    none. Gaps longer than 1 ms are something else (start-up, loading, a checkpoint), as are those
    in which the host is seen logging or collecting garbage: both stay out. The median kernel must
    be short, or at least shorter than the device waits for a kernel.

Example:
    Hundreds of kernels of 2 us, each of which costs 13 us to launch.

What to do:
    Launch many kernels at once (graphs), or make fewer and larger ones (compile, fuse, batch).
    What a graph cannot save is the step from one of its kernels to the next.

References:
    https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/
    https://developer.nvidia.com/blog/cuda-graphs/
    https://github.com/pytorch/pytorch/blob/main/torch/_inductor/config.py
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._shared import (
    LAUNCHING,
    LONG_GAP,
    Intervals,
    ask,
    host_time,
    leaf_in,
    longest,
    per_step,
    share_of,
    spell,
    within,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.host_states import HostState

SMALL = Threshold(
    10_000, "ns, median kernel", "TraceLens and nsys-ai call kernels below 10 us short"
)
MANY = Threshold(5, "kernels", "nsys-ai 0.3.0 reports short launches from 5 on")
NODE_GAP = Threshold(
    500, "ns", "3.4 us a kernel of 2.9 us in a graph: developer.nvidia.com/blog/cuda-graphs"
)
PART = Threshold(
    0.5, "share", "a choice: graph breaks and changing shapes keep half out of a graph"
)

DIAGNOSIS = Diagnosis(
    id="launch_bound_small_kernels",
    layer="compiler",
    title="Kernels are too small for the rate at which they are launched",
    title_ok="Launches keep the device busy",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={
        "share": MATERIAL,
        "small": SMALL,
        "many": MANY,
        "long_gap": LONG_GAP,
        "node_gap": NODE_GAP,
        "part": PART,
    },
    how=(
        "torch.compile(model, mode='reduce-overhead') (PyTorch 2.0 or later: Inductor and CUDA "
        "graphs), torch.cuda.make_graphed_callables or torch.cuda.graph (1.10 or later), with "
        "fixed shapes and no synchronisation inside; fused or foreach optimisers "
        "(AdamW(fused=True), 2.0 or later); or a larger batch. vLLM: "
        "enforce_eager=False. JAX: one jit around the whole step."
    ),
    verify="Record again: the leaf `launch` shrinks; with graphs the trace shows few launches.",
    refuted_by="the gaps vanish when nothing is recorded: stacks and shapes slow the host down",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for short gaps that wait for launches, between small kernels."""
    count = int(facts.kernels.sum())
    if count < limits["many"]:
        return DIAGNOSIS.quiet(f"Only {count} kernels.")
    gaps = _gaps(facts, limits["long_gap"])
    waits = leaf_in(facts, gaps, *LAUNCHING)
    share = share_of(facts, waits)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"The device waits for launches for {share:.1%} of the time.")
    median = float(np.median(facts.length_ns[facts.kernels]))
    if median >= max(limits["small"], waits.sum() / count):
        return DIAGNOSIS.quiet(f"The median kernel runs for {spell(median)}: not small.")
    why = (
        f"{count} kernels with a median of {spell(median)} run in the trace, and for "
        f"{spell(per_step(facts, waits))} of a step ({share:.0%}) the device waits for the next "
        f"launch, {spell(waits.sum() / count)} a kernel."
    )
    high = 1.0 - limits["node_gap"] / (gaps[1] - gaps[0])
    device, spots = facts.timeline.device, longest(facts.model.work, facts.kernels)
    return DIAGNOSIS.fires(
        why,
        [claim(gaps, LAUNCHING, low=limits["part"] * high, high=high)],
        [
            ask("ns", median, "perfdiag_median_kernel_ns", device, spots=spots),
            ask("kernels", count, "perfdiag_kernel_count", device, spots=spots),
        ],
    )


def _gaps(facts: RankFacts, most_ns: float) -> Intervals:
    """Short idle times in which the host does nothing that has a name of its own."""
    starts, ends = facts.idle_gaps
    named = np.zeros(len(starts), bool)
    for state in (HostState.OTHER, HostState.BRIEF):
        named |= within(host_time(facts, state), (starts, ends)) > 0
    kept = (ends - starts <= most_ns) & ~named
    return starts[kept], ends[kept]
