"""Collectives on a stream of their own that no compute hides.

What it finds:
    Time in which a collective runs, on another stream than the kernels, and no kernel does.

Why it costs time:
    Gradients and parameters can travel while other layers compute. What travels when nothing is
    left to compute makes the step longer by its whole length.

How it is told apart:
    Compute and collectives are unions over the device: what overlaps is not counted. Collectives
    on a stream that also carries kernels are the finding `collective_on_compute_stream`. The trace
    of one rank cannot tell transfer from waiting for a late rank.

Example:
    One all-reduce of 1.2 GB after the backward pass: 12 of 15 ms.

What to do:
    Start collectives earlier and in smaller pieces, send fewer bytes, or give each exchange more
    compute. Compute that hides none yet can hide at most its own length; the rest only shrinks
    with the bytes.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
    https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html
    https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
"""

import numpy as np

from perfdiag.classifiers.diagnoses._overlap import (
    COMPUTE_LANE,
    HIDDEN,
    Exposed,
    collectives,
    exposed,
)
from perfdiag.classifiers.diagnoses._shared import ask, leaf_ns, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

FEWER_BYTES = Threshold(
    0.5,
    "share of the time",
    "bf16_compress_hook halves gradients of fp32: docs.pytorch.org/docs/stable/ddp_comm_hooks",
)

DIAGNOSIS = Diagnosis(
    id="exposed_all_reduce",
    layer="collectives",
    title="Collectives run while nothing computes",
    title_ok="Compute hides the collectives",
    needs=("device",),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "hidden": HIDDEN,
        "compute_lane": COMPUTE_LANE,
        "fewer_bytes": FEWER_BYTES,
    },
    how=(
        "DDP: no single reduction after backward(), bucket_cap_mb tuned (25 by default), "
        "gradient_as_bucket_view=True (PyTorch 1.7 or later), static_graph=True (1.11), no_sync() "
        "while gradients accumulate, and a bf16_compress_hook (1.10) for half the bytes. FSDP: "
        "backward_prefetch=BACKWARD_PRE and forward_prefetch=True, with fully_shard "
        "set_modules_to_forward_prefetch (2.6). Megatron: --overlap-grad-reduce "
        "--overlap-param-gather."
    ),
    verify=(
        "Record all ranks and look at them together: exposed collective time shrinks. If one rank "
        "arrives late everywhere, its cause comes first."
    ),
    refuted_by="the traces of the other ranks show that this one only waits for them",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for collectives that run alone on their streams."""
    here = collectives(facts, on_compute_lanes=False, least=limits["compute_lane"])
    found = exposed(facts, here)
    if not len(found.rows):
        return DIAGNOSIS.quiet("No collectives on streams of their own.")
    share = share_of(facts, found.time_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Collectives are exposed for {share:.1%} of the time.")
    op, lane, total, bytes_moved = _largest(facts, found)
    stream = facts.model.lanes.name.get(lane, f"lane {lane}")
    size = f", {bytes_moved / 1e6:.4g} MB" if bytes_moved else ""
    kind = "Collectives of unknown kind" if op == "unknown" else f"Kernels of {op}"
    unsplit = leaf_ns(facts, "collective_unsplit").any()
    doubt = " (may include waiting for other ranks)" if unsplit else ""
    why = (
        f"Collectives run for {spell(per_step(facts, found.time_ns))} of a step ({share:.0%}) "
        f"while nothing computes{doubt}. {kind} on "
        f"{stream.strip()} take most: {spell(total)} in the trace{size}."
    )
    high = found.hideable + (1.0 - found.hideable) * limits["fewer_bytes"]
    return DIAGNOSIS.fires(
        why,
        [found.claim(limits["hidden"] * found.hideable, high)],
        [ask("ns", total, "perfdiag_collective_ns", op, lane)],
    )


def _largest(facts: RankFacts, found: Exposed) -> tuple[str, int, int, int]:
    """Operation and lane that take longest, their time, and the bytes where they are known."""
    work, rows = facts.model.work, found.rows
    length = (work.end_ns - work.ts_ns)[rows]
    ops, lanes = np.array(work.collective.take(rows)), work.lane[rows]
    pairs = sorted(set(zip(ops.tolist(), lanes.tolist(), strict=True)))
    of_pair = {pair: (ops == pair[0]) & (lanes == pair[1]) for pair in pairs}
    op, lane = max(pairs, key=lambda pair: int(length[of_pair[pair]].sum()))
    mine = of_pair[op, lane]
    moved = work.bytes[rows][mine]
    return op, lane, int(length[mine].sum()), int(moved.sum()) if (moved >= 0).all() else 0
