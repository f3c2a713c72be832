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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import (
    LEAVES,
    TINY,
    Bools,
    at_most,
    carry_little,
    collectives,
)
from perfdiag.classifiers.diagnoses._shared import ask, longest, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

MERGEABLE = (
    "all_reduce",
    "reduce_scatter",
    "reduce",
    "broadcast",
    "all_gather",
    "all_to_all",
    "unknown",
)
FOR_SMALL_MESSAGES = ("cross_device_reduce", "shot_all", "multimem", "quick", "lamport", "symk")
"""In the lower-cased names of kernels that are made for small messages."""

SMALL = Threshold(
    1 << 20, "bytes", "DDP's own first bucket, _DEFAULT_FIRST_BUCKET_BYTES: arxiv.org/abs/2006.15704"
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


class Kinds(NamedTuple):
    """Collectives by operation and lane.

    Attributes:
        rows: of `Work`.
        kind, step: (rows,) number of each one's kind, and its step.
        saved: (rows,) share of each one's length that merging saves at best.
    """

    rows: Int64s
    kind: Int64s
    step: Int64s
    saved: NDArray[np.float64]


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for kinds of collectives that are many and small."""
    found = _merged(facts, _candidates(facts, limits), limits)
    if not len(found.rows):
        return DIAGNOSIS.quiet("No kind of small collectives occurs often in a step.")
    work, rows = facts.model.work, found.rows
    one = claim((work.ts_ns[rows], work.end_ns[rows]), LEAVES, low=0.0, high=found.saved)
    lost = at_most(facts, one)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Latency of small collectives takes {share:.1%} of the time.")
    most, proof = _most_frequent(facts, rows)
    why = (
        f"Small collectives, {len(rows) / facts.model.steps.ts_ns.size:.3g} a step, hold up the "
        f"device; up to {spell(per_step(facts, lost))} of a step ({share:.0%}) is start-up time that "
        f"fewer and larger ones would not need. {most}"
    )
    return DIAGNOSIS.fires(why, [one], [proof])
