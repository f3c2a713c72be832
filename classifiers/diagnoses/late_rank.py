"""Ranks wait in collectives for one that comes late.

What it finds:
    Exposed time of collectives in which this rank only waits for others to arrive.

Why it costs time:
    A collective begins when the last of its ranks is there. What one rank needs longer, all of the
    others wait, whatever they are worth; a hundred devices are as fast as the slowest.

How it is told apart:
    By the traces of the ranks together: the shortest of a collective is the transfer, and what
    others take beyond it is waiting. The wait is charged to the rank that comes last, and to what
    it needed longer for since both had last met. Where most is waited in exchanges (all-to-all),
    for kernels, the work is uneven: experts that get more tokens, shards with more rows. Stages of
    a pipeline wait for each other by design: they are the finding `pipeline_bubble`. Without the
    other ranks' traces nothing can be said.

Example:
    Rank 1 loads for 5 ms longer than rank 0, which waits for it in the all-reduce of each step.

What to do:
    Look at the late rank, not at the collective: at its own fixes, and whether it has more work
    than the others, a slower device or a busier host. All of the wait is saved if it is as fast as
    the others; nothing if another rank is as late.

References:
    https://arxiv.org/abs/2505.05713
    https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/features/moe.html
    https://docs.pytorch.org/docs/stable/elastic/run.html
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._overlap import heaviest
from perfdiag.classifiers.diagnoses._shared import leaf_ns, per_step, share_of, spell, windows
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts, Wait
from perfdiag.classifiers.labels import PHRASES

OTHERS = Threshold(0.0, "share", "a choice: another rank may be as late as the one that is mended")

KERNELS = ("compute_kernel", "memory_kernel", "kernel_unclassified")

DIAGNOSIS = Diagnosis(
    id="late_rank",
    layer="parallelism",
    title="Ranks wait for one that comes late",
    title_ok="No waiting for late ranks",
    needs=("device", "ranks"),
    confidence=0.7,
    thresholds={"share": MATERIAL, "others": OTHERS},
    how=(
        "On the late rank first do what its own fixes say. Even out the work: batches by length "
        "(group_by_length=True in Hugging Face's TrainingArguments, or packing), pipeline stages "
        "by time (Megatron-LM: --decoder-first-pipeline-num-layers), experts by tokens "
        "(--moe-router-load-balancing-type aux_loss with --moe-aux-loss-coeff 1e-2, or a bound: "
        "--moe-expert-capacity-factor), a sharding plan for embeddings. Collect garbage on all "
        "ranks in the same step. Compare hosts and devices: nvidia-smi -q -d CLOCK,PERFORMANCE, "
        "numactl --cpunodebind for each local rank (PyTorch 2.9 or later: torchrun "
        "--numa-binding=node)."
    ),
    verify="Record all ranks again: `collective_wait` shrinks, and `culprit_rank` is null.",
    refuted_by="the rank is late as well when its work is moved to another device and host",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for waits that lead to other ranks."""
    waited = leaf_ns(facts, "collective_wait")
    share = share_of(facts, waited)
    if not facts.waits or share < limits["share"]:
        return DIAGNOSIS.quiet(f"It waits for other ranks for {share:.1%} of the time.")
    charged = sum(wait.time_ns for wait in facts.waits)
    most, proof = heaviest(facts, facts.here & facts.model.work.kind.where("collective"))
    why = (
        f"It waits for {spell(per_step(facts, waited))} of a step ({share:.0%}) in collectives. "
        f"{_uneven(facts) or _blame(facts.waits[0], charged)} {most}"
    )
    high = min(1.0, charged / max(1, int(waited[facts.trusted].sum())))
    shares = np.full(len(waited), high)
    one = claim(
        windows(facts),
        ["collective_wait"],
        low=limits["others"] * shares,
        high=shares,
        verb="rebalance",
    )
    return DIAGNOSIS.fires(why, [one], [proof])


def _blame(wait: Wait, charged_ns: int) -> str:
    """For whom it waits longest, and what that one was doing."""
    leaf, spent = next(iter(wait.leaf_ns.items()))
    name = "?" if wait.late_rank is None else wait.late_rank
    return (
        f"{wait.time_ns / max(1, charged_ns):.0%} of that is for rank {name}, which needs longer "
        f"than this one mostly while it is {PHRASES[leaf]} ({spent / max(1, wait.time_ns):.0%})."
    )


def _uneven(facts: RankFacts) -> str:
    """That work is uneven, where most is waited in exchanges for what others compute longer."""
    waits = facts.waits or ()
    charged, wait = sum(w.time_ns for w in waits), waits[0]
    exchanged = sum(w.in_exchange_ns for w in waits)
    computing = sum(w.leaf_ns.get(leaf, 0) for w in waits for leaf in KERNELS)
    if 2 * min(exchanged, computing) <= charged:
        return ""
    longer = sum(wait.leaf_ns.get(leaf, 0) for leaf in KERNELS) / max(1, int(facts.trusted.sum()))
    name = "?" if wait.late_rank is None else wait.late_rank
    return (
        f"{exchanged / charged:.0%} of that is in exchanges between all ranks of a group, which "
        "wait for the busiest: work (tokens of experts, rows of embeddings) is unevenly spread "
        f"between them. Rank {name} computes {spell(longer)} of a step longer than this one."
    )
