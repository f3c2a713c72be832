"""Some collectives move their bytes far slower than others of the same kind and size.

What it finds:
    Collectives that reach less than half the bandwidth of the best one of the same operation,
    group and size in the trace.

Why it costs time:
    The same bytes could travel in the time of the best one. A link that has dropped to a lower
    rate, a rail shared with another job, or a kernel that keeps the multiprocessors busy slows a
    transfer down.

How it is told apart:
    Within one operation and group the bus bandwidth is the algorithm bandwidth, bytes by duration,
    times a constant, so ratios need no group size. Only collectives of 1 MiB and more are
    compared, with others of the same power of two of bytes; one or two slow ones are chance. Only
    what is exposed counts. A collective that waits for a late rank looks the same in the trace of
    one rank: hence the low confidence, and nothing saved at worst.

Example:
    Of six all-reduces of 32 MiB two take 100 us and four take 300 us.

What to do:
    Compare the ranks first: if one arrives late, its cause comes first. Else test the links and
    look for what shares them. Saved at best is what they take beyond the best one.

References:
    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    https://arxiv.org/abs/2410.12588
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import (
    MOVABLE,
    MOVING,
    at_most,
    collectives,
    heaviest,
    numbered,
)
from perfdiag.classifiers.diagnoses._shared import count_of, mask_of, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

SLOW = Threshold(
    0.5,
    "share of the best bandwidth",
    "DLRover's node check takes twice the usual time for a straggler: "
    "https://github.com/intelligent-machine-learning/dlrover",
)
LARGE = Threshold(
    1 << 20,
    "bytes",
    "a choice: below, time is latency (nccl-tests, doc/PERFORMANCE.md)",
)
FEWEST = Threshold(3, "slow collectives", "a choice: one or two are chance, or set-up")

DIAGNOSIS = Diagnosis(
    id="slow_collectives",
    layer="collectives",
    title="Some collectives are far slower than others like them",
    title_ok="Collectives of one kind are about equally fast",
    needs=("device",),
    confidence=0.3,
    thresholds={"share": MATERIAL, "slow": SLOW, "large": LARGE, "fewest": FEWEST},
    how=(
        "Record all ranks: if the last one to start is always the same, that rank is late. Else "
        "all_reduce_perf -b 1M -e 1G -f 2 of nccl-tests (or rccl-tests) node by node, nvidia-smi "
        "nvlink --errorcounters or rocm-smi --showxgmierr, ibstat for links at a lower rate; "
        "NCCL_DEBUG=INFO shows the rings and NICs in use, NCCL_TOPO_FILE= and NCCL_IB_HCA= correct "
        "them. Fewer channels (NCCL_MAX_CTAS=) leave the multiprocessors to kernels beside it."
    ),
    verify="Record again: the longest collective of a kind is near the shortest.",
    refuted_by="the traces of the other ranks show that this one only waits for them",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for collectives with less bandwidth than the best of their kind."""
    known = collectives(facts, *MOVABLE)
    if known.any() and (facts.model.work.bytes[known] < 0).all():
        return DIAGNOSIS.not_applicable("The trace does not hold the sizes of collectives.")
    rows = np.flatnonzero(
        known & (facts.model.work.bytes >= limits["large"]) & (facts.length_ns > 0)
    )
    if not len(rows):
        return DIAGNOSIS.quiet(f"No collectives of {limits['large'] / 2**20:.3g} MiB or more.")
    part = _part_of_best(facts, rows)
    slow = part < limits["slow"]
    if slow.sum() < limits["fewest"]:
        return DIAGNOSIS.quiet(
            f"{count_of(len(rows), 'large collective')}, about equally fast for their size."
        )
    work, mine = facts.model.work, rows[slow]
    one = claim((work.ts_ns[mine], work.end_ns[mine]), MOVING, low=0.0, high=1.0 - part[slow])
    lost = at_most(facts, one)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Slow collectives hold up the device for {share:.1%} of the time.")
    chosen = mask_of(mine, len(known))
    most, proof = heaviest(facts, chosen)
    why = (
        f"{len(mine)} of {len(rows)} large collectives reach less than {limits['slow']:.0%} of the "
        f"bandwidth of the best of their operation, group and size, {np.median(part[slow]):.0%} in "
        f"the median, or wait for a late rank: up to {spell(per_step(facts, lost))} of a step "
        f"({share:.0%}). {most}"
    )
    return DIAGNOSIS.fires(why, [one], [proof])


def _part_of_best(facts: RankFacts, rows: Int64s) -> NDArray[np.float64]:
    """(rows,) bandwidth of each, as part of the best of its operation, group and size."""
    work = facts.model.work
    size = np.floor(np.log2(np.maximum(work.bytes[rows], 1))).astype(np.int64)
    codes = work.collective.codes[rows], work.group.codes[rows]
    kind = numbered(*codes, work.lane[rows], size)
    rate = work.bytes[rows] / facts.length_ns[rows]
    best = np.zeros(len(rows))
    np.maximum.at(best, kind, rate)
    return np.asarray(rate / best[kind], np.float64)
