"""Gradients are scattered into tables row by row.

What it finds:
    Kernels that add many rows into few: the backward passes of embeddings and of indexing,
    `index_add_`, `scatter_add_`, and the same in graph libraries.

Why it costs time:
    Rows that meet in one place are added by atomic operations that wait for each other, or are
    sorted first. A dense gradient of a table is zeroed, filled in a few rows, and read again as a
    whole by the optimiser.

How it is told apart:
    By the kernels' names (`embedding_backward`, `indexing_backward`, `ReduceAdd` in index and
    scatter kernels), what `aten::embedding_dense_backward` launches, and sorts in a backward pass
    of indexing. Table-batched embeddings (FBGEMM) that update their rows in place are the cure and
    not counted, nor is reading rows.

Example:
    `x[index]` whose gradient sorts a million indices: `indexing_backward_kernel` takes a third of
    the backward pass, as most of the indices are the padding's.

What to do:
    Update the rows that are used, in the backward pass itself; gather with a kernel whose gradient
    does not sort; sort or group the indices once and reduce by segment. How much that saves depends
    on how often rows meet, which the trace does not show.

References:
    https://github.com/pytorch/pytorch/issues/20655
    https://github.com/pytorch/pytorch/issues/15245
    https://pytorch.org/FBGEMM/fbgemm_gpu-python-api/table_batched_embedding_ops.html
"""

import re

import numpy as np
from numpy.typing import NDArray

from perfdiag.classifiers.claims import claim
from perfdiag.classifiers.diagnoses._figures import longest_work
from perfdiag.classifiers.diagnoses._kernel_names import brief, by_name, launched_in
from perfdiag.classifiers.diagnoses._shared import (
    count_of,
    leaf_in,
    per_step,
    share_of,
    spell,
    union_of,
)
from perfdiag.classifiers.diagnosis import MATERIAL, Diagnosis, Finding, Limits, Threshold
from perfdiag.classifiers.facts import RankFacts

SCATTERS = re.compile(
    r"(?<!split_)embedding_backward_(?:feature_)?kernel|compute_grad_weight|krn_partial_segment|"
    r"EmbeddingBag_accGradParameters|indexing_backward_kernel|"
    r"(?:indexFunc(?:Large|Small)Index|scatter_gather_elementwise_kernel).*ReduceAdd|"
    r"(?:^|[ :])scatter_kernel<"
)
EMBEDDINGS = ("aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward")
INDEXING = ("aten::_index_put_impl_", "aten::index_put_")

LEAVES = ("memory_kernel", "kernel_unclassified", "copy")

LEAST = Threshold(0.0, "share", "a choice: rows that never meet are added as fast as they can be")
MOST = Threshold(
    0.75,
    "share",
    "pytorch issue 15245: the gradient of gather is 1.6 to 24 times as fast, mean 3.3",
)

DIAGNOSIS = Diagnosis(
    id="scatter_atomics",
    layer="kernels",
    title="Scattering gradients into tables takes long",
    title_ok="Little time in scattered additions",
    needs=("device",),
    confidence=0.5,
    thresholds={"share": MATERIAL, "least": LEAST, "most": MOST},
    how=(
        "Recommenders: fbgemm_gpu.split_table_batched_embeddings_ops_training "
        "SplitTableBatchedEmbeddingBagsCodegen(optimizer=...), or TorchRec with "
        "apply_optimizer_in_backward(...); nn.Embedding(sparse=True) with SparseAdam. Indexing: "
        "torch.gather(...) or index_select(...) instead of x[index]; padding_idx= for padding; "
        "torch.segment_reduce(...) (PyTorch 1.12 or later) or torch_scatter.segment_csr(...) over "
        "sorted indices."
    ),
    verify="Record again: these kernels are shorter, or gone.",
    refuted_by="the kernels already run at the memory's rate",
)


def diagnose(facts: RankFacts, limits: Limits) -> Finding:
    """Look for additions into rows of a table."""
    chosen = _scattered(facts)
    union = union_of(facts.model.work, chosen)
    time = leaf_in(facts, union, *LEAVES)
    share = share_of(facts, time)
    if share < limits["share"]:
        return DIAGNOSIS.quiet(f"Scattered additions take {share:.1%} of the time.")
    name, total, count, proof = longest_work(facts, chosen)
    why = (
        f"Scattered additions take {spell(per_step(facts, time))} of a step ({share:.0%}), with "
        f"the sorts and fills that they need: {count_of(count, 'kernel')} {brief(name)!r}, "
        f"{spell(total)} in all."
    )
    low = min(limits["least"], limits["most"])
    return DIAGNOSIS.fires(why, [claim(union, LEAVES, low=low, high=limits["most"])], [proof])


def _scattered(facts: RankFacts) -> NDArray[np.bool_]:
    """(work,) kernels that add into rows, and what is done for them."""
    work, origins = facts.model.work, facts.origins
    named = by_name(facts, ("embedding", "index"), _scatters, np.bool_)
    table = launched_in(facts, origins.named(lambda name: name in EMBEDDINGS))
    sorts = work.family.where("sort") & origins.op_is(lambda name: name in INDEXING)
    return np.asarray(facts.here & (named | table | sorts), np.bool_)


def _scatters(name: str) -> bool:
    return SCATTERS.search(name) is not None
