"""A stage of a pipeline waits for its neighbour.

What it finds:
    Time in which a send or receive between two ranks runs longer than the shortest one does, and
    no kernel runs.

Why it costs time:
    With p stages and m micro-batches each stage is idle for (p-1)/(m+p-1) of the step: while the
    first micro-batch is on its way, while the last one is, and wherever a neighbour is slower.

How it is told apart:
    Sends and receives that carry out an all-to-all are none. The shortest one of the trace stands
    for the transfer: what others take beyond it is waiting. Waiting under kernels is not counted.
    Ring attention and halo exchanges look the same where nothing hides them.

Example:
    A receive of 200 us where a send takes 20 us, then 100 us of kernels.

What to do:
    More micro-batches a step, several chunks of layers a stage, or a schedule that fills the gaps
    with gradients of weights. Two chunks a stage halve the bubble, a zero-bubble schedule leaves
    next to none. Nothing is saved at worst: a stage that has more to do than the others makes them
    wait under any schedule, and is to be relieved first.

References:
    https://arxiv.org/abs/2104.04473
    https://arxiv.org/abs/2401.10241
    https://docs.pytorch.org/docs/stable/distributed.pipelining.html
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import LEAVES, at_most, collectives, heaviest
from perfdiag.classifiers.diagnoses._shared import per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

FILLED = Threshold(
    1.0,
    "share of the waiting",
    "zero-bubble schedules leave next to no bubble: https://arxiv.org/abs/2401.10241",
)

DIAGNOSIS = Diagnosis(
    id="pipeline_bubble",
    layer="parallelism",
    title="A pipeline stage waits for its neighbour",
    title_ok="No pipeline stage waits for its neighbour",
    needs=("device",),
    confidence=0.6,
    thresholds={"share": MATERIAL, "filled": FILLED},
    how=(
        "More micro-batches (Megatron: a smaller --micro-batch-size; DeepSpeed: "
        "gradient_accumulation_steps=). Interleaved chunks: Megatron "
        "--num-layers-per-virtual-pipeline-stage, torch.distributed.pipelining "
        "ScheduleInterleaved1F1B() (PyTorch 2.5). Zero bubble: ScheduleInterleavedZeroBubble() "
        "(2.5), ScheduleZBVZeroBubble() (2.6). Layers divided by their time, not by their number: "
        "embedding and loss count too (Megatron: --decoder-first-pipeline-num-layers, "
        "--decoder-last-pipeline-num-layers)."
    ),
    verify="Record all stages again: receives are about as short as sends, on every stage.",
    refuted_by="the neighbour is slower throughout, or the sends belong to ring attention",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for sends and receives that take longer than a transfer."""
    here = collectives(facts, "send_recv")
    rows = np.flatnonzero(here & (facts.length_ns > 0))
    if not len(rows):
        return DIAGNOSIS.quiet("No sends or receives between two ranks.")
    work, length = facts.model.work, facts.length_ns[rows]
    shortest = int(length.min())
    waiting = limits["filled"] * (1.0 - shortest / length)
    one = claim(
        (work.ts_ns[rows], work.end_ns[rows]), LEAVES, low=0.0, high=waiting, verb="overlap"
    )
    lost = at_most(facts, one)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Sends and receives hold up a stage for {share:.1%} of the time.")
    most, proof = heaviest(facts, here)
    why = (
        f"This stage waits for another one for {spell(per_step(facts, lost))} of a step "
        f"({share:.0%}): sends and receives run while nothing computes, and longer than the "
        f"shortest, {spell(shortest)}. {most}"
    )
    return DIAGNOSIS.fires(why, [one], [proof])
