"""Matrix products far slower than others of the same job with no more arithmetic.

What it finds:
    Matrix products that reach less than 70 % of the share of the compute roof that another product
    of the same trace reaches, in the same type, with as much arithmetic or less, in all and for
    each byte.

Why it costs time:
    The device has shown that it can do better: the library took an unsuitable kernel for this
    layout or this size, or the product runs beside something that takes its units.

How it is told apart:
    By the operators' recorded sizes, which give FLOPs and bytes, and the kernels' durations. A
    product is compared only with those that have no advantage over it, by their median, so that
    small ones are never measured by large ones. Products bound by memory are not meant, nor those
    whose rows are not aligned.

Example:
    A weight gradient of 4096 x 4096 x 4096 in 500 us beside a forward product of the same size in
    200 us.

What to do:
    Let the library search for a kernel, give it workspace, or change the order of the operands.
    Saved is the time down to what the better product reaches, never to the data sheet's peak; half
    of that at worst, as some layouts have no better kernel.

References:
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
    https://docs.pytorch.org/docs/stable/cuda.tunable.html
    https://docs.nvidia.com/cuda/cublas/index.html
"""

import numpy as np

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief, by_name
from perfdiag.classifiers.diagnoses._products import (
    FULL_BYTES,
    aligned_bytes,
    best_comparable,
    products,
)
from perfdiag.classifiers.diagnoses._roofs import KERNEL_LEAVES, NO_ROOF, Roofs, asked, roofs_of
from perfdiag.classifiers.diagnoses._shared import (
    ask,
    count_of,
    leaf_in,
    longest,
    mask_of,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnoses.misaligned_gemm import loaded_bytes
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Proof, Threshold
from perfdiag.classifiers.facts import RankFacts
from perfdiag.trace_schemas.recording import Int64s

FAR = Threshold(
    0.7,
    "share of the better product's",
    "a choice: tiles and waves make up to 30 % between neighbouring sizes",
)
SIMILAR = Threshold(
    1.25,
    "times the arithmetic",
    "a choice: what the better product may have more, in all or a byte",
)
OFTEN = Threshold(3, "launches", "a choice: what a product reaches once may be chance")
SURE = Threshold(0.5, "share", "a choice: for some layouts the library has no better kernel")

DIAGNOSIS = Diagnosis(
    id="gemm_below_family_best",
    layer="kernels",
    title="Matrix products are far slower than comparable ones",
    title_ok="No matrix product is far slower than comparable ones",
    needs=("device", "host"),
    confidence=0.6,
    thresholds={
        "share": MATERIAL,
        "far": FAR,
        "similar": SIMILAR,
        "often": OFTEN,
        "sure": SURE,
    },
    how=(
        "Let the library search: torch.compile(mode='max-autotune') (PyTorch 2.0 or later), on "
        "ROCm PYTORCH_TUNABLEOP_ENABLED=1 or torch.cuda.tunable.enable(True) (2.3). Give it "
        "workspace: CUBLAS_WORKSPACE_CONFIG=:4096:8, CUBLASLT_WORKSPACE_SIZE=32768. Store the "
        "weight so that both operands are contiguous along K (TN). JAX: keep "
        "XLA_FLAGS=--xla_gpu_autotune_level=4, the default."
    ),
    verify="Record again with record_shapes=True: the roofline shows the product near the others.",
    refuted_by="the product is as slow when nothing runs beside it and every kernel has been tried",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for products that comparable ones leave far behind."""
    roofs = roofs_of(facts)
    if roofs is None:
        return DIAGNOSIS.not_applicable(NO_ROOF)
    rows = _comparable(facts, roofs)
    share = roofs.line.compute_share[rows]
    best = best_comparable(facts, roofs, rows, np.ones(len(rows), np.bool_), limits)
    behind = share < limits["far"] * best
    chosen = mask_of(rows[behind], len(facts.here))
    time = leaf_in(facts, union_of(facts.model.work, chosen), *KERNEL_LEAVES)
    part = share_of(facts, time)
    if part < limits["share"]:
        return DIAGNOSIS.quiet(
            f"Products far slower than comparable ones take {part:.1%} of the time."
        )
    spans = (facts.model.work.ts_ns[rows[behind]], facts.model.work.end_ns[rows[behind]])
    high = 1.0 - share[behind] / best[behind]
    length = facts.length_ns[rows[behind]]
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"{count_of(len(high), 'matrix product')} take {spell(per_step(facts, time))} of a step "
        f"({part:.0%}) and reach {np.average(share[behind], weights=length):.0%} of the compute "
        f"roof, where comparable ones reach {np.average(best[behind], weights=length):.0%}. "
        f"{brief(name)!r} alone runs {count_of(count, 'time')}, {spell(total)} in all"
    )
    reached = _reached(facts, roofs, name)
    why += f", at {reached.value:.0%} of that roof."
    one = claim(spans, KERNEL_LEAVES, low=limits["sure"] * high, high=high)
    return DIAGNOSIS.fires(why, [one], [proof, reached])


def _reached(facts: RankFacts, roofs: Roofs, name: str) -> Proof:
    """Share of the compute roof that the kernels of a name reach, over their time."""
    mine = roofs.usable & facts.model.work.name.where(name)
    share = float(np.average(roofs.line.compute_share[mine], weights=facts.length_ns[mine]))
    device = facts.timeline.device
    spots = longest(facts.model.work, mine)
    return ask("ratio", share, "perfdiag_kernel_compute_share", device, name, spots=spots)


def _comparable(facts: RankFacts, roofs: Roofs) -> Int64s:
    """(n,) products that arithmetic would bound and whose rows can be loaded at once."""
    rows = products(facts, roofs)
    line = roofs.line
    rows = rows[line.compute_share[rows] >= line.memory_share[rows]]
    narrow = by_name(facts, ("gemm",), loaded_bytes, np.int64)[rows]
    aligned = asked(roofs.costs, rows, aligned_bytes, np.int64) >= FULL_BYTES
    wide = (narrow == 0) | (narrow >= FULL_BYTES)
    return np.asarray(rows[aligned & wide], np.int64)
