"""Kernels that only convert tensors to another type.

What it finds:
    Copies whose input and output differ in type: weights that autocast converts in each step,
    activations that go to float32 and back around a norm or a loss.

Why it costs time:
    A cast reads the tensor and writes it again, and the kernel after it reads it once more. It
    does no arithmetic, so it takes as long as memory needs to move it twice.

How it is told apart:
    By kernels of the family of copies whose names show a conversion, by copies that `aten::to`
    launches, and by kernels of a compiler that consist of a cast. Copies that launch a memcpy, or
    keep the type, are none: they are made for other reasons. Only time in which no kernel bound by
    arithmetic runs is claimed.

Example:
    A model in float32 under autocast: each linear layer converts its 64 MiB of weights first.

What to do:
    Keep the weights in the type in which they are used and the float32 copy in the optimiser; let
    a compiler put the casts of activations into the kernels around them. What feeds a kernel that
    cannot convert by itself stays, at worst half of the casts.

References:
    https://docs.pytorch.org/docs/stable/amp.html
    https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
    https://docs.pytorch.org/docs/stable/torch.compiler.html
"""

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._moving import casts
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    idle_before,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

NEEDED = Threshold(
    0.5, "share", "a choice: half of the casts feed kernels that cannot convert by themselves"
)

DIAGNOSIS = Diagnosis(
    id="dtype_cast_copies",
    layer="compiler",
    title="Kernels that only convert types",
    title_ok="Few kernels that only convert types",
    needs=("device",),
    confidence=0.7,
    thresholds={"share": MATERIAL, "needed": NEEDED},
    how=(
        "Weights: model.to(torch.bfloat16) with the float32 copy in the optimiser instead of "
        "autocast over float32 weights, or fully_shard(mp_policy=MixedPrecisionPolicy("
        "param_dtype=torch.bfloat16)) (PyTorch 2.6 or later; Megatron-LM: --bf16). Activations: "
        "torch.compile (PyTorch 2.0 or later) puts the casts into the kernels around them. JAX: "
        "convert the parameters once, outside the step, and keep the rest inside jit."
    ),
    verify="Record again: `aten::_to_copy` launches fewer copy kernels.",
    refuted_by="the model diverges in bfloat16 with float32 weights kept by the optimiser",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for time in kernels that only convert types."""
    chosen = casts(facts)
    spans = union_of(facts.model.work, chosen)
    time = leaf_in(facts, spans, "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Kernels that only convert types take {share:.1%} of the time.")
    name, total, number, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(int(chosen.sum()), 'kernel')} that only convert types take "
        f"{spell(per_step(facts, time))} of a step ({share:.0%}): the longest is {brief(name)!r}, "
        f"which runs {count_of(number, 'time')} for {spell(total)} in the trace."
    )
    kept = limits["needed"]
    claims = [
        claim(spans, ["memory_kernel"], low=1.0 - kept, high=1.0),
        claim(idle_before(facts, chosen), ["launch"], low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])
