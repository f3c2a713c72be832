"""Work on several streams runs one after the other, and each change of stream costs a wait.

What it finds:
    Idle time of the device in which the next kernel is launched already but waits for a kernel
    of another stream, where the kernels of these streams hardly ever overlap.

Why it costs time:
    A stream that waits for another learns of its end through an event, some microseconds later.
    Streams that only take turns pay for each turn and gain nothing: on one stream the next
    kernel would follow at once.

How it is told apart:
    The kernel after the gap was launched before the gap, its own stream had been free for longer,
    and the gap begins where a kernel of the other stream ends. Streams must carry a good part of
    the compute; collectives and copies are other findings. Streams that overlap are left alone.

Example:
    Kernels of 20 us that take turns on two streams: each waits 8 us for the other's event.

What to do:
    Put work that cannot overlap on one stream, or take away what orders it: the legacy default
    stream waits for all others and makes them wait. How much could overlap the trace does not
    show; only the idle time between the streams is claimed.

References:
    https://docs.nvidia.com/cuda/cuda-runtime-api/stream-sync-behavior.html
    https://developer.nvidia.com/blog/gpu-pro-tip-cuda-7-streams-simplify-concurrency/
    https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import COMPUTE_LANE, lanes_of_compute
from perfdiag.classifiers.diagnoses._shared import (
    Intervals,
    ask,
    lane_name,
    leaf_in,
    leaf_ns,
    longest,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import ABSENT, Int64s

OVERLAP = Threshold(
    0.1, "share of the smaller streams' time", "a choice: who overlaps less gains nothing from it"
)

DIAGNOSIS = Diagnosis(
    id="serialised_streams",
    layer="runtime",
    title="Streams of compute only take turns",
    title_ok="No kernels wait for another stream of compute",
    needs=("device", "host"),
    confidence=0.5,
    thresholds={"share": MATERIAL, "compute_lane": COMPUTE_LANE, "overlap": OVERLAP},
    how=(
        "Issue dependent work on one stream (drop `with torch.cuda.stream(side):` around it), or "
        "let it overlap: no work on the default stream beside torch.cuda.Stream() (PyTorch 1.0 "
        "or later), one stream.wait_event(event) for the tensor that is needed instead of "
        "wait_stream() after each kernel. C++: cudaStreamCreateWithFlags(cudaStreamNonBlocking) "
        "or nvcc --default-stream per-thread (CUDA 7.0 or later). A CUDA graph keeps only the "
        "dependencies that are real."
    ),
    verify="Record again: the leaf `dependency` shrinks, or kernels of both streams overlap.",
    refuted_by="the gaps stay when all of the work is on one stream",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for idle time between kernels of different streams."""
    lanes = lanes_of_compute(facts, limits["compute_lane"])
    if len(lanes) < 2:
        return DIAGNOSIS.quiet("The kernels run on one stream.")
    overlap = _overlap(facts, lanes)
    if overlap >= limits["overlap"]:
        return DIAGNOSIS.quiet(f"The streams of compute overlap for {overlap:.0%} of their time.")
    turns, pairs = _turns(facts, lanes)
    lost = leaf_in(facts, turns, "dependency")
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Kernels wait for another stream of compute for {share:.1%} of the time."
        )
    one, other = _worst_pair(pairs, leaf_ns(facts, "dependency", bounds=turns))
    (first, first_ns, proof), (second, second_ns, also) = _lane(facts, one), _lane(facts, other)
    why = (
        f"The device is idle for {spell(per_step(facts, lost))} of a step ({share:.0%}) while a "
        f"launched kernel waits for another stream, {len(turns[0])} times, mostly between {first} "
        f"({spell(first_ns)} of kernels in all) and {second} ({spell(second_ns)}), which overlap "
        f"for {overlap:.0%} of the time."
    )
    return DIAGNOSIS.fires(
        why, [claim(turns, ["dependency"], low=0.0, high=1.0, verb="overlap")], [proof, also]
    )


def _overlap(facts: RankFacts, lanes: Int64s) -> float:
    """Share of the time of all lanes but the longest in which another one of them runs too."""
    work = facts.model.work
    each = [_total(union_of(work, facts.kernels & (work.lane == lane))) for lane in lanes]
    whole = _total(union_of(work, facts.kernels & np.isin(work.lane, lanes)))
    return (sum(each) - whole) / max(sum(each) - max(each), 1)


def _total(union: Intervals) -> int:
    return int((union[1] - union[0]).sum())


def _turns(facts: RankFacts, lanes: Int64s) -> tuple[Intervals, NDArray[np.int64]]:
    """Idle times from a kernel of one lane to one of another, and (n, 2) the two lanes."""
    work = facts.model.work
    rows = np.flatnonzero(facts.here & (work.end_ns > work.ts_ns))
    starts, ends = facts.idle_gaps
    after = rows[np.minimum(np.searchsorted(work.ts_ns[rows], ends), len(rows) - 1)]
    by_end = rows[np.argsort(work.end_ns[rows], kind="stable")]
    before = by_end[np.minimum(np.searchsorted(work.end_ns[by_end], starts), len(rows) - 1)]
    own = _end_before(facts, rows)[after]
    kept = (work.ts_ns[after] == ends) & (work.end_ns[before] == starts) & (own < starts)
    compute = facts.kernels & np.isin(work.lane, lanes)
    kept &= compute[after] & compute[before]
    pairs = np.sort(np.stack((work.lane[before], work.lane[after]), axis=1)[kept], axis=1)
    return (starts[kept], ends[kept]), pairs


def _end_before(facts: RankFacts, rows: Int64s) -> Int64s:
    """(work,) when the work before each one on its lane ended; -1 for the first."""
    work = facts.model.work
    order = rows[np.lexsort((work.ts_ns[rows], work.lane[rows]))]
    ended = np.full(len(work.ts_ns), ABSENT, np.int64)
    same = work.lane[order[1:]] == work.lane[order[:-1]]
    ended[order[1:]] = np.where(same, work.end_ns[order[:-1]], ABSENT)
    return ended


def _worst_pair(pairs: NDArray[np.int64], waited: Int64s) -> tuple[int, int]:
    """The two lanes between which most time is lost."""
    known, row = np.unique(pairs, axis=0, return_inverse=True)
    one, other = known[int(np.argmax(np.bincount(row.ravel(), waited)))].tolist()
    return one, other


def _lane(facts: RankFacts, lane: int) -> tuple[str, int, Proof]:
    """The name of a lane, the time of its kernels, and the proof of that."""
    work = facts.model.work
    mine = work.kind.where("kernel") & (work.lane == lane)
    total = int(facts.length_ns[mine].sum())
    spots = longest(work, mine)
    proof = ask("ns", total, "perfdiag_lane_work_ns", lane, "kernel", spots=spots)
    return lane_name(facts, lane), total, proof
