"""Links within the host carry far less than they can.

What it finds:
    Large collectives over all devices of a host that reach less than half of the peak of its links
    while nothing hides them.

Why it costs time:
    If ranks can't use NVLink or xGMI they take the way over PCIe and the host's memory, at a tenth
    of the speed, and say nothing of it. Containers without shared memory, a topology that a virtual
    machine hides, links that are down, and too few channels do that.

How it is told apart:
    By the bus bandwidth, as nccl-tests counts it, against the one-way peak of the device's links,
    which it reaches to three quarters or more with large messages. The wait for the last rank is
    taken off first, so the traces of the others are needed. Small messages are bound by latency;
    groups that leave the host, or hold a part of its devices only, have other peaks: they don't
    count.

Example:
    Eight H100 all-reduce 128 MiB in 2.1 ms: 112 GB/s of 450.

What to do:
    See with nccl-tests whether the links are slow or the job keeps NCCL from using them. What
    exceeds the time at three quarters of the peak is saved at best.

References:
    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    https://rocm.docs.amd.com/projects/rccl/en/latest/
"""

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.collectives import BUS_FACTOR
from perfdiag.classifiers.diagnoses._overlap import at_most, collectives, heaviest
from perfdiag.classifiers.diagnoses._shared import count_of, mask_of, per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

Floats = NDArray[np.float64]

SLOW = Threshold(
    0.5, "share of the peak", "a choice: halfway between links in use and the way over the host"
)
LARGE = Threshold(
    64e6, "bytes", "a choice: latency is a small part of the time from there on, see PERFORMANCE.md"
)
USUAL = Threshold(
    0.75,
    "share of the peak",
    "a choice: what rings over NVLink reach with large messages, at least",
)

DIAGNOSIS = Diagnosis(
    id="link_below_peak",
    layer="hardware",
    title="Links within the host are far below their peak",
    title_ok="Links within the host are used to their peak",
    needs=("device", "ranks"),
    confidence=0.6,
    thresholds={"share": MATERIAL, "slow": SLOW, "large": LARGE, "usual": USUAL},
    how=(
        "all_reduce_perf -b 64M -e 1G -f 2 -g 8 of nccl-tests (rccl-tests) on the idle host. If it "
        "is slow, too: nvidia-smi topo -m, nvidia-smi nvlink --status, systemctl status "
        "nvidia-fabricmanager, rocm-smi --showtopo. If it is fast: NCCL_DEBUG=INFO must say P2P or "
        "NVLS and not SHM or NET between ranks; unset NCCL_P2P_DISABLE=, NCCL_P2P_LEVEL= and "
        "NCCL_MAX_CTAS=; give containers --shm-size and all devices of the host (--gpus all)."
    ),
    verify="Record all ranks again: link_share of large collectives is 0.75 or more.",
    refuted_by="nccl-tests reaches no more on this host, and its links are known to be PCIe",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for transfers within a host that are slow for its links."""
    links = None if facts.peaks is None else facts.peaks.scale_up
    if links is None or not links.devices or facts.transfer_ns is None:
        return DIAGNOSIS.not_applicable("The links of this device are not known.")
    if facts.world_size != links.devices:
        return DIAGNOSIS.not_applicable(
            f"The job has not {links.devices} ranks: its collectives don't use all links of a host."
        )
    rows = _comparable(facts, facts.transfer_ns, limits["large"])
    reached = _bus_bandwidth(facts, facts.transfer_ns, rows) / links.one_way_bytes_s
    if not len(rows) or np.median(reached) >= limits["slow"]:
        part = f"reach {np.median(reached):.0%} of the peak" if len(rows) else "there are none"
        return DIAGNOSIS.quiet(f"Large collectives over all devices of the host: {part}.")
    end = facts.model.work.end_ns[rows]
    excess = 1.0 - reached / limits["usual"]
    bounds = (end - facts.transfer_ns[rows], end)
    one = claim(bounds, ["collective_transfer"], low=0.0, high=excess)
    lost = at_most(facts, one)
    share = share_of(facts, lost)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Slow links hold up the device for {share:.1%} of the time.")
    most, proof = heaviest(facts, mask_of(rows, len(facts.here)))
    why = (
        f"{count_of(len(rows), 'large collective')} over all {links.devices} devices of the host "
        f"reach {np.median(reached) * links.one_way_bytes_s / 1e9:.3g} GB/s in the median, "
        f"{np.median(reached):.0%} of the {links.one_way_bytes_s / 1e9:.4g} GB/s of their links, "
        f"one way, and up to {spell(per_step(facts, lost))} of a step ({share:.0%}) more than at "
        f"{limits['usual']:.0%}. {most}"
    )
    return DIAGNOSIS.fires(why, [one], [proof])


def _comparable(facts: RankFacts, transfer_ns: Int64s, least: float) -> Int64s:
    """Large collectives of all ranks whose transfer is known, by row of `Work`."""
    work, found = facts.model.work, facts.model.collectives
    size = np.zeros(len(work.id), np.int64)
    size[found.work] = found.group_size
    chosen = collectives(facts, *(op for op, factor in BUS_FACTOR.items() if factor))
    chosen &= (transfer_ns > 0) & (work.bytes >= least) & (size == facts.world_size)
    return np.flatnonzero(chosen)


def _bus_bandwidth(facts: RankFacts, transfer_ns: Int64s, rows: Int64s) -> Floats:
    """(n,) bytes a second by nccl-tests' formulas, for groups of all ranks."""
    work, ranks = facts.model.work, facts.world_size or 1
    factor = np.array([BUS_FACTOR[op] for op in work.collective.take(rows)], np.float64)
    moved = factor * (ranks - 1) / ranks * work.bytes[rows]
    return np.asarray(moved / (np.maximum(transfer_ns[rows], 1) / 1e9), np.float64)
