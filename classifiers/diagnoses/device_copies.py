"""Copies from device memory to device memory between the kernels.

What it finds:
    Copies within a device that nothing hides: no kernel and no collective runs meanwhile.

Why it costs time:
    A copy reads every byte and writes it again, and computes nothing. On the stream of the kernels
    the next of them waits until it is done, and many are so short that their launch is dearer.

How it is told apart:
    By the direction in the copy's name. A copy beside kernels, on a stream of its own, is hidden
    and costs nothing. Copies that a kernel makes (`aten::copy_` into other strides, casts) are the
    findings `layout_transposes` and `dtype_cast_copies`.

Example:
    A compiled step that copies 700 tensors: parameters into the static inputs of a graph, outputs
    into buffers that are mutated.

What to do:
    Find out which operator copies, and whether it must. Some copies stay: nothing is saved for
    sure.

References:
    https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html
    https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
    https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
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
    1.0, "share", "a choice: the trace does not show whether a copy could be left out"
)

DIAGNOSIS = Diagnosis(
    id="device_copies",
    layer="compiler",
    title="Copies within the device stop the kernels",
    title_ok="No copies within the device that anything waits for",
    needs=("device",),
    confidence=0.5,
    thresholds={"share": MATERIAL, "needed": NEEDED},
    how=(
        "By the operator that copies: `aten::clone` and `aten::contiguous` go with in-place or "
        "out= variants and with views; inputs of CUDA graphs that are copied in every replay go "
        "with torch.compiler.cudagraph_mark_step_begin() and static addresses (mark_static_address "
        "in torch._dynamo, PyTorch 2.1 or later); buffers that a compiled function mutates go with "
        "out-of-place updates; buckets of DDP with gradient_as_bucket_view=True (1.7 or later); "
        "torch.cat by writing into slices of one tensor. JAX: jax.jit(step, donate_argnums=(0,))."
    ),
    verify="Record again: there are fewer copies `DtoD`, and the leaf `copy` shrinks.",
    refuted_by="the copies are needed: each is read and written later by different kernels",
)

_WITHIN = re.compile(r"DtoD|D2D|Device-?to-?Device|\(Device -> Device\)", re.IGNORECASE)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for copies within the device while nothing else runs."""
    copies = _within(facts)
    if not copies.any():
        return DIAGNOSIS.quiet("No copies within the device.")
    spans = union_of(facts.model.work, copies)
    time = leaf_in(facts, spans, "copy")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Copies within the device are exposed for {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, copies)
    why = (
        f"For {spell(per_step(facts, time))} of a step ({share:.0%}) the device does nothing but "
        f"copy its own memory. {name!r} runs {count_of(count, 'time')} in the trace, "
        f"{spell(total)} in all{_by(facts, copies)}."
    )
    claims = [
        claim(spans, ["copy"], low=1.0 - limits["needed"], high=1.0),
        claim(idle_before(facts, copies), ["launch"], low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _by(facts: RankFacts, copies: NDArray[np.bool_]) -> str:
    """The operator that makes most of some copies, and its share of their time."""
    hosts, op = facts.model.hosts, facts.origins.op[copies]
    length = facts.length_ns[copies]
    codes = hosts.name.codes[op[op >= 0]]
    if not len(codes):
        return ""
    time = np.bincount(codes, length[op >= 0])
    best = int(np.argmax(time))
    return f", {time[best] / length.sum():.0%} of it by {hosts.name.texts[best]!r}"


def _within(facts: RankFacts) -> NDArray[np.bool_]:
    """(work,) the copies within the device of the budget."""
    named = facts.model.work.name.map(lambda name: bool(_WITHIN.search(name)), np.bool_)
    return np.asarray(facts.here & facts.model.work.kind.where("copy") & named, np.bool_)
