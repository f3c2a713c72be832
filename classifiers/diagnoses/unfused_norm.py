"""A norm or a softmax made of single kernels.

What it finds:
    Sequences of pointwise kernels and reductions that are a norm (mean of squares, root, product)
    or a softmax (exponential, sum, quotient).

Why it costs time:
    An RMSNorm written out takes six to eight kernels, each of which reads the activations from
    memory or writes them there. A fused norm reads them once and writes them once.

How it is told apart:
    By the order of kernels on a stream: a reduction, a root and a product, or an exponential, a
    sum and a quotient, with nothing but casts and pointwise kernels between. Kernels that are a
    norm themselves are none, nor are those that a compiler has fused. Only time in which no kernel
    bound by arithmetic runs is claimed.

Example:
    The RMSNorm of a Hugging Face model in eager mode: to float32, pow, mean, add, rsqrt, mul, back
    to bfloat16, mul with the weight.

What to do:
    Take the framework's own norm, a library's fused one, or let a compiler fuse it. What remains
    takes no longer than the slowest kernel of the sequence, which moves as much or more; at worst
    half of that is gained. Backward passes of such norms come on top and are not counted.

References:
    https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html
    https://github.com/pytorch/pytorch/pull/153666
    https://github.com/linkedin/Liger-Kernel
    https://horace.io/brrr_intro.html
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._kernel_names import brief
from perfdiag.classifiers.diagnoses._moving import is_cast
from perfdiag.classifiers.diagnoses._shared import (
    ask,
    count_of,
    idle_before,
    leaf_in,
    longest,
    mask_of,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

# Kernels as letters: Reduction, rOot, Exponential, Quotient, Cast, other Pointwise, anything else.
_POINTWISE = {
    "O": ("sqrt_kernel",),
    "E": ("::exp_kernel",),
    "Q": ("DivFunctor", "div_true"),
}
_NORM = rb"[CP]{0,2}R(?:[PQ]{1,3}R)?P{0,2}O[PQ](?:C?P){0,2}"
_SOFTMAX = rb"(?:RP{1,2})?C?EC?RC?Q"
_SEQUENCES = re.compile(_NORM + rb"|" + _SOFTMAX)

FUSED = Threshold(
    0.5, "share", "a choice: a fused kernel is at worst twice as slow as the traffic of the longest"
)

DIAGNOSIS = Diagnosis(
    id="unfused_norm",
    layer="compiler",
    title="Norms or softmaxes made of single kernels",
    title_ok="No norms or softmaxes made of single kernels",
    needs=("device",),
    confidence=0.8,
    thresholds={"share": MATERIAL, "fused": FUSED},
    how=(
        "F.rms_norm() and nn.RMSNorm() (one kernel from PyTorch 2.9), F.layer_norm(), F.softmax(); "
        "torch.compile (PyTorch 2.0 or later) on the norm's module fuses any of them; fused norms "
        "of Liger Kernel, Transformer Engine (te.RMSNorm) or Apex (FusedRMSNorm; Megatron-LM: "
        "--normalization RMSNorm). JAX: keep the norm inside jit."
    ),
    verify="Record again: one norm kernel stands for each sequence.",
    refuted_by="the kernels of a sequence work on different tensors",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for the kernels of norms and softmaxes in sequence."""
    rows, sequence = _sequences(facts)
    work = facts.model.work
    chosen = mask_of(rows, len(work.ts_ns))
    time = leaf_in(facts, union_of(work, chosen), "memory_kernel")
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Norms and softmaxes of single kernels take {share:.1%}.")
    name, proof = _pivot(facts, rows)
    why = (
        f"{count_of(int(sequence[-1]) + 1, 'norm or softmax', 'norms and softmaxes')} of "
        f"{len(rows)} single kernels take {spell(per_step(facts, time))} of a step ({share:.0%}). "
        f"In the trace {brief(name)!r}, which each of a kind has, runs "
        f"{count_of(int(proof.value), 'time')}."
    )
    high = _fused_away(facts.length_ns[rows], sequence)[sequence]
    vanish = chosen.copy()
    vanish[rows[np.diff(sequence, prepend=-1) > 0]] = False
    spans = work.ts_ns[rows], work.end_ns[rows]
    claims = [
        claim(spans, ["memory_kernel"], low=limits["fused"] * high, high=high),
        claim(idle_before(facts, vanish), ["launch"], low=0.0, high=1.0),
    ]
    return DIAGNOSIS.fires(why, claims, [proof])


def _sequences(facts: RankFacts) -> tuple[Int64s, Int64s]:
    """Rows of the kernels of norms and softmaxes, and the number of each one's sequence.

    A fill may lie between: a large reduction clears its semaphores.
    """
    work = facts.model.work
    letters = _letters(facts)
    found: list[Int64s] = []
    running = np.flatnonzero(facts.here & ~work.kind.where("fill"))
    for lane in np.unique(work.lane[running]).tolist():
        rows = running[work.lane[running] == lane]
        rows = rows[np.argsort(work.ts_ns[rows], kind="stable")]
        text = letters[rows].tobytes()
        found += [rows[slice(*match.span())] for match in _SEQUENCES.finditer(text)]
    number = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
    return np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64), number


def _letters(facts: RankFacts) -> NDArray[np.bytes_]:
    """(work,) what each piece is, as a letter of the patterns."""
    work = facts.model.work
    letter = work.name.map(_pointwise_letter, np.bytes_)
    letter = np.where(work.family.where("elementwise"), letter, b".")
    cast = work.family.where("copy") & work.name.map(is_cast, np.bool_)
    letter = np.where(cast, b"C", letter)
    letter = np.where(work.family.where("reduction"), b"R", letter)
    return np.asarray(np.where(facts.kernels, letter, b"."), "S1")


def _pointwise_letter(name: str) -> str:
    return next(
        (letter for letter, known in _POINTWISE.items() if any(part in name for part in known)), "P"
    )


def _fused_away(length: Int64s, sequence: Int64s) -> NDArray[np.float64]:
    """(sequences,) share of the time that one kernel as long as the longest does not need."""
    total = np.bincount(sequence, length)
    most = np.zeros(len(total))
    np.maximum.at(most, sequence, length)
    return np.asarray(1.0 - most / np.maximum(total, 1), np.float64)


def _pivot(facts: RankFacts, rows: Int64s) -> tuple[str, Proof]:
    """The root or exponential that most of the sequences have, and how often it runs."""
    work = facts.model.work
    pivots = rows[np.isin(_letters(facts)[rows], [b"O", b"E"])]
    name = work.name.texts[int(np.argmax(np.bincount(work.name.codes[pivots])))]
    mine = facts.here & work.name.where(name)
    arguments = facts.timeline.device, name
    spots = longest(work, mine)
    return name, ask("kernels", mine.sum(), "perfdiag_work_count", *arguments, spots=spots)
