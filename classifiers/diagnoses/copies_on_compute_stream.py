"""Asynchronous copies share a stream with the kernels, and stop them.

What it finds:
    Copies between host and device by calls that do not block, on a stream that carries kernels,
    in which nothing else runs: all of those to the host, and those to the device that the backward
    pass and the optimiser make.

Why it costs time:
    A device has engines of its own for copies, but a stream runs what it holds one after the
    other. A copy on the stream of the kernels makes the next kernel wait until it is done.

How it is told apart:
    By the lane of the copy and by its call: pageable copies and those that block the host are
    `pageable_copy`, those that bring the input of the step are `exposed_input_copy`. The next work
    of the lane must be launched already: a result that the host waits for stops no kernel. Only
    time in which neither a kernel nor a collective runs is claimed, at most as much as there are
    kernels to hide it.

Example:
    Activations of 64 MB go to pinned memory after each layer, 1.2 ms on the stream of the layers.

What to do:
    Copy on a stream of its own, order it by events, and fetch before the data is needed. Where
    the next kernel needs the copy at once it must be issued earlier; that is not always possible.

References:
    https://developer.nvidia.com/blog/how-overlap-data-transfers-cuda-cc/
    https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import Claim, claim
from perfdiag.classifiers.diagnoses._copies import across, blocking, fetches, to_device
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._overlap import COMPUTE_LANE, lanes_of_compute
from perfdiag.classifiers.diagnoses._shared import (
    Intervals,
    computing_without,
    count_of,
    leaf_ns,
    per_step,
    share_of,
    spell,
    split_by_step,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.classifiers.intervals import merge
from perfdiag.trace_schemas.recording import ABSENT, Int64s

NEEDED = Threshold(
    0.5, "share", "a choice: half of the copies carry what the next kernel needs, at worst"
)

DIAGNOSIS = Diagnosis(
    id="copies_on_compute_stream",
    layer="runtime",
    title="Asynchronous copies stop the stream of the kernels",
    title_ok="No exposed asynchronous copies between kernels",
    needs=("device", "host"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "compute_lane": COMPUTE_LANE, "needed": NEEDED},
    how=(
        "side = torch.cuda.Stream() (PyTorch 1.0 or later); side.wait_stream("
        "torch.cuda.current_stream()); with torch.cuda.stream(side): target.copy_(tensor, "
        "non_blocking=True), target pinned; tensor.record_stream(side), and an event before the "
        "target is read. Offloading: let the framework fetch ahead (DeepSpeed: "
        "overlap_comm=true, stage3_prefetch_bucket_size; Megatron-LM with Transformer Engine: "
        "--cpu-offloading-num-layers; JAX: jax.device_put() to pinned_host inside jit)."
    ),
    verify="Record again: the copies lie on a stream without kernels, and the leaf `copy` shrinks.",
    refuted_by="kernels wait for the copies on the second stream as well: they are needed at once",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for exposed asynchronous copies on lanes of kernels."""
    chosen = _copies(facts, limits["compute_lane"])
    if not chosen.any():
        return DIAGNOSIS.quiet(
            "No asynchronous copy between host and device among the kernels of a stream."
        )
    parts, step = split_by_step(facts, _stopping(facts, chosen))
    exposed = np.bincount(step, leaf_ns(facts, "copy", bounds=parts), len(facts.trusted))
    exposed = exposed.astype(np.int64)
    share = share_of(facts, exposed)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Copies stop the stream of the kernels for {share:.1%} of the time."
        )
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(int(chosen.sum()), 'asynchronous copy', 'asynchronous copies')} between host "
        f"and device lie on a stream of kernels; for {spell(per_step(facts, exposed))} of a step "
        f"({share:.0%}) only they run while kernels wait. Most are {name!r}: "
        f"{count_of(count, 'copy', 'copies')} in the trace, {spell(total)} in all."
    )
    return DIAGNOSIS.fires(why, [_claim(facts, parts, step, exposed, limits["needed"])], [proof])


def _claim(
    facts: RankFacts, parts: Intervals, step: Int64s, exposed: Int64s, needed: float
) -> Claim:
    """What the kernels of the same step can hide."""
    compute = computing_without(facts, "copy")
    high = np.minimum(compute / np.maximum(exposed, 1), 1.0)[step]
    return claim(parts, ["copy"], low=(1.0 - needed) * high, high=high, verb="overlap")


def _stopping(facts: RankFacts, chosen: NDArray[np.bool_]) -> Intervals:
    """The parts of copies in which the next other work of their lane is launched already."""
    work = facts.model.work
    rows = np.flatnonzero(facts.here)
    rows = rows[np.lexsort((work.ts_ns[rows], work.lane[rows]))]
    copies = chosen[rows]
    other = np.where(copies, len(rows), np.arange(len(rows)))
    behind = np.minimum.accumulate(other[::-1])[::-1]
    known = copies & (behind < len(rows))
    copy, behind = rows[known], rows[behind[known]]
    queued = (work.lane[behind] == work.lane[copy]) & (work.launch_id[behind] != ABSENT)
    copy, behind = copy[queued], behind[queued]
    return merge(np.maximum(work.ts_ns[copy], work.launch_end_ns[behind]), work.end_ns[copy])


def _copies(facts: RankFacts, least: float) -> NDArray[np.bool_]:
    """(work,) copies on lanes of kernels, by calls that return before they are done."""
    work, calls, call = facts.model.work, facts.model.calls, facts.origins.call
    inward = to_device(facts)
    found = across(facts) & ~blocking(facts.model) & (~inward | facts.origins.under(fetches))
    found &= np.isin(work.lane, lanes_of_compute(facts, least)) & (call != ABSENT)
    rows = np.flatnonzero(found)
    found[rows] = calls.end_ns[call[rows]] < work.end_ns[rows]
    return np.asarray(found, np.bool_)
