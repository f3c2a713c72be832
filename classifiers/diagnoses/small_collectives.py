"""Many collectives with few bytes each: latency, not bandwidth, makes their time.

What it finds:
    Kinds of collectives (one operation on one stream) that occur ten times a step and more, most of
    them with less than 1 MiB, or as short as such are where the trace holds no sizes.

Why it costs time:
    A collective takes a start-up time however little it carries: a launch, and a round of messages
    between all ranks. Many small ones pay it many times; a few large ones carry the same bytes.

How it is told apart:
    The shortest collective of a kind stands for the start-up time. Only what is exposed counts.
    Barriers, sends and receives are left out, and so are kernels that are made for small messages
    (one-shot all-reduces of inference).

Example:
    Twenty all-reduces of 8 KB, 20 us each, after the backward pass.

What to do:
    Put them together: larger buckets, one flat buffer, a coalesced call. All start-up times but
    those of the merged ones are saved at best; nothing where each result is needed before the next
    collective starts, as in tensor parallelism. There a kernel for small messages helps.

References:
    https://docs.pytorch.org/docs/stable/notes/ddp.html
    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    https://arxiv.org/abs/2006.15704
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import (
    MOVABLE,
    MOVING,
    TINY,
    at_most,
    collectives,
    for_small_messages,
    main_kind,
    numbered,
)
from perfdiag.classifiers.diagnoses._shared import ask, longest, mask_of, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

SMALL = Threshold(
    1 << 20,
    "bytes",
    "DDP's own first bucket, _DEFAULT_FIRST_BUCKET_BYTES: arxiv.org/abs/2006.15704",
)
SHORT = Threshold(
    50_000, "ns", "a choice: ten times an empty kernel, and what 1 MiB takes at 20 GB/s"
)
MANY = Threshold(10, "a step", "a choice: fewer are hardly worth merging")
BUCKET = Threshold(
    25 << 20,
    "bytes",
    "DDP's default bucket_cap_mb: docs.pytorch.org, DistributedDataParallel",
)

DIAGNOSIS = Diagnosis(
    id="small_collectives",
    layer="collectives",
    title="Many small collectives: their latency dominates",
    title_ok="No crowd of small collectives",
    needs=("device",),
    confidence=0.5,
    thresholds={
        "share": MATERIAL,
        "small": SMALL,
        "short": SHORT,
        "many": MANY,
        "bucket": BUCKET,
        "tiny": TINY,
    },
    how=(
        "DDP: a larger bucket_cap_mb (25 by default) with gradient_as_bucket_view=True (PyTorch "
        "1.7). Own calls: one flat buffer (torch._utils._flatten_dense_tensors()) or "
        "torch.distributed._coalescing_manager() (2.1). FSDP: wrap larger blocks "
        "(size_based_auto_wrap_policy). DeepSpeed: reduce_bucket_size=, allgather_bucket_size=. "
        "Horovod: HOROVOD_FUSION_THRESHOLD. JAX: --xla_gpu_all_reduce_combine_threshold_bytes in "
        "XLA_FLAGS. Tensor parallelism: all-reduces made for small messages (vLLM without "
        "--disable-custom-all-reduce)."
    ),
    verify="Record again: fewer collectives a step, with the same bytes in all.",
    refuted_by="each result is needed before the next collective can start",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kinds of collectives that are many and small."""
    rows, saved = _merged(facts, _candidates(facts, limits), limits)
    if not len(rows):
        return DIAGNOSIS.quiet("No kind of small collectives occurs often in a step.")
    work = facts.model.work
    one = claim((work.ts_ns[rows], work.end_ns[rows]), MOVING, low=0.0, high=saved)
    lost = at_most(facts, one)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Latency of small collectives takes {share:.1%} of the time.")
    often = len(rows) / len(facts.model.steps.ts_ns)
    most, proof = _most_frequent(facts, rows)
    why = (
        f"{often:.3g} small collectives a step: up to {spell(per_step(facts, lost))} of it "
        f"({share:.0%}) is start-up time that fewer and larger ones would not need. {most}"
    )
    return DIAGNOSIS.fires(why, [one], [proof])


def _candidates(facts: RankFacts, limits: Limits) -> Int64s:
    """Rows of collectives in steps that could be merged."""
    work, (begin, until) = facts.model.work, facts.span_ns
    tiny = (work.bytes >= 0) & (work.bytes <= limits["tiny"])
    inside = (work.ts_ns >= begin) & (work.ts_ns < until) & (facts.length_ns > 0)
    return np.flatnonzero(
        collectives(facts, *MOVABLE) & ~tiny & ~for_small_messages(facts) & inside
    )


def _merged(facts: RankFacts, rows: Int64s, limits: Limits) -> tuple[Int64s, NDArray[np.float64]]:
    """Small ones of kinds that are many and mostly small, and the share that merging saves."""
    work, steps = facts.model.work, len(facts.model.steps.ts_ns)
    kind = numbered(work.collective.codes[rows], work.lane[rows])
    unknown, short = work.bytes[rows] < 0, facts.length_ns[rows] < limits["short"]
    small = np.where(unknown, short, work.bytes[rows] < limits["small"])
    often = np.bincount(kind, small) >= limits["many"] * steps
    mostly = np.bincount(kind, small) > np.bincount(kind) / 2
    kept = small & (often & mostly)[kind]
    return rows[kept], _saved(facts, rows[kept], kind[kept], limits)


def _saved(facts: RankFacts, rows: Int64s, kind: Int64s, limits: Limits) -> NDArray[np.float64]:
    """(rows,) share of each one's length: the start-up time, but for those that remain."""
    work, steps = facts.model.work, facts.model.steps
    length = facts.length_ns[rows].astype(np.float64)
    startup = np.full(int(kind.max(initial=-1)) + 1, np.inf)
    np.minimum.at(startup, kind, length)
    step = np.searchsorted(steps.ts_ns, work.ts_ns[rows], "right") - 1
    cell = kind * len(steps.ts_ns) + step
    carried = np.bincount(cell, np.maximum(work.bytes[rows], 0))[cell]
    remain = (
        np.maximum(np.ceil(carried / max(limits["bucket"], 1.0)), 1.0) / np.bincount(cell)[cell]
    )
    saved: NDArray[np.float64] = startup[kind] / length * (1.0 - np.minimum(remain, 1.0))
    return saved


def _most_frequent(facts: RankFacts, rows: Int64s) -> tuple[str, Proof]:
    """A sentence on the kind that is most frequent, and its proof."""
    chosen = mask_of(rows, len(facts.length_ns))
    kind = main_kind(facts, chosen, np.ones(len(chosen), np.int64))
    number = len(kind.rows)
    spots = longest(facts.model.work, kind.rows)
    proof = ask("collectives", number, "perfdiag_collective_count", kind.op, kind.lane, spots=spots)
    return f"{kind.words} are most frequent: {number} in the trace.", proof
