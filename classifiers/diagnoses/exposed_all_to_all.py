"""Exchanges between all ranks that no compute hides: experts, embeddings, sequences.

What it finds:
    Time in which an all-to-all runs, on another stream than the kernels, and no kernel runs.

Why it costs time:
    Experts wait for their tokens and the next layer for theirs; a recommender waits for its pooled
    embeddings. Each exchange stands in the way of what follows, and all ranks wait for the
    slowest and the most loaded one.

How it is told apart:
    By what the trace says of the operation: its arguments, or the range around its launch, since
    NCCL exchanges with its kernel for sends and receives. What lies under kernels is not counted.
    Exchanges on a stream that carries kernels are the finding `collective_on_compute_stream`. The
    trace of one rank cannot tell transfer from waiting for a late rank.

Example:
    Two exchanges of 100 us around 150 us of expert kernels.

What to do:
    Compute something else meanwhile (another micro-batch, the shared expert, the dense part), send
    fewer bytes, keep tokens within the node, and balance what the ranks get.

References:
    https://github.com/deepseek-ai/DeepEP
    https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/transformer/moe/README.md
    https://github.com/pytorch/torchrec
"""

from perfdiag.classifiers.diagnoses._overlap import (
    COMPUTE_LANE,
    HIDDEN,
    collectives,
    exposed,
    heaviest,
)
from perfdiag.classifiers.diagnoses._shared import per_step, share_of, spell
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

FEWER_BYTES = Threshold(
    0.5,
    "share of the time",
    "DeepEP sends fp8 instead of bf16: https://github.com/deepseek-ai/DeepEP",
)

DIAGNOSIS = Diagnosis(
    id="exposed_all_to_all",
    layer="parallelism",
    title="All-to-all exchanges run while nothing computes",
    title_ok="Compute hides the all-to-all exchanges",
    needs=("device",),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "hidden": HIDDEN,
        "compute_lane": COMPUTE_LANE,
        "fewer_bytes": FEWER_BYTES,
    },
    how=(
        "Experts: DeepEP with fp8 dispatch (Megatron: --moe-token-dispatcher-type flex "
        "--moe-enable-deepep), --overlap-moe-expert-parallel-comm and "
        "--moe-shared-expert-overlap, an expert group within the node "
        "(--expert-model-parallel-size), a balanced router. Embeddings: TorchRec's "
        "TrainPipelineSparseDist(), which exchanges the next batch under this one, quantised "
        "exchanges (qcomm_codecs_registry=), a better sharding plan. "
        "torch.distributed: all_to_all_single(async_op=True) and wait() where it is used (PyTorch "
        "1.8 or later)."
    ),
    verify=(
        "Record all ranks and look at them together: exposed exchanges shrink. If one rank arrives "
        "late everywhere, its cause comes first."
    ),
    refuted_by="the traces of the other ranks show that this one only waits for them",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for exchanges that run alone on their streams."""
    here = collectives(facts, "all_to_all", on_compute_lanes=False, least=limits["compute_lane"])
    found = exposed(facts, here)
    if not len(found.rows):
        return DIAGNOSIS.quiet("No all-to-all on a stream of its own.")
    share = share_of(facts, found.time_ns)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"All-to-alls are exposed for {share:.1%} of the time.")
    most, proof = heaviest(facts, here)
    why = (
        f"All-to-alls run for {spell(per_step(facts, found.time_ns))} of a step ({share:.0%}) "
        f"while nothing computes (may include waiting for other ranks). {most}"
    )
    high = found.hideable + (1.0 - found.hideable) * limits["fewer_bytes"]
    return DIAGNOSIS.fires(why, [found.claim(limits["hidden"] * found.hideable, high)], [proof])
