"""A link between devices is slow, and all groups of its rank transfer slowly.

What it finds:
    Time by which transfers of this rank exceed those of other groups that move as many bytes,
    because one of its group's members has a slow link.

Why it costs time:
    A collective is as fast as its slowest link, for every rank of the group; and who waits for that
    group next waits for it too.

How it is told apart:
    By the traces of the ranks together. Groups of the same form are compared: same operation, same
    bytes, same distances between ranks. A rank is named only if each of its groups is slow and no
    other rank's are, so ranks must meet in two kinds of groups, as those of a mesh do. Waiting for
    a late rank is no transfer: it is the finding `late_rank`. One trace alone cannot tell.

Example:
    In a mesh of 4 ranks the row and the column of rank 1 need 3 ms for what others do in 1 ms.

What to do:
    Test the links of that rank, not the ranks that wait. What exceeds the usual transfer is saved
    once the link is as fast as the others.

References:
    https://arxiv.org/abs/2505.05713
    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import at_most, heaviest
from perfdiag.classifiers.diagnoses._shared import per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

USUAL = Threshold(
    0.8, "share of the excess", "a choice: groups of one form differ by what their hosts share"
)

DIAGNOSIS = Diagnosis(
    id="slow_link",
    layer="hardware",
    title="The link of one rank is slow",
    title_ok="No link is slower than the others",
    needs=("device", "ranks"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "usual": USUAL},
    how=(
        "On the host of that rank: nvidia-smi nvlink --status and --errorcounters, rocm-smi "
        "--showxgmierr, ibstat and perfquery for links at a lower rate or with errors, lspci -vv "
        "for PCIe links that came up narrower. all_reduce_perf of nccl-tests (or rccl-tests) with "
        "and without that host. NCCL_DEBUG=INFO shows which NIC the rank uses; NCCL_IB_HCA= and "
        "NCCL_TOPO_FILE= correct a wrong choice. Else move the rank to another device."
    ),
    verify="Record all ranks again: groups of one form transfer in about the same time.",
    refuted_by="the same group is slow with that rank on another host",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for transfers that a slow link in the group makes longer."""
    link = facts.slow_link
    if link is None:
        return DIAGNOSIS.quiet("Groups that can be compared transfer in about the same time.")
    work, rows = facts.model.work, np.flatnonzero(link.lost > 0)
    lost = link.lost[rows]
    one = claim(
        (work.ts_ns[rows], work.end_ns[rows]),
        ["collective_transfer"],
        low=limits["usual"] * lost,
        high=lost,
        mid=lost,
    )
    exposed = at_most(facts, one)
    share = share_of(facts, exposed)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"A slow link costs {share:.1%} of the time.")
    most, proof = heaviest(facts, link.lost > 0)
    why = (
        f"The groups of rank {'?' if link.rank is None else link.rank} transfer {link.times:.1f} "
        f"times as long as others of their form. Those that this rank shares with it, or its own, "
        f"lose {spell(per_step(facts, exposed))} of a step ({share:.0%}) by that. {most}"
    )
    return DIAGNOSIS.fires(why, [one], [proof])
